/*
 * Bounds by disjoint sets. See parts.h.
 *
 * If no node outside can multicast, all nodes of a tree down are in sets. It has m - 1 or more
 * paths from one set to another, and each leaves a set. The tree up leaves each set but that of the
 * root. Together they pass links that leave sets 2 (m - 1) times. If no node outside can aggregate,
 * the same holds for links that enter sets. If both occur outside, a path may both leave a set and
 * enter another at once, and only links that touch a set count.
 */
#include "control/planner/network/parts.h"

#include "control/base/fraction.h"

struct by_fraction by_parts_bound(const struct by_graph *both, const struct by_graph *up,
                                  const struct by_graph *down, const uint32_t *part, uint32_t part_count)
{
    const struct by_mesh *net = both->net;
    int64_t leaving = 0, entering = 0, touching = 0, least;
    bool compute = false, multicast = false, aggregate = false;
    struct by_fraction bound = {0, 1};

    for (uint32_t i = 0; i < both->node_count; i++)
        if (part[i] >= part_count) {
            compute |= both->compute[i];
            multicast |= down->branch[i];
            aggregate |= up->branch[i];
        }
    for (uint32_t half = 0; half < 2 * net->pair_count; half++) {
        uint32_t from = part[net->tail[half]], to = part[by_mesh_head(net, half)];
        int64_t capacity = net->capacity[half];
        bool crosses = from != to && (from < part_count || to < part_count);

        touching += crosses ? capacity : 0;
        leaving += crosses && from < part_count ? capacity : 0;
        entering += crosses && to < part_count ? capacity : 0;
    }
    least = compute || (multicast && aggregate) ? touching
            : aggregate                         ? leaving
            : multicast || entering < leaving   ? entering
                                                : leaving;
    if (part_count < 2 || by_fraction_set(least, 2 * ((__int128)part_count - 1), &bound) != 0)
        bound = (struct by_fraction){0, 1};
    return bound;
}

uint32_t by_parts_single(const struct by_graph *both, uint32_t *part)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < both->node_count; i++)
        part[i] = both->compute[i] ? count++ : UINT32_MAX;
    return count;
}
