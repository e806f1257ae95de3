/*
 * Tight sets within each other, and the pieces into which they cut a packing problem.
 *
 * Let trees be packed into capacities, `roots[v]` of them starting at each v, `total` together.
 * Every set T of nodes that holds a member needs capacity(into T) + roots(T) >= total. A set is
 * tight when both are equal: then every tree that starts outside enters T exactly once, all
 * capacity into T is used, and no tree that starts in T comes back. So the problem falls apart,
 * exactly, into the graph with T contracted to one node, and T alone, where each unit of capacity
 * that enters is a tree that starts at the node where it enters. Both are smaller, and each keeps
 * every cut condition, because its cuts are cuts of the whole.
 *
 * A nest is a family of such sets (disjoint or within each other); each of them, and the whole, is
 * a group, whose children are nodes and smaller groups. A piece is a group seen alone: its
 * children, and one node that stands for all outside. One thread for each nest.
 */
#ifndef BY_PLANNER_SPLIT_NEST_H
#define BY_PLANNER_SPLIT_NEST_H

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
    const bool *member;      /* by node: in every tree */
    const bool *compute;     /* by node */
    int64_t total;
    uint32_t group_count, group_room;
    struct by_laminar_group *groups; /* group 0 is the whole */
    uint32_t *child_of;              /* scratch, by node: where it stands in the piece being made */
};

/* A group's children, numbered from 0 in their order, and the outside as the last (not in the top
 * piece). */
struct by_piece {
    uint32_t group;
    uint32_t count;
    uint32_t outside; /* UINT32_MAX in the top piece */
    uint32_t *ids;    /* by local node: the child; UINT32_MAX for the outside */
    struct by_mesh *net;
    int64_t *roots; /* by local node; the outside has all trees that start there */
    uint8_t *kind;  /* by local node: enum by_piece_kind */
    int64_t total;
};

enum by_piece_kind {
    BY_PIECE_REMOVED = 1, /* a switch that is to be split off */
    BY_PIECE_SWITCH,      /* a switch that every tree has */
    BY_PIECE_COMPUTE,
    BY_PIECE_GROUP,
    BY_PIECE_OUTSIDE
};

/* The whole as the only group. Nodes without any capacity and without roots are left out. All
 * arrays are kept. */
void by_laminar_make(struct by_laminar *laminar, const struct by_mesh *net, const int64_t *capacity,
                     const int64_t *roots, const bool *member, const bool *compute);
void by_laminar_free(struct by_laminar *laminar);
/* Makes some children of a group (ids, ascending) a group of their own; returns its number. */
uint32_t by_laminar_insert(struct by_laminar *laminar, uint32_t group, const uint32_t *children,
                           uint32_t count);
/* Sorts ids and drops doubles; returns the count. */
uint32_t by_laminar_sort(uint32_t *ids, uint32_t count);
void by_piece_make(struct by_laminar *laminar, uint32_t group, struct by_piece *piece);
void by_piece_free(struct by_piece *piece);
/* Whether two pieces are the same problem, local numbers and all. */
bool by_piece_equal(const struct by_piece *a, const struct by_piece *b);
uint64_t by_piece_hash(const struct by_piece *piece);

/*
 * Disjoint tight sets of a piece that are worth a group of their own: `set_of` (by local node)
 * receives 0, or the number of the set from 1. Returns how many there are. The piece must satisfy
 * all cut conditions.
 */
uint32_t by_tight_find(const struct by_piece *piece, uint32_t *set_of);
/* Inserts tight sets, and tight sets within them, until no piece has one that is worth it. */
void by_tight_laminar(struct by_laminar *laminar);

#endif
