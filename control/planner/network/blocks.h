/*
 * Ordered trees of large fabrics. Ranks that follow each other and hang together (a box, a leaf)
 * are a block; in each block one rank gathers the others, and blocks are joined as a chain or as
 * binary trees whose nodes stand in order (so that a partial sum is always an interval of ranks).
 * Many such trees side by side, each over other ranks of the blocks, use all links. Neighbours:
 * ordered.c, which calls this where its exact program is too large. One thread for each call.
 */
#ifndef BY_PLANNER_NETWORK_BLOCKS_H
#define BY_PLANNER_NETWORK_BLOCKS_H

#include "control/planner/pack/tree.h"

/*
 * Fills the empty list with ordered trees for allreduce, barrier, reduce (to `root`) or
 * reduce-scatter, and sets `*rate`, both in the topology's unit; the best of several ways to form
 * blocks and to join them. `both` is the graph for data that goes both ways. Returns 0,
 * BY_EUNSUPPORTED where ranks that follow each other are joined only through others, or BY_ERANGE.
 */
int by_blocks_make(const struct by_graph *both, unsigned collective, int64_t root, struct by_tree_list *list,
                   struct by_fraction *rate);

#endif
