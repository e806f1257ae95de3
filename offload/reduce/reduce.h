/*
 * Reduction kernels: operators x element types in one const table per instruction set. Pure; any
 * thread.
 *
 * A slot accumulates in `acc` bytes per element, which is wider than the element for f16 and bf16
 * (f32 inside), and for bf16 in an order of its own, the same for all instruction sets: f32 kernels
 * may add two such slots. Elements on the wire and in user memory are little-endian. psum is the
 * sum mod 2^32 of a payload's 32-bit little-endian words, the last word padded with zero bytes
 * (offload/wire/wire.h).
 *
 * Rules: signed and unsigned sums and products wrap. min and max of floats: a NaN in either operand
 * gives NaN; -0 < +0. A NaN that an operator makes is the quiet NaN 0x7fc00000 (f64:
 * 0x7ff8000000000000; f16: 0x7e00; bf16: 0x7fc0). A single contribution keeps its bits, but that
 * NaNs of f16 and bf16 become quiet. f16 and bf16: each input is widened exactly, the sum, product,
 * minimum or maximum is taken in f32, and is rounded once to nearest even when it leaves the node.
 */
#ifndef BY_REDUCE_REDUCE_H
#define BY_REDUCE_REDUCE_H

#include <stddef.h>
#include <stdint.h>

#include "offload/wire/types.h"

/* Instruction sets, best last; the shell asks the processor and tells the core. */
enum by_isa { BY_ISA_SCALAR = 1, BY_ISA_AVX2, BY_ISA_AVX512, BY_ISA_NEON, BY_ISA_COUNT };

struct by_reducer {
    uint8_t element_bytes; /* on the wire */
    uint8_t acc_bytes;     /* in a slot: 4 for f16 and bf16, else element_bytes */
    /*
     * acc[i] = in[i]. Returns the slot's guard: the psum of acc as it now lies in memory, count *
     * acc_bytes. The caller keeps the guard, and hands it to the next call; all three look at a
     * slot once.
     */
    uint32_t (*load)(void *restrict acc, const void *restrict in, uint32_t count);
    /* acc[i] = acc[i] op in[i]. 1 when acc was found as *guard says; 0 when its memory has changed
     * since, and the value is worth nothing. *guard becomes that of the new values. */
    int (*accumulate)(void *restrict acc, const void *restrict in, uint32_t count, uint32_t *guard);
    /* acc[i] = acc[i] op (a[i] op b[i]), in one pass; a and b may change places. Sums and products
     * of floats alone, else NULL. `psum` is that of a and that of b together: when it is still
     * theirs, and acc is as above, 1. With 0 acc is worth nothing. */
    int (*accumulate_pair)(void *restrict acc, const void *restrict a, const void *restrict b, uint32_t psum,
                           uint32_t count, uint32_t *guard);
    /* Turns acc into wire elements in place (a no-op but for f16 and bf16). *guard becomes their
     * psum; 1 and 0 as above. */
    int (*store)(void *acc, uint32_t count, uint32_t *guard);
    /* by_psum and by_psum_copy with the vectors of these kernels. */
    uint32_t (*psum)(const void *data, size_t bytes);
    uint32_t (*psum_copy)(void *restrict dst, const void *restrict src, size_t bytes);
};

/*
 * The kernels for `op` on `dtype`, or NULL when the pair is undefined (band, bor, bxor on floats)
 * or a value is unknown: the only capability test. `isa` must be one that this build holds and this
 * processor has, else the scalar kernels are given. All instruction sets give the same bits.
 */
const struct by_reducer *by_reducer_get(unsigned isa, unsigned op, unsigned dtype);

/* 1 when the value of `op` on `dtype` depends on the order in which more than two operands are
 * taken: sums and products of floats. */
int by_reduction_is_ordered(unsigned op, unsigned dtype);

/* The type that travels and is reduced for `op` on `dtype` in `mode`: sums of floats in mode EXACT
 * are sums of integers (exact.h), all else is itself. 0 when the mode does not have the pair:
 * products of floats in mode EXACT, and unknown modes. */
unsigned by_reduction_dtype(unsigned mode, unsigned op, unsigned dtype);

/* The best instruction set that both this build and the running processor have (x86: CPUID; arm64:
 * NEON always). */
unsigned by_isa_best(void);
/* 1 when this build and the running processor have `isa`, else 0. Like by_isa_best for start-up:
 * CPUID can cost microseconds. */
int by_isa_usable(unsigned isa);
const char *by_isa_name(unsigned isa);

/* psum of `bytes` at `data` (any alignment). */
uint32_t by_psum(const void *data, size_t bytes);
/* Copies `bytes` and returns their psum, in one pass. The ranges must not overlap. */
uint32_t by_psum_copy(void *restrict dst, const void *restrict src, size_t bytes);

#endif
