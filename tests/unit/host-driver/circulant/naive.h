/*
 * The schedules by the straightforward construction in O(log^3 p) steps a rank: J. L. Traff,
 * "(Poly)Logarithmic Time Construction of Round-optimal n-Block Broadcast Schedules" (2022),
 * algorithms 3 to 5, whose slips are mended: ranges are cyclic, and a rank's own baseblock is among
 * the blocks that it has. It shares nothing with host-driver/circulant but the structs. Any thread.
 */
#ifndef BY_TEST_CIRCULANT_NAIVE_H
#define BY_TEST_CIRCULANT_NAIVE_H

#include "host-driver/circulant/circulant.h"

/* Writes the first `count` entries of the receive schedule of `rank`. False when no block is left
 * for one. */
bool by_naive_receive(const struct by_circulant *circulant, uint32_t rank, uint32_t count, int8_t *receive);
/* Writes the send schedule of `rank`: what each receiver's own receive schedule says. */
bool by_naive_send(const struct by_circulant *circulant, uint32_t rank, int8_t *send);

#endif
