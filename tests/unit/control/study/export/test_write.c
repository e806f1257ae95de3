/* Every export is executed: it is correct on all fabrics, for all collectives and algorithms. Plans
 * that a format cannot express are refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control/base/fraction.h"
#include "offload/base/errors.h"
#include "tests/unit/control/study/export/make.h"

static const unsigned collectives[] = {BY_COLLECTIVE_ALLGATHER, BY_COLLECTIVE_REDUCE_SCATTER,
                                       BY_COLLECTIVE_ALLREDUCE, BY_COLLECTIVE_BROADCAST,
                                       BY_COLLECTIVE_REDUCE};
static const enum by_algorithm algorithms[] = {BY_ALGORITHM_FOREST, BY_ALGORITHM_RINGS,
                                               BY_ALGORITHM_DOUBLE_BINARY, BY_ALGORITHM_MULTITREE,
                                               BY_ALGORITHM_BLINK};

static void check_right(const struct by_plan *plan, const struct by_topology *topology, const char *format)
{
    struct by_check_report report;
    struct by_problem problem = {0};
    char *text = make_export(plan, topology, format, &problem);

    if (!text)
        fail_msg("%s: %s", topology->name, problem.text);
    if (by_check_text(text, strlen(text), topology, 1, &report, &problem) != 0)
        fail_msg("%s, %s, %s: line %d: %s", topology->name, by_collective_name(plan->collective), format,
                 problem.line, problem.text);
    assert_int_equal(report.collective, plan->collective);
    assert_int_equal(report.rank_count, plan->compute_count);
    if (strcmp(format, "forestcoll") == 0) {
        assert_true(report.has_rate);
        assert_int_equal(by_fraction_compare(report.rate, plan->achieved), 0);
    } else {
        assert_true(report.in_place && report.out_of_place);
        assert_non_null(strstr(text, " minBytes=\"0\" maxBytes=\"1073741824\""));
    }
    free(text);
}

static void every_export_ends_with_the_right_data(void **state)
{
    static const struct {
        const char *name, *parameters[5];
    } fabrics[] = {{"star", {"5", "10"}},     {"ring", {"4", "10"}},          {"hypercube", {"3", "10"}},
                   {"complete", {"4", "10"}}, {"leafspine", {"2", "2", "3"}}, {"rail", {"2", "3"}},
                   {"a100", {"2", "4"}},      {"star", {"2", "3"}},           {"mi250", {"1", "8"}}};
    unsigned count = 0;

    (void)state;
    for (size_t f = 0; f < sizeof(fabrics) / sizeof(fabrics[0]); f++) {
        struct by_topology *topology = rig_preset_list(fabrics[f].name, "none", fabrics[f].parameters);

        for (size_t a = 0; a < sizeof(algorithms) / sizeof(algorithms[0]); a++)
            for (size_t c = 0; c < sizeof(collectives) / sizeof(collectives[0]); c++) {
                struct by_plan *plan = make_plan(topology, algorithms[a], collectives[c]);

                if (!plan)
                    continue;
                check_right(plan, topology, "msccl");
                if (algorithms[a] != BY_ALGORITHM_RINGS || collectives[c] != BY_COLLECTIVE_ALLREDUCE)
                    check_right(plan, topology, "forestcoll");
                by_plan_free(plan);
                count++;
            }
        by_topology_free(topology);
    }
    assert_int_equal(count, 9 * (3 * 5 + 2 * 3));
}

static void trees_that_branch_at_switches_are_refused(void **state)
{
    struct by_topology *topology = rig_preset("star", "all", "4", "10", NULL);
    static const char *const formats[] = {"msccl", "forestcoll"};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct by_plan *plan =
            rig_plan(topology, i ? BY_COLLECTIVE_ALLGATHER : BY_COLLECTIVE_ALLREDUCE, -1, 0, true);
        struct by_problem problem = {0};

        assert_null(make_export(plan, topology, formats[i], &problem));
        assert_non_null(strstr(problem.text, "switch0"));
        assert_non_null(strstr(problem.text, "--in-network none"));
        by_plan_free(plan);
    }
    by_topology_free(topology);
}

static void what_a_format_cannot_say_is_refused(void **state)
{
    struct by_topology *topology = rig_preset("ring", "none", "4", "10", NULL);
    struct by_plan *plan = make_plan(topology, BY_ALGORITHM_RINGS, BY_COLLECTIVE_ALLREDUCE);
    struct by_problem problem = {0};

    (void)state;
    assert_null(make_export(plan, topology, "forestcoll", &problem));
    assert_non_null(strstr(problem.text, "one tree for both"));
    by_plan_free(plan);
    plan = rig_plan(topology, BY_COLLECTIVE_BARRIER, -1, 0, false);
    assert_null(make_export(plan, topology, "msccl", &problem));
    assert_non_null(strstr(problem.text, "barrier"));
    by_plan_free(plan);
    by_topology_free(topology);
}

/* 2 hosts, weights 9999991 and 1: more chunks than 16 bits allow. */
static void too_many_chunks_for_the_format_are_refused(void **state)
{
    struct by_topology *topology = rig_parse(
        "{\"name\": \"two\", \"nodes\": [{\"name\": \"a\", \"kind\": \"compute\"}, {\"name\": \"s\", "
        "\"kind\": \"switch\"}, {\"name\": \"t\", \"kind\": \"switch\"}, {\"name\": \"b\", \"kind\": "
        "\"compute\"}], \"links\": [{\"between\": [\"a\", \"s\"], \"bandwidth\": 9999991}, {\"between\": "
        "[\"s\", \"b\"], \"bandwidth\": 9999991}, {\"between\": [\"a\", \"t\"], \"bandwidth\": 1}, "
        "{\"between\": [\"t\", \"b\"], \"bandwidth\": 1}]}");
    struct by_plan *plan = rig_plan(topology, BY_COLLECTIVE_ALLGATHER, -1, 0, false);
    struct by_problem problem = {0};

    (void)state;
    assert_null(make_export(plan, topology, "msccl", &problem));
    assert_non_null(strstr(problem.text, "32767"));
    assert_non_null(strstr(problem.text, "--fixed-k"));
    check_right(plan, topology, "forestcoll");
    by_plan_free(plan);
    by_topology_free(topology);
}

