/*
 * The schedules by the straightforward construction in O(log^3 p) steps per rank: J. L. Traff,
 * "(Poly)Logarithmic Time Construction of Round-optimal n-Block Broadcast Schedules" (2022),
 * algorithms 3 to 5 with two corrections: ranges are cyclic, and a rank's own baseblock is one of
 * the blocks that it has. Shares only the structs with host-driver/circulant. Any thread.
 */
#ifndef BY_TEST_CIRCULANT_NAIVE_H
#define BY_TEST_CIRCULANT_NAIVE_H

#include "host-driver/circulant/circulant.h"

/* Writes the first `count` entries of the receive schedule of `rank`. Returns false if no block is
 * left for an entry. */
bool by_naive_receive(const struct by_circulant *circulant, uint32_t rank, uint32_t count, int8_t *receive);
/* Writes the send schedule of `rank`, derived from the receivers' receive schedules. */
bool by_naive_send(const struct by_circulant *circulant, uint32_t rank, int8_t *send);

#endif
