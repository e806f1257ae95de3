/* Schedules of arbitrary bytes, MSCCL XML or ForestColl's tree XML, without a fabric and on a small
 * one: each is executed, or refused with a text. */
#define FABRIC                                                                                               \
    "{\"name\": \"f\", \"unit\": \"GB/s\", \"nodes\": [{\"name\": \"a\", \"kind\": \"compute\"}, "           \
    "{\"name\": \"b\", \"kind\": \"compute\"}], \"links\": [{\"between\": [\"a\", \"b\"], \"bandwidth\": 10}]}"
#include "control/study/export/check.h"
#include "tests/fuzz/input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct by_topology *topology; /* the same for every input */
    struct by_problem problem = {0};
    struct by_check_report report;

    if (topology == NULL)
        FUZZ_CHECK(by_topology_parse(FABRIC, sizeof(FABRIC) - 1, &topology, &problem) == 0);
    for (int with = 0; with < 2; with++) {
        problem = (struct by_problem){0};
        if (by_check_text((const char *)data, size, with ? topology : NULL, 1, &report, &problem) != 0)
            FUZZ_CHECK(problem.text[0] != 0);
        else
            FUZZ_CHECK(report.rank_count > 0 && report.chunk_count > 0);
    }
    return 0;
}
