/*
 * Ordered trees of large fabrics. Consecutive ranks that are connected (a box, a leaf switch) form
 * a block. In each block one rank gathers the others. Blocks are joined as a chain, or as binary
 * trees whose nodes are in rank order, so that a partial sum is always an interval of ranks. Many
 * such trees side by side, each with different ranks of the blocks as gatherers, use all links.
 * Neighbours: ordered.c, which calls this when its exact program would be too large. Each call runs
 * in one thread.
 */
#ifndef BY_PLANNER_NETWORK_BLOCKS_H
#define BY_PLANNER_NETWORK_BLOCKS_H

#include "control/planner/pack/tree.h"

/*
 * Fills the empty list with ordered trees for allreduce, barrier, reduce (to `root`) or
 * reduce-scatter, and sets `*rate`, both in the topology's unit. Chooses the best of several ways
 * to form and join blocks. `both` is the graph for data in both directions. Returns 0,
 * BY_EUNSUPPORTED when consecutive ranks are connected only through other ranks, or BY_ERANGE.
 */
int by_blocks_make(const struct by_graph *both, unsigned collective, int64_t root, struct by_tree_list *list,
                   struct by_fraction *rate);

#endif
