/*
 * Grows the trees of a plan by classes: from the root to the nodes that correspond to it in the
 * other parts, level by level from the outermost, and in the innermost parts along the trees of
 * inner.h. Used by classes.c only. Each grower belongs to one thread.
 */
#ifndef BY_PLANNER_CLASSES_CLASS_TREES_H
#define BY_PLANNER_CLASSES_CLASS_TREES_H

#include "control/plan/tree_list.h"
#include "control/planner/classes/inner.h"
#include "control/planner/classes/routes.h"

struct by_class_trees {
    const struct by_routes *routes;
    const struct by_inner *inner;
    enum by_tree_use use;
    /* switches that multicast and aggregate are nodes of the trees, and join the parts around
     * them */
    bool branching;
    struct by_tree_list *list; /* receives the trees */
    /* private */
    uint32_t rank;                      /* number among the ranks */
    uint32_t *choice[BY_ROTATIONS_MAX]; /* by edge of all copies: the route */
    uint32_t place[BY_ROTATIONS_MAX];
    uint32_t edge_count, *edges;
    bool *reached; /* by node: it is a node of the tree */
    uint32_t *nodes, *part;
};

void by_class_trees_init(struct by_class_trees *grower, const struct by_routes *routes,
                         const struct by_inner *inner, enum by_tree_use use, bool branching,
                         struct by_tree_list *list);
void by_class_trees_free(struct by_class_trees *grower);
/* Adds the trees of all ranks, each of `weight` (times its part of the data, with inner trees).
 * Returns 0, BY_ERANGE when a weight does not fit, or BY_ELIMIT when there are too many edges. */
int by_class_trees_grow(struct by_class_trees *grower, struct by_fraction weight);
/* Whether a switch may join parts in trees that carry up and down. */
bool by_class_trees_join(const struct by_graph *graph, uint32_t node);

#endif
