/*
 * Merges the packings of the pieces of a laminar family into whole trees. A tree of the top piece
 * determines which groups receive from which. Within each group it continues along a tree of that
 * group's own packing, from the node where it entered. The totals of all pieces agree exactly
 * (laminar.h), so no choice can exhaust a piece early. Each call runs in one thread.
 */
#ifndef BY_PLANNER_PACK_MERGE_H
#define BY_PLANNER_PACK_MERGE_H

#include "control/planner/pack/pack.h"
#include "control/planner/split/laminar.h"

/* A piece ready for packing: the nodes that remain after switch removal, without the outside. Trees
 * that enter from the outside start at their entry node. */
struct by_contraction {
    struct by_mesh *net;
    int64_t *roots;
    uint32_t *slot; /* by local node of the piece: its node here, or UINT32_MAX */
};

/* A part of the capacity between two nodes, and the path that it uses. */
struct by_merge_flow_path {
    uint32_t from; /* nodes of the family's net that remain */
    uint32_t to;
    int64_t amount;
    uint32_t id;    /* the caller's */
    uint32_t hops;  /* shallow trees are preferred */
    uint32_t group; /* the smallest group that holds both ends */
    uint32_t half;  /* half of that group's contraction, between the children that hold the ends */
};

/* Receives `count` equal trees: the ids of their flow paths, parents before children. */
typedef void by_merge_emit(void *context, uint32_t root, int64_t count, const uint32_t *ids,
                           uint32_t id_count);

/* Makes the contraction of a piece, with capacities [from * piece->count + to] (NULL: those of the
 * piece). */
void by_contraction_make(struct by_contraction *contraction, const struct by_piece *piece,
                         const int64_t *capacity);
void by_contraction_free(struct by_contraction *contraction);

/* How each group's children are packed. */
struct by_merge_group {
    const struct by_contraction *contraction;
    const struct by_packing *packing;
};

/* Makes all trees. Returns 0, or BY_ETIMEDOUT when `deadline` (a time of by_plan_clock, 0 for none)
 * passes before all of them are made. `groups` is by group number. The flow paths between two
 * children of a group add up to the capacity between them in the group's contraction. */
int by_merge_run(const struct by_laminar *laminar, const struct by_merge_group *groups,
                 const struct by_merge_flow_path *flow_paths, uint32_t flow_path_count, double deadline,
                 by_merge_emit *emit, void *context);
/* For a family without switches to remove: packs every piece and merges them into `packing`, whose
 * nodes are those of the family's net. Returns 0 or BY_ETIMEDOUT. */
int by_merge_halves(struct by_laminar *laminar, double deadline, struct by_packing *packing);

#endif
