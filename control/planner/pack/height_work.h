/* The state of lowering trees: a table of every node's parent, and the users of the links of each
 * node. Shared by height.c and height_move.c. Each by_height_work belongs to one thread. */
#ifndef BY_PLANNER_PACK_HEIGHT_WORK_H
#define BY_PLANNER_PACK_HEIGHT_WORK_H

#include "control/planner/pack/forest.h"

/* The parent of a root, and of nodes outside. */
#define BY_HEIGHT_NONE UINT32_MAX
/* Nodes of a new path (count). */
#define BY_HEIGHT_PATH_MAX 24u

/* An edge that starts at some node: its tree, and the node that it leads to. */
struct by_height_use {
    uint32_t tree;
    uint32_t node;
};

struct by_height_uses {
    uint32_t count, room;
    struct by_height_use *uses;
};

/* A new place for a branch: the path to it, and the path that another tree takes in exchange. */
struct by_height_move {
    uint32_t tree, node;
    uint32_t arrival; /* of the branch, in hops from the root */
    uint32_t gain;    /* hops by which it arrives earlier */
    bool enough;      /* the branch then ends within the target */
    bool exchange;
    uint32_t other, other_node;
    uint32_t count, other_count;
    uint32_t nodes[BY_HEIGHT_PATH_MAX], other_nodes[BY_HEIGHT_PATH_MAX];
};

struct by_height_work {
    const struct by_graph *graph;
    const int64_t *capacity;
    struct by_paths *paths;
    int64_t *room; /* by half: unused capacity */
    uint32_t node_count, tree_count;
    uint32_t *number; /* by tree: its number in the list */
    uint32_t *root;   /* by tree */
    int64_t *amount;  /* by tree: equal trees */
    uint32_t *height; /* by tree: hops */
    bool *touched;    /* by tree */
    /* Tables: [tree * node_count + node]. */
    uint32_t *parent;  /* the path from the parent */
    uint32_t *place;   /* the edge's position among the uses of its first node */
    uint16_t *arrival; /* hops from the root */
    uint16_t *below;   /* hops to the farthest node of the branch */
    uint16_t *children;
    struct by_height_uses *leaving; /* by node */
    uint32_t target;                /* a tree of at most this height is low enough */
    uint64_t steps, steps_max;
    /* The last surveyed tree: its nodes, parents first. */
    uint32_t *order, order_count;
    uint32_t *first_child, *next_child;
    /* A search, by node. */
    uint32_t *seen, *towards, *queue, stamp;
};

static inline size_t by_height_cell(const struct by_height_work *work, uint32_t tree, uint32_t node)
{
    return (size_t)tree * work->node_count + node;
}
/* Subtracts `amount` from the room of each hop of a path. */
void by_height_load(struct by_height_work *work, uint32_t path, int64_t amount);
/* Recomputes the order, arrivals, branches and height of a tree. */
void by_height_survey(struct by_height_work *work, uint32_t tree);
/* Finds a place nearer to the root for the branch at `node` of `tree`, the last surveyed tree.
 * Returns false when there is none. */
bool by_height_find(struct by_height_work *work, uint32_t tree, uint32_t node, struct by_height_move *move);
/* Moves the branch there. Surveys the trees that change, `move->tree` last. */
void by_height_hang(struct by_height_work *work, const struct by_height_move *move);

#endif
