/*
 * Trees in the making: from logical edges with paths behind them to the trees of a plan. Removes traffic that
 * switches make needless by branching (ForestColl, NSDI'26, section 5.6), drops what leads nowhere, joins
 * equal trees. One thread for each list.
 */
#ifndef BY_PLANNER_PACK_TREE_H
#define BY_PLANNER_PACK_TREE_H

#include "control/plan/plan.h"
#include "control/planner/graph.h"

/* A growing list of finished trees, with the table of their paths. All zero is an empty list. */
struct by_tree_list {
    uint32_t count;
    uint32_t room;
    struct by_tree *trees;
    struct by_paths paths;
    size_t edge_count;
    size_t edge_room;
    uint32_t *edges;
};

void by_tree_list_free(struct by_tree_list *list);
/* Moves all trees into `plan`, which has none; the list is empty afterwards. */
void by_tree_list_move(struct by_tree_list *list, struct by_plan *plan);
/* Puts all trees in the place of those that `plan` has; what was said of the old ones (k, heights) goes, and
 * `achieved` is the new ones' rate. The list is empty afterwards. */
void by_tree_list_replace(struct by_tree_list *list, struct by_fraction achieved, struct by_plan *plan);

/*
 * Makes a tree of `path_count` paths (parents before children; each path from a node already reached to a new
 * one) and appends it. Where a path passes a switch with graph->branch and no budget, the switch becomes a
 * node of the tree the first time, and later paths through it start there; so no arc carries more than the
 * paths did. Switches that lead nowhere go; switches with one child only forward. A tree used in both
 * directions is turned to the root that makes it lowest (a switch before a compute node): on symmetric links
 * its load does not depend on the root. The paths stay the caller's.
 */
void by_tree_list_add(struct by_tree_list *list, const struct by_graph *graph, uint32_t root,
                      enum by_tree_use use, struct by_fraction weight, const struct by_path *paths,
                      uint32_t path_count);
/* Appends a tree as it is: `edges` are numbers of paths of the list's table, parents before children. */
void by_tree_list_append(struct by_tree_list *list, uint32_t root, enum by_tree_use use,
                         struct by_fraction weight, const uint32_t *edges, uint32_t edge_count);
/* Appends a copy of tree number `tree` of another list, with the weight given. */
void by_tree_list_copy(struct by_tree_list *list, const struct by_tree_list *from, uint32_t tree,
                       struct by_fraction weight);
/* Shortens a path that passes a node twice; returns the new count. */
uint32_t by_tree_cut_loops(uint32_t *nodes, uint32_t count);
/* Appends pairs of trees of equal root and weight to `list`: the trees of `up` and `down`, which are sorted
 * by root and have equal sums of weights for each. Empties their weights. 0 or BY_ERANGE. */
int by_tree_list_pair(struct by_tree_list *up, struct by_tree_list *down, struct by_tree_list *list);
/* Joins trees that are equal but for their weight, and sorts all by root. */
void by_tree_list_merge(struct by_tree_list *list);

#endif
