/*
 * Limits of addition: a switch with `aggregate_rate` adds no more than that. A switch with c
 * children does c - 1 additions for each unit of a tree's weight. The programs of allreduce have
 * these limits as rows; trees that are packed without them are checked here. Each call runs in one
 * thread.
 */
#ifndef BY_PLANNER_NETWORK_BUDGET_H
#define BY_PLANNER_NETWORK_BUDGET_H

#include "control/planner/pack/forest.h"

/* Whether the trees keep all limits; marks the switches over their limit in `over` (by node, may be
 * NULL). */
bool by_budget_kept(const struct by_tree_list *list, const struct by_topology *topology, bool *over);
/*
 * by_forest_make that keeps the limits: switches that would exceed them only forward in `graph`
 * from then on (graph->branch). On balanced fabrics this does not reduce the rate of trees rooted
 * at compute nodes (ForestColl, NSDI'26, section 5.6). `list` must be empty; `graph` is
 * forest->graph.
 */
int by_budget_forest(const struct by_forest *forest, struct by_graph *graph, struct by_tree_list *list,
                     struct by_plan *plan, struct by_problem *problem);

#endif
