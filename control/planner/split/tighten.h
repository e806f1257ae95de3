/*
 * Makes sets tight. Non-blocking fabrics, and fabrics that lost links, have few tight sets; packing
 * them is hard and yields deep trees. Useless capacity is therefore removed first: the capacity
 * across the border of each cluster (cluster.h) is lowered to exactly what the trees need, and
 * restored if a cut is violated. Each call runs in one thread.
 */
#ifndef BY_PLANNER_SPLIT_TIGHTEN_H
#define BY_PLANNER_SPLIT_TIGHTEN_H

#include "control/planner/split/cluster.h"
#include "control/planner/split/laminar.h"

/*
 * Lowers `capacity` (by half), keeping every cut condition (for the members) and the balance of
 * each node. Fills `clusters` with the sets that are tight now, pairwise disjoint or nested.
 * Changes nothing if the capacities of some pair differ between its two directions.
 */
void by_tighten(const struct by_mesh *net, int64_t *capacity, const int64_t *roots, const bool *member,
                const bool *compute, struct by_clusters *clusters);
/* Makes a group of each cluster. The family is new and has the capacities that by_tighten left. */
void by_tighten_insert(struct by_laminar *laminar, const struct by_clusters *clusters);

#endif
