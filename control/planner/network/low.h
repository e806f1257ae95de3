/* Cheap trees of few hops in small dense graphs. Pure: any thread. */
#ifndef BY_PLANNER_NETWORK_LOW_H
#define BY_PLANNER_NETWORK_LOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Finds a cheap out-tree from `root` over `count` nodes that reaches the first `wanted` of them,
 * none over more than `hops_max` hops. cost[from * count + to] is a price times `hop_scale` plus
 * the hops of the arc (below `hop_scale`), or BY_ARBORESCENCE_NONE; nodes that are not `allowed`
 * stay outside. Sets parent[node], UINT32_MAX for the root and nodes outside; `work` has room for 3
 * x count. The tree grows by the cheapest arc that keeps the limit (Prim 1957), of equal ones by
 * the one with the lowest end, so it need not be the cheapest. False if it finds none.
 */
bool by_low_tree(uint32_t count, uint32_t wanted, const int64_t *cost, int64_t hop_scale, const bool *allowed,
                 uint32_t root, uint32_t hops_max, uint32_t *parent, int64_t *work);

#endif
