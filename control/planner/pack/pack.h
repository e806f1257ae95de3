/*
 * Tree packing: spanning out-trees with multiplicity, together within the capacities. There are
 * three methods:
 *
 * - Trees over one relay, where a switch joins nodes with different numbers of trees
 *   (pack_relay.c).
 * - Trees along fixed orders of the nodes, which are shallow and quick to find where they exist
 *   (pack_order.c).
 * - Growth of one bundle of equal trees after the other, which always succeeds (pack_grow.c;
 *   ForestColl, NSDI'26, section 5.4, algorithm 4 and theorem 10, after Edmonds, Tarjan, Schrijver,
 *   Berczi and Frank). The problem is divided along tight sets as they appear.
 *
 * Each call runs in one thread.
 */
#ifndef BY_PLANNER_PACK_PACK_H
#define BY_PLANNER_PACK_PACK_H

#include "control/planner/flow/reach.h"

/* Bundles of equal trees. Bundle b has `counts[b]` trees rooted at `roots[b]`; its halves, parents
 * before children, start at halves[b * (node_count - 1)]. */
struct by_packing {
    uint32_t node_count;
    uint32_t count;
    uint32_t room;
    uint32_t *roots;
    int64_t *counts;
    uint32_t *halves;
};

/*
 * Packs roots[v] trees rooted at each v, all spanning the net. The oracle must pass with all nodes
 * as targets. `deadline` is a time of by_plan_clock, 0 for none; after it, returns BY_ETIMEDOUT.
 * The caller releases the result in both cases.
 */
int by_pack_run(const struct by_mesh *net, const int64_t *roots, double deadline, struct by_packing *packing);
void by_pack_free(struct by_packing *packing);

/* The methods. by_pack_relay and by_pack_order return whether they found all trees; if not, they
 * add none. by_pack_grow adds to the existing bundles. */
bool by_pack_relay(const struct by_mesh *net, const int64_t *roots, struct by_packing *packing);
bool by_pack_order(const struct by_mesh *net, const int64_t *roots, double deadline,
                   struct by_packing *packing);
int by_pack_grow(const struct by_mesh *net, const int64_t *roots, double deadline,
                 struct by_packing *packing);
/* Adds a bundle; returns the address where the caller writes its halves. */
uint32_t *by_pack_append(struct by_packing *packing, uint32_t root, int64_t count);

#endif
