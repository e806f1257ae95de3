/*
 * What each tree of a plan carries, in whole chunks of equal size. Neighbours: the exporters. One
 * thread for each object.
 */
#ifndef BY_STUDY_EXPORT_CHUNKS_H
#define BY_STUDY_EXPORT_CHUNKS_H

#include "control/plan/plan.h"

struct by_chunks {
    uint32_t tree_count; /* as in the plan; the second tree of a pair has the chunks of the first */
    int64_t *count;      /* by tree */
    int64_t *first;      /* by tree: among all chunks */
    int64_t total;       /* chunks of the whole data */
    int64_t each;        /* chunks of one compute node's shard: allgather, reduce-scatter; else 0 */
    uint32_t *rank_of;   /* by node; UINT32_MAX for switches */
    uint32_t *compute;   /* by rank: node */
    uint32_t rank_count;
};

/*
 * Divides the data: the smallest number of chunks that gives each tree a whole number. The chunks
 * of rank r's shard are r * each to (r + 1) * each - 1. BY_EUNSUPPORTED when a tree branches or is
 * rooted at a switch, BY_ERANGE when the numbers exceed 63 bits; `problem` is filled.
 */
int by_chunks_make(struct by_chunks *chunks, const struct by_plan *plan, const struct by_topology *topology,
                   struct by_problem *problem);
void by_chunks_free(struct by_chunks *chunks);
/* Whether tree number `tree` is the second of a pair: it carries down what the one before carried
 * up. */
bool by_chunks_second(const struct by_plan *plan, uint32_t tree);

#endif
