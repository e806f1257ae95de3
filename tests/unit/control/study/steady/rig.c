/* Implements rig.h. */
#include "tests/unit/control/study/steady/rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct by_topology *steady_parse(const char *json)
{
    struct by_topology *topology = NULL;
    struct by_problem problem = {0};

    if (by_topology_parse(json, strlen(json), &topology, &problem) != 0)
        fail_msg("%d:%d: %s", problem.line, problem.column, problem.text);
    return topology;
}

char *steady_text(const struct by_series *series, const struct by_topology *topology)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *stream = open_memstream(&text, &bytes);

    assert_non_null(stream);
    assert_int_equal(by_series_write(series, topology, stream), 0);
    fclose(stream);
    return text;
}

static void check_file(const struct by_series *series, const struct by_topology *topology)
{
    char *first = steady_text(series, topology), *second;
    struct by_series *read = NULL;
    struct by_problem problem = {0};

    assert_true(by_series_suits(first, strlen(first)));
    if (by_series_parse(first, strlen(first), topology, &read, &problem) != 0)
        fail_msg("%d:%d: %s", problem.line, problem.column, problem.text);
    second = steady_text(read, topology);
    assert_string_equal(first, second);
    by_series_free(read);
    free(first);
    free(second);
}

static void check_runs(const struct by_series *series, const struct by_topology *topology)
{
    uint32_t stages = by_series_depth(series);

    for (uint32_t times = 1; times <= 128; times *= 2) {
        struct by_series_report report;
        struct by_problem problem = {0};
        mpq_t least;

        by_series_report_init(&report);
        if (by_series_run(series, topology, times * stages, &report, &problem) != 0)
            fail_msg("%s", problem.text);
        mpq_init(least);
        mpq_set_ui(least, times - 1, times); /* 1 - stages / periods */
        assert_true(mpq_cmp_ui(report.ratio, 1, 1) <= 0);
        assert_true(mpq_cmp(report.ratio, least) >= 0);
        if (times > 2)
            assert_true(report.full_periods > 0 && mpz_sgn(report.operations) > 0);
        mpq_clear(least);
        by_series_report_clear(&report);
    }
}

void steady_check(const struct by_series *series, const struct by_topology *topology, enum by_verdict verdict)
{
    struct by_series_verdict checked;

    by_series_check(series, topology, &checked);
    if (checked.verdict == BY_VERDICT_INVALID)
        fail_msg("%s", checked.reason);
    assert_int_equal(checked.verdict, verdict);
    check_file(series, topology);
    check_runs(series, topology);
}

struct by_series *steady_made(const struct by_steady_problem *problem)
{
    struct by_series *series = NULL;
    struct by_problem trouble = {0};

    if (by_steady_make(problem, &series, &trouble) != 0)
        fail_msg("%s", trouble.text);
    steady_check(series, problem->topology, BY_VERDICT_OPTIMAL);
    return series;
}

void steady_assert_rational(const mpq_t value, unsigned long num, unsigned long den)
{
    if (mpq_cmp_ui(value, num, den) != 0) {
        gmp_fprintf(stderr, "%Qd instead of %lu/%lu\n", value, num, den);
        fail();
    }
}
