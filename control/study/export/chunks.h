/*
 * Divides a plan's data into whole chunks of equal size, and assigns them to its trees. Neighbours:
 * the exporters use it. One thread for each object.
 */
#ifndef BY_STUDY_EXPORT_CHUNKS_H
#define BY_STUDY_EXPORT_CHUNKS_H

#include "control/plan/plan.h"

struct by_chunks {
    uint32_t tree_count; /* as in the plan; the second tree of a pair shares the chunks of the first */
    int64_t *count;      /* by tree */
    int64_t *first;      /* by tree: its first chunk, among all chunks */
    int64_t total;       /* chunks of the whole data */
    int64_t each;        /* allgather, reduce-scatter: chunks of one compute node's shard; else 0 */
    uint32_t *rank_of;   /* by node; UINT32_MAX for switches */
    uint32_t *compute;   /* by rank: node index */
    uint32_t rank_count;
};

/*
 * Divides the data into the smallest number of chunks that gives each tree a whole number. The
 * shard of rank r is the chunks r * each to (r + 1) * each - 1. Returns 0, or with `problem`
 * filled: BY_EUNSUPPORTED if a tree branches or is rooted at a switch, BY_ERANGE if the numbers
 * exceed 63 bits.
 */
int by_chunks_make(struct by_chunks *chunks, const struct by_plan *plan, const struct by_topology *topology,
                   struct by_problem *problem);
void by_chunks_free(struct by_chunks *chunks);
/*
 * Whether `tree` is the second tree of a pair, which carries down what the tree before it carried
 * up.
 */
bool by_chunks_second(const struct by_plan *plan, uint32_t tree);

#endif
