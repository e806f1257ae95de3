/* Plan files of arbitrary bytes on a small fabric: both readers, the planner's and the verifier's,
 * accept them or refuse them with a text. */
#define FABRIC                                                                                               \
    "{\"name\": \"f\", \"unit\": \"GB/s\", \"nodes\": [{\"name\": \"a\", \"kind\": \"compute\"}, "           \
    "{\"name\": \"b\", \"kind\": \"compute\"}, "                                                             \
    "{\"name\": \"s\", \"kind\": \"switch\", \"multicast\": true, \"aggregate\": true}], \"links\": "        \
    "[{\"between\": [\"a\", \"s\"], "                                                                        \
    "\"bandwidth\": 10}, {\"between\": [\"b\", \"s\"], \"bandwidth\": 10}]}"
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "control/plan/plan.h"
#include "control/verify/verify.h"
#include "control/view/plot/picture.h"
#include "tests/fuzz/input.h"

static void draw(const struct by_topology *topology, const struct by_plan *plan)
{
    struct by_fabric *fabric = by_fabric_make(topology, plan, -1, BY_PLOT_TREES_MAX);
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);

    FUZZ_CHECK(out != NULL);
    by_picture_write(fabric, out);
    by_dot_write(fabric, out);
    fclose(out);
    free(text);
    by_fabric_free(fabric);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct by_topology *topology; /* the same for every input */
    struct by_problem problem = {0};
    struct by_verify_report report;
    struct by_plan *plan = NULL;
    char path[64];
    int file = memfd_create("plan", MFD_CLOEXEC);

    if (topology == NULL)
        FUZZ_CHECK(by_topology_parse(FABRIC, sizeof(FABRIC) - 1, &topology, &problem) == 0);
    if (by_verify_text(topology, (const char *)data, size, &report, &problem) != 0)
        FUZZ_CHECK(problem.text[0] != 0);
    else
        FUZZ_CHECK(report.verdict != BY_VERDICT_INVALID || report.reason[0] != 0);
    FUZZ_CHECK(file >= 0 && write(file, data, size) == (ssize_t)size);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
    if (by_plan_read(path, topology, &plan, &problem) == 0)
        draw(topology, plan);
    else
        FUZZ_CHECK(plan == NULL && problem.text[0] != 0);
    by_plan_free(plan);
    close(file);
    return 0;
}
