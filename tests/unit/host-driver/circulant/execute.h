/*
 * Collectives executed round by round on all their ranks, in memory: what a rank sends in a round
 * is what it had before it. Values are numbers of 64 bits whose sums tell whether one was missed or
 * taken twice. One thread.
 */
#ifndef BY_TEST_CIRCULANT_EXECUTE_H
#define BY_TEST_CIRCULANT_EXECUTE_H

#include "host-driver/circulant/circulant.h"

struct by_execution {
    char fault[160]; /* the first; "" = none */
};

/* False, with `fault`, when the result is wrong, a rank sends what it does not have, a send has no
 * receive, a block comes twice, or the rounds are not block_count - 1 + phase. `root` is not used
 * where there is none.
 */
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
