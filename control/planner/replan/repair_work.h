/*
 * The state of a repair: the tree in work, by node, and the loads of links. repair.c decides which
 * branches move, repair_move.c finds places for them (repair_leaf.c for single leaves),
 * repair_tree.c reads and writes trees and counts loads. Each job belongs to one thread.
 */
#ifndef BY_PLANNER_REPLAN_REPAIR_WORK_H
#define BY_PLANNER_REPLAN_REPAIR_WORK_H

#include "control/planner/replan/repair.h"

/* Values of a path to a node: of a detached node (LOOSE), and of the root and of nodes outside
 * (OUTSIDE). */
#define BY_REPAIR_LOOSE   (UINT32_MAX - 1)
#define BY_REPAIR_OUTSIDE UINT32_MAX
/* Maximum of hops of a new path. */
#define BY_REPAIR_HOPS_MAX 8u

/* Nodes next to the root that are looked at first, as neighbours of a switch with over twice as
 * many (count). */
#define BY_REPAIR_FIRST_MAX 48u

/* Links that branches do not return to for so many pushes (count). */
#define BY_REPAIR_PUSHES_KEPT 8u

struct repair_work {
    struct by_repair *repair;
    uint32_t n;
    uint8_t *unfit; /* by path: bits of uses in which it may have to go */
    uint32_t unfit_count;
    uint32_t forced; /* branches that were attached over overloaded links (count) */
    bool pushes;     /* a branch without a place may overload another link, and others leave that */
    uint32_t full_halves[BY_REPAIR_PUSHES_KEPT]; /* that branches were pushed from, latest at push_count */
    uint32_t push_count;                         /* in this try */
    uint32_t trees_max;               /* trees that are split no further to remove overloads (count) */
    uint32_t height;                  /* of the highest tree that was read, in hops */
    uint32_t leaf_count, leaf_losses; /* trees with one leaf to move; those that had to be read */
    /* the tree in work */
    enum by_tree_use use;
    uint32_t root;
    int64_t amount;
    uint32_t *path;  /* by node: the path from its parent */
    uint32_t *was;   /* by loose node: the path that was taken off */
    uint32_t *depth; /* by node connected to the root; UINT32_MAX elsewhere */
    uint32_t *kids;  /* by node: children that are attached to it (count) */
    uint32_t *order; /* its nodes but the root */
    uint32_t order_count;
    uint32_t *loose;
    uint32_t loose_count;
    uint32_t *moved; /* nodes that were loose, in the order in which they were attached */
    uint32_t moved_count;
    uint32_t high; /* of the branches that were attached: see repair_place */
    bool changed;  /* differs from its list of edges */
    bool simple;   /* only leaves were moved, and nothing was removed */
    bool switches; /* some node is a switch */
    bool listed;   /* first_child and next_child are those of the tree */
    uint32_t *first_child, *next_child;
    uint32_t *above; /* by node: the old parent, where branches must stay below it */
    /* scratch of walks and searches */
    uint32_t *queue, *branch, *placed, *seen, round;
    uint32_t *cursor;  /* by node: the neighbour at which the next search begins */
    uint32_t *enough;  /* by node: the cost of the last place of its branch; another one will do */
    uint32_t *down;    /* by node of a branch: hops from its first node */
    uint32_t *turns;   /* by node of a branch: edges that are reversed if it starts there */
    int64_t *limit;    /* by node of a branch: spare capacity for that */
    uint32_t *towards; /* by node: the next node on the path to the branch */
    int64_t *wide;     /* by node: spare capacity of that path */
    uint32_t *full;    /* by node: fullness of the fullest hop on that path */
};

/* The best place found for a branch. */
struct repair_place {
    int64_t amount;
    uint32_t turns; /* edges of the branch that are reversed, and hops above the usual height */
    uint32_t start; /* node of the branch */
    uint32_t cost;
    uint32_t high; /* at most so many hops lead from the root to a node of the branch */
    uint32_t node_count;
    uint32_t nodes[BY_REPAIR_HOPS_MAX + 2]; /* the path: from a node of the tree to `start` */
};

/* Whether a tree of this use loads the half from parent to child (runs_down) or the half back
 * (runs_up). */
static inline bool by_repair_runs_down(enum by_tree_use use)
{
    return use != BY_TREE_UP;
}

