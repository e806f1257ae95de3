/* Implements rig.h. */
#include "tests/unit/control/planner/rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control/base/fraction.h"
#include "control/fabric/preset/preset.h"
#include "control/planner/planner.h"

struct by_topology *rig_parse(const char *json)
{
    struct by_topology *topology;
    struct by_problem problem = {0};

    if (by_topology_parse(json, strlen(json), &topology, &problem) != 0)
        fail_msg("%d:%d: %s", problem.line, problem.column, problem.text);
    return topology;
}

struct by_topology *rig_preset_list(const char *name, const char *capable, const char *const *parameters)
{
    const char *texts[BY_PRESET_PARAMETERS_MAX] = {NULL};
    struct by_topology *topology;
    struct by_problem problem = {0};

    for (size_t i = 0; i < BY_PRESET_PARAMETERS_MAX && parameters[i]; i++)
        texts[i] = parameters[i];
    if (by_preset_make(by_preset_find(name), texts, capable, &topology, &problem) != 0)
        fail_msg("%s: %s", name, problem.text);
    return topology;
}

struct by_plan *rig_plan(const struct by_topology *topology, unsigned collective, int64_t root,
                         int64_t fixed_k, bool in_network)
{
    struct by_plan_options options = {
        .collective = collective, .root = root, .fixed_k = fixed_k, .in_network = in_network};
    struct by_problem problem = {0};
    struct by_plan *plan;

    if (by_plan_make(topology, &options, &plan, &problem) != 0)
        fail_msg("%s on %s: %s", by_collective_name(collective), topology->name, problem.text);
    return plan;
}

char *rig_text(const struct by_plan *plan, const struct by_topology *topology)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *stream = open_memstream(&text, &bytes);

    assert_non_null(stream);
    assert_int_equal(by_plan_write(plan, topology, stream), 0);
    fclose(stream);
    return text;
}

void rig_verify(const struct by_plan *plan, const struct by_topology *topology, enum by_verdict verdict)
{
    struct by_verify_report report;
    struct by_problem problem = {0};
    char *text = rig_text(plan, topology);

    if (by_verify_text(topology, text, strlen(text), &report, &problem) != 0)
        fail_msg("%s", problem.text);
    if (report.verdict != verdict)
        fail_msg("%s on %s: verdict %d instead of %d: %s", by_collective_name(plan->collective),
                 topology->name, (int)report.verdict, (int)verdict, report.reason);
    free(text);
}

struct by_plan *rig_verified(const struct by_topology *topology, unsigned collective, int64_t root,
                             int64_t fixed_k, bool in_network, enum by_verdict verdict)
{
    struct by_plan *plan = rig_plan(topology, collective, root, fixed_k, in_network);

    rig_verify(plan, topology, verdict);
    return plan;
}

void rig_assert_fraction(struct by_fraction value, int64_t num, int64_t den)
{
    struct by_fraction expected = {num, den};

    if (by_fraction_compare(value, expected) != 0)
        fail_msg("%lld/%lld instead of %lld/%lld", (long long)value.num, (long long)value.den, (long long)num,
                 (long long)den);
}
