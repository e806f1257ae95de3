/* Periodic schedules and moves of hosts, of arbitrary bytes, on a small fabric: refused with a
 * text, or checked. Accepted ones are written, read back unchanged, and drawn; valid ones run and
 * are exported. */
#define FABRIC                                                                                               \
    "{\"name\": \"three\", \"nodes\": [{\"name\": \"n0\", \"kind\": \"compute\", \"task_time\": 0.5}, "      \
    "{\"name\": \"n1\", \"kind\": \"compute\", \"task_time\": 1}, "                                          \
    "{\"name\": \"n2\", \"kind\": \"compute\", \"task_time\": 1}, "                                          \
    "{\"name\": \"s\", \"kind\": \"switch\", \"aggregate\": true}], \"links\": "                             \
    "[{\"between\": [\"n0\", \"n1\"], \"bandwidth\": 1}, {\"between\": [\"n0\", \"n2\"], \"bandwidth\": "    \
    "1}, "                                                                                                   \
    "{\"between\": [\"n1\", \"n2\"], \"bandwidth\": 1}, {\"between\": [\"n1\", \"s\"], \"bandwidth\": 3}]}"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control/study/export/moves.h"
#include "control/study/series/run.h"
#include "control/verify/series.h"
#include "control/view/plot/gantt.h"
#include "tests/fuzz/input.h"

static char *text_of(const struct by_series *series, const struct by_topology *topology, bool drawn,
                     size_t *bytes)
{
    char *text = NULL;
    FILE *out = open_memstream(&text, bytes);

    FUZZ_CHECK(out != NULL);
    if (drawn)
        by_gantt_write(series, topology, out);
    else
        FUZZ_CHECK(by_series_write(series, topology, out) == 0);
    fclose(out);
    return text;
}

/* Schedules that the checker accepts can be executed, and hosts can perform them. */
static void use(const struct by_series *series, const struct by_topology *topology)
{
    struct by_series_report report;
    struct by_problem problem = {0};
    struct by_moves moves;

    by_series_report_init(&report);
    FUZZ_CHECK(by_series_run(series, topology, 20, &report, &problem) == 0);
    FUZZ_CHECK(mpq_cmp_ui(report.ratio, 1, 1) <= 0);
    by_series_report_clear(&report);
    if (by_moves_make(series, topology, &moves, &problem) != 0)
        FUZZ_CHECK(problem.text[0] != 0);
    by_moves_free(&moves);
}

static void read_series(const struct by_topology *topology, const char *text, size_t size)
{
    struct by_series *first, *second;
    struct by_series_verdict verdict;
    struct by_problem problem = {0};
    size_t bytes, again;
    char *written, *rewritten;

    if (by_series_parse(text, size, topology, &first, &problem) != 0) {
        FUZZ_CHECK(first == NULL && problem.text[0] != 0);
        return;
    }
    written = text_of(first, topology, false, &bytes);
    FUZZ_CHECK(by_series_suits(written, bytes));
    FUZZ_CHECK(by_series_parse(written, bytes, topology, &second, &problem) == 0);
    rewritten = text_of(second, topology, false, &again);
    FUZZ_CHECK(bytes == again && memcmp(written, rewritten, bytes) == 0);
    free(text_of(first, topology, true, &again));
    by_series_check(first, topology, &verdict);
    if (verdict.verdict == BY_VERDICT_INVALID)
        FUZZ_CHECK(verdict.reason[0] != 0);
    else
        use(first, topology);
    by_series_free(first);
    by_series_free(second);
    free(written);
    free(rewritten);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct by_topology *topology; /* the same for every input */
    struct by_problem problem = {0};
    struct by_moves moves;

    if (topology == NULL)
        FUZZ_CHECK(by_topology_parse(FABRIC, sizeof(FABRIC) - 1, &topology, &problem) == 0);
    read_series(topology, (const char *)data, size);
    if (by_moves_check((const char *)data, size, &moves, &problem) != 0)
        FUZZ_CHECK(problem.text[0] != 0);
    by_moves_free(&moves);
    return 0;
}
