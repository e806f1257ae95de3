/*
 * Mode EXACT: sums of floats as block fixed point. A call's elements are divided into blocks of
 * BY_EXACT_BLOCK.
 *   1. All ranks agree on two words for each block, by a maximum (one small allreduce): the
 *      greatest exponent of a finite element, and whether there is a NaN or an infinity. These
 *      words and the number of ranks alone determine the block's quantum.
 *   2. Each rank rounds its elements to whole quanta, the network adds integers in any order, and
 *      each rank converts the sums to floats with one rounding.
 * docs/arithmetic.md has the rules and the error bound. Neighbours: the endpoint runs both steps;
 * nodes handle only integers (by_reduction_dtype). Pure; any thread.
 */
#ifndef BY_REDUCE_EXACT_H
#define BY_REDUCE_EXACT_H

#include <stddef.h>
#include <stdint.h>

#include "offload/wire/types.h"

#define BY_EXACT_BLOCK 256u /* elements; power of two */
/* The words that ranks agree on for each block: unsigned, 32 bits, operator max. */
#define BY_EXACT_WORDS       2u
#define BY_EXACT_SCALE_BYTES (4u * BY_EXACT_WORDS)
/* Maximum ranks of a job with f16 or bf16 (count), whose 30 bits leave too few for more; the 62
 * bits of the other types suffice for any job. */
#define BY_EXACT_HALF_RANKS_MAX 256u

struct by_exact {
    uint8_t element_bytes; /* of the user's type */
    uint8_t wide_bytes;    /* of an integer on the wire: 4 for f16 and bf16, else 8 */
    /* Computes the words of the block of `count` elements at `in`; 0 < count <= BY_EXACT_BLOCK in
     * all three functions. */
    void (*scale)(const void *in, uint32_t count, uint32_t words[BY_EXACT_WORDS]);
    /* Rounds elements to whole quanta, for a sum over `ranks` with the agreed words. */
    void (*quantise)(const void *restrict in, uint32_t count, const uint32_t words[BY_EXACT_WORDS],
                     uint32_t ranks, void *restrict out);
    /* Converts sums of quanta to elements. */
    void (*restore)(const void *restrict in, uint32_t count, const uint32_t words[BY_EXACT_WORDS],
                    uint32_t ranks, void *restrict out);
};

/* Returns the functions for `dtype`, or NULL for integers, whose sums are exact, or wrap, in every
 * mode. All instruction sets give the same bits. */
const struct by_exact *by_exact_get(unsigned isa, unsigned dtype);

#endif
