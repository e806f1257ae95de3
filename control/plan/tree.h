/*
 * Trees in the making: from logical edges with paths behind them to the trees of a plan. Removes traffic that
 * switches make needless by branching (ForestColl, NSDI'26, section 5.6), drops what leads nowhere, joins
 * equal trees. One thread for each list.
 */
#ifndef BY_PLAN_TREE_H
#define BY_PLAN_TREE_H

#include "control/plan/graph.h"
#include "control/plan/plan.h"

/* A growing list of finished trees. */
struct by_tree_list {
    uint32_t count;
    uint32_t room;
    struct by_tree *trees;
};

void by_tree_list_free(struct by_tree_list *list);
void by_tree_free(struct by_tree *tree);

/*
 * Makes a tree of `path_count` paths (parents before children; each path from a node already reached to a new
 * one) and appends it. Where a path passes a switch with graph->branch, the switch becomes a node of the tree
 * the first time, and later paths through it start there; so no arc carries more than the paths did. Switches
 * that lead nowhere go; switches with one child only forward. A tree used in both directions is turned to the
 * root that makes it lowest (a switch before a compute node): on symmetric links its load does not depend on
 * the root. The paths stay the caller's.
 */
void by_tree_list_add(struct by_tree_list *list, const struct by_graph *graph, uint32_t root,
                      enum by_tree_use use, struct by_fraction weight, const struct by_path *paths,
                      uint32_t path_count);
/* Joins trees that are equal but for their weight. */
void by_tree_list_merge(struct by_tree_list *list);
/* Hops from the root to the farthest node, on physical links. */
uint32_t by_tree_height(const struct by_tree *tree, uint32_t node_count);

#endif
