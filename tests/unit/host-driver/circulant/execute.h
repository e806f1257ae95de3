/*
 * Executes collectives round by round on all their ranks, in memory: in a round a rank sends only
 * values that it had before. Values are 64-bit numbers whose sums show a missing or duplicated
 * value. One thread.
 */
#ifndef BY_TEST_CIRCULANT_EXECUTE_H
#define BY_TEST_CIRCULANT_EXECUTE_H

#include "host-driver/circulant/circulant.h"

struct by_execution {
    char fault[160]; /* the first fault; "" = none */
};

/* Returns false, with `fault`, if the result is wrong, a rank sends a block that it does not have,
 * a send has no receive, a block arrives twice, or the number of rounds is not block_count - 1 +
 * phase. Collectives without a root ignore `root`. */
bool by_execute_broadcast(struct by_execution *execution, uint32_t rank_count, uint32_t root,
                          uint32_t block_count);
bool by_execute_reduce(struct by_execution *execution, uint32_t rank_count, uint32_t root,
                       uint32_t block_count);
bool by_execute_allgather(struct by_execution *execution, uint32_t rank_count, uint32_t root,
                          uint32_t block_count);
bool by_execute_reduce_scatter(struct by_execution *execution, uint32_t rank_count, uint32_t root,
                               uint32_t block_count);
bool by_execute_gather(struct by_execution *execution, uint32_t rank_count, uint32_t root,
                       uint32_t block_count);
bool by_execute_census(struct by_execution *execution, uint32_t rank_count, uint32_t root,
                       uint32_t block_count);

#endif
