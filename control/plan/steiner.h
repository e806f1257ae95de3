/*
 * The cheapest tree for given prices on a symmetric fabric: it joins all compute nodes, branches only at
 * compute nodes and at switches that may, and passes the others by paths (paying a link once for each
 * passing). Without optional switches this is a minimum spanning tree of shortest paths; a few optional
 * switches are tried in all combinations, more by local search. The allreduce planner prices its columns
 * here. One thread for each pricer.
 */
#ifndef BY_PLAN_STEINER_H
#define BY_PLAN_STEINER_H

#include "control/plan/graph.h"
#include "control/plan/plan.h"

struct by_steiner;

/* The links are the pairs of nodes with capacity, numbered from 0 in order of (lower node, higher node). */
struct by_steiner *by_steiner_new(const struct by_graph *graph);
void by_steiner_free(struct by_steiner *steiner);
uint32_t by_steiner_link_count(const struct by_steiner *steiner);
/* The capacity of each way of link `link`. */
int64_t by_steiner_link_capacity(const struct by_steiner *steiner, uint32_t link);
/* Its two nodes. */
void by_steiner_link_ends(const struct by_steiner *steiner, uint32_t link, uint32_t ends[2]);
/*
 * Finds a tree of least price (prices by link, each at most BY_PRICE_MAX; of equal prices the one with fewer
 * hops). Fills `counts` (by link: how often the tree passes it) and returns the price. `*proved` tells
 * whether no tree is cheaper.
 */
__int128 by_steiner_price(struct by_steiner *steiner, const int64_t *prices, int32_t *counts, bool *proved);
/* The paths of the tree last found, from compute node `*root` outwards. The caller frees each path's nodes
 * and the array. */
struct by_path *by_steiner_paths(const struct by_steiner *steiner, uint32_t *root, uint32_t *path_count);

#endif