/* More chunks on one tree than a step may move become several steps. */
static void large_shares_are_cut_into_steps(void **state)
{
    struct by_topology *topology = rig_parse(
        "{\"name\": \"two\", \"nodes\": [{\"name\": \"a\", \"kind\": \"compute\"}, {\"name\": \"s\", "
        "\"kind\": \"switch\"}, {\"name\": \"t\", \"kind\": \"switch\"}, {\"name\": \"b\", \"kind\": "
        "\"compute\"}], \"links\": [{\"between\": [\"a\", \"s\"], \"bandwidth\": 200}, {\"between\": "
        "[\"s\", \"b\"], \"bandwidth\": 200}, {\"between\": [\"a\", \"t\"], \"bandwidth\": 1}, "
        "{\"between\": [\"t\", \"b\"], \"bandwidth\": 1}]}");

    (void)state;
    for (size_t c = 0; c < sizeof(collectives) / sizeof(collectives[0]); c++) {
        struct by_plan *plan = make_plan(topology, BY_ALGORITHM_FOREST, collectives[c]);
        struct by_problem problem = {0};
        char *text = make_export(plan, topology, "msccl", &problem);

        assert_non_null(text);
        assert_non_null(strstr(text, "cnt=\"71\""));
        assert_null(strstr(text, "cnt=\"72\""));
        check_right(plan, topology, "msccl");
        free(text);
        by_plan_free(plan);
    }
    by_topology_free(topology);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_export_ends_with_the_right_data),
        cmocka_unit_test(trees_that_branch_at_switches_are_refused),
        cmocka_unit_test(what_a_format_cannot_say_is_refused),
        cmocka_unit_test(too_many_chunks_for_the_format_are_refused),
        cmocka_unit_test(large_shares_are_cut_into_steps),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
