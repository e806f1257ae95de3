/*
 * The four conditions under which schedules of a broadcast are right (J. L. Traff, arXiv
 * 2407.18004, section 2), for ranks of one graph:
 *   1. what a rank receives in round k is what rank - skip[k] sends in it;
 *   2. what it sends is what rank + skip[k] receives;
 *   3. in a phase it receives -1 ... -q, but baseblock instead of baseblock - q (the root: all of
 * these);
 *   4. what it sends it has: received in a round before of this phase, or baseblock - q; the root
 * sends k. Any number of blocks then arrives everywhere in n - 1 + q rounds. One thread.
 */
#ifndef BY_TEST_CIRCULANT_CONDITIONS_H
#define BY_TEST_CIRCULANT_CONDITIONS_H

#include <stddef.h>

#include "host-driver/circulant/circulant.h"

struct by_conditions {
    uint64_t ranks;  /* checked so far */
    char fault[160]; /* the first violation; "" = none */
    size_t bytes;    /* of memory */
    void *memory;    /* that keeps the schedules of all ranks */
};

/* Checks every rank of `rank_count` ranks. False when one violates a condition: `fault` says which.
 */
bool by_conditions_all(struct by_conditions *conditions, uint32_t rank_count);
/* Checks one rank and its neighbours, in O(log^2 p). */
bool by_conditions_one(struct by_conditions *conditions, uint32_t rank_count, uint32_t rank);
/* Checks `count` ranks drawn by `seed`, most of them where copies of the pattern begin or end. */
bool by_conditions_some(struct by_conditions *conditions, uint32_t rank_count, uint32_t count, uint64_t seed);
void by_conditions_free(struct by_conditions *conditions);

#endif
