/*
 * From the packings of the pieces of a nest to whole trees. A tree of the top piece says which
 * groups hear from which; within each group it goes on along a tree of that group's own packing,
 * from the node where it came in. The totals of all pieces agree exactly (laminar.h), so that
 * whatever is picked, nothing runs out. One thread for each call.
 */
#ifndef BY_PLANNER_PACK_MERGE_H
#define BY_PLANNER_PACK_MERGE_H

#include "control/planner/pack/pack.h"
#include "control/planner/split/laminar.h"

/* A piece ready for packing: what stays of it after switch removal, without the outside. Trees that
 * come from the outside start where they enter. */
struct by_contraction {
    struct by_mesh *net;
    int64_t *roots;
    uint32_t *slot; /* by local node of the piece: its node here, or UINT32_MAX */
};

/* A part of the capacity between two nodes, and what it stands for. */
struct by_merge_flow_path {
    uint32_t from; /* nodes of the nest's net that stay */
    uint32_t to;
    int64_t amount;
    uint32_t id;    /* the caller's */
    uint32_t hops;  /* shallow trees are preferred */
    uint32_t group; /* the smallest that holds both ends */
    uint32_t half;  /* of that group's stand: between the children that hold them */
};

/* Receives `count` equal trees: the strands' ids, parents before children. */
typedef void by_merge_emit(void *context, uint32_t root, int64_t count, const uint32_t *ids,
                           uint32_t id_count);

/* What stays of a piece, with capacities [from * piece->count + to] (NULL: those of the piece). */
void by_contraction_make(struct by_contraction *contraction, const struct by_piece *piece,
                         const int64_t *capacity);
void by_contraction_free(struct by_contraction *contraction);

/* How each group's children are packed. */
struct by_merge_group {
    const struct by_contraction *contraction;
    const struct by_packing *packing;
};

/* Makes all trees; 0, or BY_ETIMEDOUT when `deadline` (a time of by_plan_clock, 0 for none) passes
 * before all of them are made. `groups` is by group number. The strands between two children of a
 * group add up to the capacity that the group's stand has between them. */
int by_merge_run(const struct by_laminar *laminar, const struct by_merge_group *groups,
                 const struct by_merge_flow_path *flow_paths, uint32_t flow_path_count, double deadline,
                 by_merge_emit *emit, void *context);
/* For a nest without switches to remove: packs every piece and merges them into `packing`, whose
 * nodes are those of the nest's net. 0 or BY_ETIMEDOUT. */
int by_merge_halves(struct by_laminar *laminar, double deadline, struct by_packing *packing);

#endif
