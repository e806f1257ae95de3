/*
 * Mode EXACT: sums of floats as block fixed point. A call's elements are cut into blocks of
 * BY_EXACT_BLOCK. First all ranks agree on two words for each block, by a maximum (one small
 * allreduce): the greatest exponent of a finite element, and whether there is a NaN or an infinity.
 * From them and the number of ranks alone follows the block's quantum; each rank rounds its
 * elements to whole quanta, the network adds integers, in whatever order, and each rank makes
 * floats of the sums, with one rounding. docs/arithmetic.md has the rules and the bound of the
 * error. Neighbours: the endpoint runs both steps, nodes see integers alone (by_reduction_dtype).
 * Pure; any thread.
 */
#ifndef BY_REDUCE_EXACT_H
#define BY_REDUCE_EXACT_H

#include <stddef.h>
#include <stdint.h>

#include "offload/wire/types.h"

#define BY_EXACT_BLOCK 256u /* elements; power of two */
/* What ranks agree on for each block, as unsigned 32-bit words with operator max. */
#define BY_EXACT_WORDS       2u
#define BY_EXACT_SCALE_BYTES (4u * BY_EXACT_WORDS)
/* Ranks of a job (count): 62 bits hold any; 30 bits of f16 and bf16 leave too few beyond this. */
#define BY_EXACT_HALF_RANKS_MAX 256u

struct by_exact {
    uint8_t element_bytes; /* of the user's type */
    uint8_t wide_bytes;    /* of an integer on the wire: 4 for f16 and bf16, else 8 */
    /* Words of the block of `count` elements at `in`; 0 < count <= BY_EXACT_BLOCK in all three. */
    void (*scale)(const void *in, uint32_t count, uint32_t words[BY_EXACT_WORDS]);
    /* Elements to whole quanta, for a sum over `ranks` with the agreed words. */
    void (*quantise)(const void *restrict in, uint32_t count, const uint32_t words[BY_EXACT_WORDS],
                     uint32_t ranks, void *restrict out);
    /* Sums of quanta to elements. */
    void (*restore)(const void *restrict in, uint32_t count, const uint32_t words[BY_EXACT_WORDS],
                    uint32_t ranks, void *restrict out);
};

/* The functions for `dtype`, or NULL when it is no float: its sums are exact, or wrap, in every
 * mode. All instruction sets give the same bits. */
const struct by_exact *by_exact_get(unsigned isa, unsigned dtype);

#endif
