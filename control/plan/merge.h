/* Equal trees of a plan, and how many trees share the data of one rank. Each call runs in one
 * thread. */
#ifndef BY_PLAN_MERGE_H
#define BY_PLAN_MERGE_H

#include "control/plan/plan.h"

/*
 * Merges trees that have the same root, use and paths, in whatever order their edges are, into the
 * first of them, with the sum of their weights; pairs only as wholes. Returns how many trees it
 * removed. Order and weights of all other trees stay.
 */
uint32_t by_plan_merge(struct by_plan *plan);
/* Whether the trees are pairs: one that carries up, then one of equal root that carries down. */
bool by_plan_is_pairs(const struct by_plan *plan);
/* Returns the number of trees over which the data of one rank is split: the most trees with one
 * root, or for allreduce and barrier, whose data is on every tree, all trees (pairs count once). */
uint32_t by_plan_trees_each(const struct by_plan *plan, uint32_t node_count);

#endif
