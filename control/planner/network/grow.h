/*
 * Grows one cheap tree on a large fabric, in little more time than one search: starting at its
 * root, the tree repeatedly adds the nearest compute node, with the path to it, until it has all of
 * them (Takahashi and Matsuyama 1980). Branching switches on the tree become starting points of
 * further paths; switches that only forward may be passed repeatedly. fill.h makes many such trees.
 * Each grower belongs to one thread.
 */
#ifndef BY_PLANNER_NETWORK_GROW_H
#define BY_PLANNER_NETWORK_GROW_H

#include "control/plan/plan.h"
#include "control/planner/graph.h"

#define BY_GROW_NONE UINT32_MAX

/* A neighbour of a node, with the arcs to it and back (BY_GROW_NONE if there is none). */
struct by_grow_link {
    uint32_t to;
    uint32_t there, back;
};

/* The resources that trees load: arcs, numbered by (from, to), then one addition at each node.
 * Arrays indexed by that number belong to the caller. */
struct by_grower {
    const struct by_graph *graph[3]; /* by use - 1: both directions, up (transposed), down */
    uint32_t node_count;
    uint32_t arc_count;
    uint32_t *first; /* by node, plus one: its first link */
    struct by_grow_link *links;
    int64_t *capacity;   /* by arc; then by node: the budget of additions, INT64_MAX without limit */
    uint32_t height_max; /* hops from the root that trees may reach, 0 for any */
    int64_t depth_price; /* price of a starting point per hop from the root: higher means lower trees */
    bool by_depth;       /* shortest paths from the root first, and the cheapest among them */
    /* The last tree. */
    uint32_t path_count;
    struct by_path *paths; /* views into `nodes`, from the root outwards */
    uint32_t *nodes;
    uint32_t *children; /* by node */
    /* The search. */
    int64_t *distance;
    uint32_t *previous;
    bool *inside;
    uint32_t *depth; /* by node inside */
    uint32_t heap_count, heap_room;
    struct by_grow_entry *heap;
};

/* Sparse graphs suffice. */
struct by_grower *by_grower_new(const struct by_graph *both, const struct by_graph *up,
                                const struct by_graph *down);
void by_grower_free(struct by_grower *grower);
/*
 * Grows a tree of `use` from `root` into grower->paths. `prices` (by arc and node as above; a
 * negative price forbids) and depth_price are at most 2^34. Returns false when not all compute
 * nodes can be reached.
 */
bool by_grower_run(struct by_grower *grower, enum by_tree_use use, uint32_t root, const int64_t *prices);
/* Adds the loads of the last tree, of `use`, to `counts`. */
void by_grower_count(const struct by_grower *grower, enum by_tree_use use, int32_t *counts);

#endif
