/*
 * Turns logical edges, with their paths, into the trees of a plan. Removes traffic that branching
 * switches make unnecessary (ForestColl, NSDI'26, section 5.6), drops parts that lead nowhere, and
 * merges equal trees. Each list belongs to one thread.
 */
#ifndef BY_PLANNER_PACK_TREE_H
#define BY_PLANNER_PACK_TREE_H

#include "control/plan/tree_list.h"
#include "control/planner/graph.h"

/*
 * Makes a tree of `path_count` paths and appends it. Parents come before children; each path leads
 * from a node already reached to a new one. If a path passes a switch with graph->branch and no
 * budget, the switch becomes a node of the tree, and later paths through it start there; thus no
 * arc carries more than the paths did. Switches that lead nowhere are removed; switches with one
 * child only forward. A tree used in both directions is re-rooted to minimise its height (a switch
 * is preferred to a compute node): on symmetric links its load does not depend on the root. The
 * caller keeps ownership of the paths.
 */
void by_tree_list_add(struct by_tree_list *list, const struct by_graph *graph, uint32_t root,
                      enum by_tree_use use, struct by_fraction weight, const struct by_path *paths,
                      uint32_t path_count);
/*
 * The same for many trees of one graph, whose paths are given by their numbers in list->paths:
 * faster, since a path that a tree uses as it is keeps its number. One list and one thread at a
 * time.
 */
struct by_tree_shape;
struct by_tree_shape *by_tree_shape_new(const struct by_graph *graph);
void by_tree_shape_free(struct by_tree_shape *shape);
void by_tree_shape_add(struct by_tree_shape *shape, struct by_tree_list *list, uint32_t root,
                       enum by_tree_use use, struct by_fraction weight, const uint32_t *numbers,
                       uint32_t count);
/* Removes loops from a path that passes a node twice; returns the new count. */
uint32_t by_tree_cut_loops(uint32_t *nodes, uint32_t count);
#endif
