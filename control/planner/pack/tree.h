/*
 * Trees in the making: from logical edges with paths behind them to the trees of a plan. Removes
 * traffic that switches make needless by branching (ForestColl, NSDI'26, section 5.6), drops what
 * leads nowhere, joins equal trees. One thread for each list.
 */
#ifndef BY_PLANNER_PACK_TREE_H
#define BY_PLANNER_PACK_TREE_H

#include "control/plan/tree_list.h"
#include "control/planner/graph.h"

/*
 * Makes a tree of `path_count` paths (parents before children; each path from a node already
 * reached to a new one) and appends it. Where a path passes a switch with graph->branch and no
 * budget, the switch becomes a node of the tree the first time, and later paths through it start
 * there; so no arc carries more than the paths did. Switches that lead nowhere go; switches with
 * one child only forward. A tree used in both directions is turned to the root that makes it lowest
 * (a switch before a compute node): on symmetric links its load does not depend on the root. The
 * paths stay the caller's.
 */
void by_tree_list_add(struct by_tree_list *list, const struct by_graph *graph, uint32_t root,
                      enum by_tree_use use, struct by_fraction weight, const struct by_path *paths,
                      uint32_t path_count);
/* Shortens a path that passes a node twice; returns the new count. */
uint32_t by_tree_cut_loops(uint32_t *nodes, uint32_t count);
#endif
