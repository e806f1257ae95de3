/* Implements make.h. */
#include "tests/unit/control/study/export/make.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "offload/base/errors.h"

struct by_plan *make_plan(const struct by_topology *topology, enum by_algorithm algorithm,
                          unsigned collective)
{
    bool rooted = collective == BY_COLLECTIVE_BROADCAST || collective == BY_COLLECTIVE_REDUCE;
    struct by_baseline_options options = {
        .algorithm = algorithm, .collective = collective, .root = -1, .keep = true};
    struct by_plan *reference;
    struct by_baseline result;
    struct by_problem problem = {0};
    int error;

    for (uint32_t i = 0; i < topology->node_count && rooted; i++)
        if (topology->nodes[i].compute)
            options.root = i;
    reference = rig_plan(topology, collective, options.root, 0, false);
    if (algorithm == BY_ALGORITHM_FOREST)
        return reference;
    error = by_baseline_make(topology, &options, reference, &result, &problem);
    by_plan_free(reference);
    if (error && error != BY_EUNSUPPORTED)
        fail_msg("%s", problem.text);
    return error ? NULL : result.plan;
}

char *make_export(const struct by_plan *plan, const struct by_topology *topology, const char *format,
                  struct by_problem *problem)
{
    struct by_export_options options = {.name = "test", .max_bytes = 1 << 30};
    char *text = NULL;
    size_t bytes = 0;
    FILE *stream = open_memstream(&text, &bytes);
    int error;

    assert_non_null(stream);
    error = (strcmp(format, "msccl") == 0 ? by_export_msccl : by_export_forestcoll)(plan, topology, &options,
                                                                                    stream, problem);
    fclose(stream);
    if (!error)
        return text;
    assert_true(problem->text[0] != '\0');
    free(text);
    return NULL;
}
