/*
 * The first trees: found in one search for each root, without flows, so that a plan exists when a
 * time limit passes. Loads decide between paths of equal length; the rate is exact, and often about
 * half of the bound. Each call runs in one thread.
 */
#ifndef BY_PLANNER_NETWORK_FIRST_H
#define BY_PLANNER_NETWORK_FIRST_H

#include "control/plan/plan.h"
#include "control/plan/tree_list.h"
#include "control/planner/graph.h"
#include "control/planner/planner.h"

/*
 * Replaces the trees of `plan` (there may be none), for a collective that carries data one way: for
 * each compute node with data (or for the root) one tree, with a weight in proportion to its data.
 * Sets k and the rate. Returns 0, or with `problem` filled: BY_EINVAL when a compute node cannot be
 * reached, BY_ERANGE.
 */
int by_first_make(const struct by_topology *topology, const struct by_plan_options *options,
                  struct by_plan *plan, struct by_problem *problem);
/*
 * The same for allreduce: a tree, or with `pairs` a pair of trees, from each compute node, of equal
 * weight. Fills the empty list, and `rate` in units of capacity: 0 and no trees when some node
 * cannot be reached. Returns 0 or BY_ERANGE.
 */
int by_first_both(const struct by_graph *both, const struct by_graph *up, const struct by_graph *down,
                  bool pairs, struct by_tree_list *list, struct by_fraction *rate);

#endif
