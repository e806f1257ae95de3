/* A growing list of finished trees, which becomes the trees of a plan. Each list belongs to one
 * thread. */
#ifndef BY_PLAN_TREE_LIST_H
#define BY_PLAN_TREE_LIST_H

#include "control/plan/plan.h"

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
/* Moves all trees into `plan`, which must have none; the list is empty afterwards. */
void by_tree_list_move(struct by_tree_list *list, struct by_plan *plan);
/* The same where every path is used, without numbering the paths again. */
void by_tree_list_give(struct by_tree_list *list, struct by_plan *plan);
/* Replaces the trees of `plan` by those of the list. Clears the properties of the old trees (k,
 * heights), and sets `achieved` to the rate of the new ones. The list is empty afterwards. */
void by_tree_list_replace(struct by_tree_list *list, struct by_fraction achieved, struct by_plan *plan);

/* Appends a tree unchanged: `edges` are numbers of paths of the list's table, parents before
 * children. */
void by_tree_list_append(struct by_tree_list *list, uint32_t root, enum by_tree_use use,
                         struct by_fraction weight, const uint32_t *edges, uint32_t edge_count);
/* Appends a copy of tree number `tree` of another list, with the weight given. */
void by_tree_list_copy(struct by_tree_list *list, const struct by_tree_list *from, uint32_t tree,
                       struct by_fraction weight);
/* The hops from the root of a tree to its farthest node, on a fabric of `node_count` nodes. */
uint32_t by_tree_list_height(const struct by_tree_list *list, uint32_t tree, uint32_t node_count);
/* Appends pairs of trees of equal root and weight to `list`: the trees of `up` and `down`, which
 * must be sorted by root and have equal sums of weights for each root. Sets their weights to 0.
 * Returns 0 or BY_ERANGE. */
int by_tree_list_pair(struct by_tree_list *up, struct by_tree_list *down, struct by_tree_list *list);
/* Merges trees that are equal except for their weight, and sorts all by root. */
void by_tree_list_merge(struct by_tree_list *list);

#endif
