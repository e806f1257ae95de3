/*
 * The four conditions for correct schedules of a broadcast (J. L. Traff, arXiv 2407.18004, section
 * 2), for ranks of one graph:
 *   1. what a rank receives in round k is what rank - skip[k] sends in it;
 *   2. what a rank sends in round k is what rank + skip[k] receives in it;
 *   3. in a phase a rank receives -1 ... -q, but baseblock in place of baseblock - q (the root
 *      receives all of -1 ... -q);
 *   4. a rank sends only blocks that it has: received in an earlier round of this phase, or
 *      baseblock - q; the root sends k.
 * Then any number n of blocks arrives at every rank in n - 1 + q rounds. One thread.
 */
#ifndef BY_TEST_CIRCULANT_CONDITIONS_H
#define BY_TEST_CIRCULANT_CONDITIONS_H

#include <stddef.h>

#include "host-driver/circulant/circulant.h"

struct by_conditions {
    uint64_t ranks;  /* number of ranks checked */
    char fault[160]; /* the first violation; "" = none */
    size_t bytes;    /* size of `memory` */
    void *memory;    /* the schedules of all ranks */
};

/* Checks every rank of `rank_count` ranks. Returns false, with `fault`, if one violates a
 * condition. */
bool by_conditions_all(struct by_conditions *conditions, uint32_t rank_count);
/* Checks one rank and its neighbours, in O(log^2 p). */
bool by_conditions_one(struct by_conditions *conditions, uint32_t rank_count, uint32_t rank);
/* Checks `count` ranks drawn with `seed`, most of them where copies of the pattern begin or end. */
bool by_conditions_some(struct by_conditions *conditions, uint32_t rank_count, uint32_t count, uint64_t seed);
/*
 * Checks the paths of an all-to-all and the tree of a scatter, for every rank: the skips of a path
 * add up to its distance; each rank but the root receives once, a range that begins with its own
 * share, in the round in which its sender, which holds that range, sends it; and all shares arrive.
 */
bool by_conditions_exchange(struct by_conditions *conditions, uint32_t rank_count);
void by_conditions_free(struct by_conditions *conditions);

#endif
