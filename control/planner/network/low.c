/* Cheap trees of few hops. See low.h. */
#include "control/planner/network/low.h"

#include "control/planner/network/arborescence.h"

/* Offers the arcs from a node that the tree has just reached to the nodes outside. */
static void offer_arcs(uint32_t count, const int64_t *cost, int64_t hop_scale, uint32_t from,
                       uint32_t hops_max, uint32_t *parent, const int64_t *depth, int64_t *price,
                       int64_t *hops)
{
    const int64_t *arcs = &cost[(size_t)from * count];

    for (uint32_t i = 0; i < count; i++) {
        int64_t at;

        if (depth[i] >= 0 || arcs[i] == BY_ARBORESCENCE_NONE)
            continue;
        at = depth[from] + arcs[i] % hop_scale;
        if (at > hops_max || arcs[i] / hop_scale > price[i] ||
            (arcs[i] / hop_scale == price[i] && at >= hops[i]))
            continue;
        price[i] = arcs[i] / hop_scale;
        hops[i] = at;
        parent[i] = from;
    }
}

bool by_low_tree(uint32_t count, uint32_t wanted, const int64_t *cost, int64_t hop_scale, const bool *allowed,
                 uint32_t root, uint32_t hops_max, uint32_t *parent, int64_t *work)
{
    int64_t *depth = work, *price = work + count, *hops = work + 2 * count;
    uint32_t missing = wanted - (root < wanted), from = root;

    for (uint32_t i = 0; i < count; i++) {
        depth[i] = -1;
        price[i] = INT64_MAX;
        parent[i] = UINT32_MAX;
    }
    depth[root] = 0;
    while (missing > 0) {
        uint32_t next = UINT32_MAX;

        offer_arcs(count, cost, hop_scale, from, hops_max, parent, depth, price, hops);
        for (uint32_t i = 0; i < count; i++)
            if (depth[i] < 0 && parent[i] != UINT32_MAX && (i < wanted || !allowed || allowed[i]) &&
                (next == UINT32_MAX || price[i] < price[next] ||
                 (price[i] == price[next] && hops[i] < hops[next])))
                next = i;
        if (next == UINT32_MAX)
            return false;
        depth[next] = hops[next];
        missing -= next < wanted;
        from = next;
    }
    for (uint32_t i = 0; i < count; i++)
        if (depth[i] < 0)
            parent[i] = UINT32_MAX;
    return true;
}
