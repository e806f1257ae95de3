/* Trees of an allreduce by classes whose switches branch: their loads, and the rotations that they
 * need. Used by classes.c only. Each call runs in one thread. */
#ifndef BY_PLANNER_CLASSES_FOLD_H
#define BY_PLANNER_CLASSES_FOLD_H

#include "control/plan/tree_list.h"
#include "control/planner/classes/routes.h"

/*
 * Finds the weight of a tree of weight 1 of the list at which the images of all trees fill the most
 * loaded link, in the unit of the graph, where each tree and its images carry up and down, and all
 * weights are multiples of 1/k. Returns 0 or BY_ERANGE.
 */
int by_fold_weight(const struct by_tree_list *list, const struct by_routes *routes, int64_t k,
                   struct by_fraction *weight);
/*
 * Roots each tree at the switch that joins its outermost parts, and removes the rotations that then
 * leave every tree as it is. Returns by how much the weights have to be multiplied.
 */
int64_t by_fold_trees(struct by_tree_list *list, const struct by_routes *routes,
                      struct by_rotations *rotations);

#endif
