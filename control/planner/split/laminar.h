/*
 * Laminar families of tight sets, and the pieces into which they divide a packing problem.
 *
 * Trees are packed into capacities; `roots[v]` of them start at each v, `total` altogether. Every
 * set T of nodes that holds a member needs capacity(into T) + roots(T) >= total. A set is tight
 * when both sides are equal. Then every tree that starts outside enters T exactly once, all
 * capacity into T is used, and no tree that starts in T returns. The problem therefore divides
 * exactly into two: the graph with T contracted to one node, and T alone, where each unit of
 * entering capacity is a tree that starts at the node where it enters. Both are smaller, and each
 * satisfies every cut condition, because its cuts are cuts of the whole.
 *
 * A laminar family consists of such sets, pairwise disjoint or nested. Each set, and the whole, is
 * a group, whose children are nodes and smaller groups. A piece is a group considered alone: its
 * children, and one node that represents everything outside. Each family belongs to one thread.
 */
#ifndef BY_PLANNER_SPLIT_LAMINAR_H
#define BY_PLANNER_SPLIT_LAMINAR_H

#include "control/planner/flow/reach.h"

struct by_laminar_group {
    uint32_t parent; /* group number; the top's is itself */
    uint32_t child_count;
    uint32_t *children; /* ascending: a node, or node_count + group number */
    uint32_t node_count;
    uint32_t *nodes; /* all nodes inside, ascending */
    int64_t roots;   /* trees that start inside */
};

struct by_laminar {
    const struct by_mesh *net;
    const int64_t *capacity; /* by half of the net, in trees */
    const int64_t *roots;    /* by node */
    const bool *member;      /* by node: is in every tree */
    const bool *compute;     /* by node */
    int64_t total;
    uint32_t group_count, group_room;
    struct by_laminar_group *groups; /* group 0 is the whole */
    uint32_t *child_of;              /* scratch, by node: its child number in the current piece */
};

/* A group's children, numbered from 0 in their order; the outside is the last node (not in the top
 * piece). */
struct by_piece {
    uint32_t group;
    uint32_t count;
    uint32_t outside; /* UINT32_MAX in the top piece */
    uint32_t *ids;    /* by local node: the child; UINT32_MAX for the outside */
    struct by_mesh *net;
    int64_t *roots; /* by local node; the outside has all trees that start outside */
    uint8_t *kind;  /* by local node: enum by_piece_kind */
    int64_t total;
};

enum by_piece_kind {
    BY_PIECE_REMOVED = 1, /* a switch to be removed */
    BY_PIECE_SWITCH,      /* a switch that is in every tree */
    BY_PIECE_COMPUTE,
    BY_PIECE_GROUP,
    BY_PIECE_OUTSIDE
};

/* Makes a family whose only group is the whole. Nodes without capacity and without roots are left
 * out. Keeps pointers to all arrays. */
void by_laminar_make(struct by_laminar *laminar, const struct by_mesh *net, const int64_t *capacity,
                     const int64_t *roots, const bool *member, const bool *compute);
void by_laminar_free(struct by_laminar *laminar);
/* Turns some children of a group (ids, ascending) into a group of their own; returns its number. */
uint32_t by_laminar_insert(struct by_laminar *laminar, uint32_t group, const uint32_t *children,
                           uint32_t count);
/* Sorts ids and removes duplicates; returns the count. */
uint32_t by_laminar_sort(uint32_t *ids, uint32_t count);
void by_piece_make(struct by_laminar *laminar, uint32_t group, struct by_piece *piece);
void by_piece_free(struct by_piece *piece);
/* Whether two pieces are the same problem, including local numbers. */
bool by_piece_equal(const struct by_piece *a, const struct by_piece *b);
uint64_t by_piece_hash(const struct by_piece *piece);

/*
 * Finds disjoint tight sets of a piece that are worth a group of their own. `set_of` (by local
 * node) receives 0, or the number of the set from 1. Returns the number of sets. The piece must
 * satisfy all cut conditions.
 */
uint32_t by_tight_find(const struct by_piece *piece, uint32_t *set_of);
/* Inserts tight sets, and tight sets within them, until no piece has one that is worth a group. */
void by_tight_laminar(struct by_laminar *laminar);

#endif
