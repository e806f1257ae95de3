/* Fabrics as LMR's platforms. See platform.h. */
#include "control/study/steady/platform.h"

#include "control/study/series/rational.h"

struct by_platform *by_platform_new(const struct by_topology *topology, enum by_series_ports ports)
{
    struct by_platform *platform = by_alloc(1, sizeof(*platform));

    platform->topology = topology;
    platform->ports = ports;
    platform->links = by_links_new(topology);
    platform->cost = by_rationals_new(platform->links->count);
    for (uint32_t i = 0; i < platform->links->count; i++) {
        mpq_set_si(platform->cost[i], topology->scale, (unsigned long)platform->links->capacity[i]);
        mpq_canonicalize(platform->cost[i]);
    }
    return platform;
}

void by_platform_free(struct by_platform *platform)
{
    if (!platform)
        return;
    by_rationals_free(platform->cost, platform->links->count);
    by_links_free(platform->links);
    free(platform);
}

bool by_platform_computes(const struct by_platform *platform, uint32_t node)
{
    const struct by_node *kind = &platform->topology->nodes[node];

    return kind->has_task_time || (!kind->compute && kind->aggregate);
}

void by_platform_task_time(const struct by_platform *platform, uint32_t node, const mpq_t size, mpq_t time)
{
    const struct by_node *kind = &platform->topology->nodes[node];

    if (kind->has_task_time) {
        by_rational_set(time, kind->task_time);
    } else if (kind->aggregate_rate.num > 0) {
        by_rational_set(time, kind->aggregate_rate);
        mpq_div(time, size, time);
    } else {
        mpq_set_ui(time, 0, 1); /* adds at the rate at which its links bring data */
    }
}