static inline bool by_repair_runs_up(enum by_tree_use use)
{
    return use != BY_TREE_DOWN;
}

/* Returns the spare capacity of a hop from parent to child, in the directions that the tree uses.
 */
static inline int64_t by_repair_room(const struct by_repair *repair, enum by_tree_use use, uint32_t half)
{
    int64_t down = repair->room[half], up = repair->room[half ^ 1];

    if (!by_repair_runs_down(use))
        return up;
    return by_repair_runs_up(use) && up < down ? up : down;
}

/* Whether the half may have spare capacity for an old tree. */
static inline bool by_repair_is_open(const struct by_repair *repair, uint32_t half)
{
    return repair->room[half] >= repair->whole ||
           (repair->runs_up && repair->room[half ^ 1] >= repair->whole);
}

/* Whether a hop from parent to child exists, in the directions that the tree uses. */
static inline bool by_repair_stands(const struct by_repair *repair, enum by_tree_use use, uint32_t half)
{
    const int64_t *capacity = repair->graph->net->capacity;

    return half != UINT32_MAX && (!by_repair_runs_down(use) || capacity[half] > 0) &&
           (!by_repair_runs_up(use) || capacity[half ^ 1] > 0);
}

/* Whether the hop enters the bottleneck. */
static inline bool by_repair_enters(const struct by_repair *repair, uint32_t from, uint32_t to)
{
    return repair->inside[to] && !repair->inside[from];
}

/* repair_tree.c */

/* Returns all paths and loads to those of the old trees, for the capacities of this try. */
void by_repair_reset(struct by_repair *repair);
/* Adds `amount` trees of this use to the path, or removes them if it is negative. */
void by_repair_load(struct by_repair *repair, enum by_tree_use use, uint32_t path, int64_t amount);
/* Returns the number of a path of these nodes; a path that is new in this repair gets a number. */
uint32_t by_repair_path_of(struct by_repair *repair, const uint32_t *nodes, uint32_t count);
bool by_repair_is_overloaded(const struct by_repair *repair, enum by_tree_use use, uint32_t path);
/* Reads the tree into `work`. Detaches the edges that cannot stay: those over lost links and, with
 * `overloads`, those over overloaded links. */
void by_repair_read(struct repair_work *work, const struct by_repaired *tree, bool overloads);
/* Gives the tree a list of edges of its own: those of the tree in work. */
void by_repair_write(struct repair_work *work, struct by_repaired *tree);
/* Returns the place of the next list, of at most `count` edges. */
uint32_t *by_repair_room_for_edges(struct by_repair *repair, uint32_t count);
/* Removes switches that no longer lead anywhere. */
void by_repair_prune(struct repair_work *work);
/* Returns the loads to those of the tree's edges, as if it had not been read. */
void by_repair_undo(struct repair_work *work, const struct by_repaired *tree);
/* Makes lists of children for the tree in work. */
void by_repair_list(struct repair_work *work);
/* Finds the depths of the nodes below `node`, which has one. */
void by_repair_deepen(struct repair_work *work, uint32_t node);

/* repair_move.c */

/* Finds a place for the loose branch at `loose`. */
struct repair_place by_repair_find(struct repair_work *work, uint32_t loose);
/* Finds one over links that the branch overloads, as few as possible. Other branches leave them
 * later. */
struct repair_place by_repair_force(struct repair_work *work, uint32_t loose);
/* Attaches the loose branch where it was. Returns whether the place is still there. */
bool by_repair_put_back(struct repair_work *work, uint32_t loose);
/* Detaches a branch. The depths of its nodes stay. */
void by_repair_take_off(struct repair_work *work, uint32_t node);
/* Attaches the loose branch there. */
void by_repair_hang(struct repair_work *work, uint32_t loose, const struct repair_place *place);

/* repair_leaf.c */

/* Moves the only leaf that has lost its link to a place next to the root, without reading the whole
 * tree. Returns whether it did. */
bool by_repair_move_leaf(struct repair_work *work, struct by_repaired *tree);

/* repair_low.c */

/* Lowers the tree to at most `limit` hops, as far as links have room for that. */
void by_repair_lower(struct repair_work *work, struct by_repaired *tree, uint32_t limit);

#endif
