/*
 * One cheap tree on a large fabric, in little more than a search: from its root the tree takes in
 * the nearest compute node, with the path to it, until it has all (Takahashi and Matsuyama 1980).
 * Switches that branch become places to go on from; those that only forward are passed as often as
 * it pays. fill.h makes many such trees. One thread for each grower.
 */
#ifndef BY_PLANNER_NETWORK_GROW_H
#define BY_PLANNER_NETWORK_GROW_H

#include "control/plan/plan.h"
#include "control/planner/graph.h"

#define BY_GROW_NONE UINT32_MAX

/* A neighbour of a node, with the arcs that lead there and back (BY_GROW_NONE where there is none).
 */
struct by_grow_link {
    uint32_t to;
    uint32_t there, back;
};

/* What trees load: arcs, numbered by (from, to), and after them one addition at each node. Arrays
 * by that number belong to the caller. */
struct by_grower {
    const struct by_graph *graph[3]; /* by use less one: both ways, up (transposed), down */
    uint32_t node_count;
    uint32_t arc_count;
    uint32_t *first; /* by node, and one more: its links */
    struct by_grow_link *links;
    int64_t *capacity;   /* by arc; then by node: the budget of additions, INT64_MAX without limit */
    uint32_t height_max; /* hops from the root that trees may reach, 0 for any */
    int64_t depth_price; /* what a place costs for each hop from the root: more gives lower trees */
    bool by_depth;       /* shortest paths from the root first of all, and cheap ones among these */
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

struct by_grower *by_grower_new(const struct by_graph *both, const struct by_graph *up,
                                const struct by_graph *down);
void by_grower_free(struct by_grower *grower);
/*
 * Grows a tree of `use` from `root` into grower->paths. `prices` (by arc and node as above; a
 * negative price forbids) are at most 2^34, and depth_price as well. Returns false when not all
 * compute nodes can be reached.
 */
bool by_grower_run(struct by_grower *grower, enum by_tree_use use, uint32_t root, const int64_t *prices);
/* Adds what the last tree, of `use`, loads to `counts`. */
void by_grower_count(const struct by_grower *grower, enum by_tree_use use, int32_t *counts);

#endif
