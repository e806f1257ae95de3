/*
 * Reduction kernels: operators x element types in one const table per instruction set. Pure; any
 * thread.
 *
 * A slot accumulates in `acc` bytes per element. For f16 and bf16 these are wider than the element
 * (f32 inside), and bf16 is stored in an order of its own, which is the same for all instruction
 * sets, so that f32 kernels can add two such slots. Elements on the wire and in user memory are
 * little-endian. psum is the sum mod 2^32 of a payload's 32-bit little-endian words, the last word
 * padded with zero bytes (offload/wire/wire.h).
 *
 * Rules:
 * - Signed and unsigned sums and products wrap.
 * - min and max of floats: a NaN in either operand gives NaN; -0 < +0.
 * - A NaN that an operator produces is the quiet NaN 0x7fc00000 (f64: 0x7ff8000000000000; f16:
 *   0x7e00; bf16: 0x7fc0).
 * - A single contribution keeps its bits, except that NaNs of f16 and bf16 become quiet.
 * - f16 and bf16: each input is widened exactly, and the sum, product, minimum or maximum is
 *   computed in f32 and rounded once to nearest even when it leaves the node.
 */
#ifndef BY_REDUCE_REDUCE_H
#define BY_REDUCE_REDUCE_H

#include <stddef.h>
#include <stdint.h>

#include "offload/wire/types.h"

/* Instruction sets, best last. The shell detects the processor's and passes it to the core. */
enum by_isa { BY_ISA_SCALAR = 1, BY_ISA_AVX2, BY_ISA_AVX512, BY_ISA_NEON, BY_ISA_COUNT };

/* Maximum inputs of `gather` and `add_terms` (count), and whether this build has `gather`: one
 * without vectors must be small, and NEON's has not been measured and needs too much stack. */
#define BY_GATHER_MAX 8u
#ifdef __SSE2__
#define BY_GATHERS 1
#else
#define BY_GATHERS 0
#endif

/* The terms t[0], t[1] ... of add_terms: values in wire format, or pairs of them. */
struct by_terms {
    const void *in[BY_GATHER_MAX];
    uint32_t psum[BY_GATHER_MAX]; /* out: that of each input */
    uint32_t before;              /* out: the guard that acc had, if `begun` */
    uint8_t inputs;               /* 1 to BY_GATHER_MAX */
    uint8_t pairs;                /* bit k: the term is in[k] op in[k + 1], not in[k] alone */
    uint8_t begun;                /* acc holds the value before t[0]; 0: it holds none */
};

struct by_reducer {
    uint8_t element_bytes; /* on the wire */
    uint8_t acc_bytes;     /* in a slot: 4 for f16 and bf16, else element_bytes */
    /*
     * acc[i] = in[i]. Returns the slot's guard: the psum of acc as stored in memory, count *
     * acc_bytes. The caller keeps the guard and passes it to the next call. All three functions
     * read a slot once.
     */
    uint32_t (*load)(void *restrict acc, const void *restrict in, uint32_t count);
    /* acc[i] = acc[i] op in[i]. Returns 1 when acc matched *guard; 0 when its memory has changed,
     * and the value is invalid. Updates *guard to the new values. */
    int (*accumulate)(void *restrict acc, const void *restrict in, uint32_t count, uint32_t *guard);
    /*
     * acc[i] = in[0][i] op in[1][i] op ..., in this order, for 2 to BY_GATHER_MAX inputs in one
     * pass; the previous contents of acc are not read. Has the bits of load and accumulate. Writes
     * the psum of each input to `psums`, and returns the guard. NULL without BY_GATHERS.
     */
    uint32_t (*gather)(void *restrict acc, const void *const *in, uint32_t inputs, uint32_t count,
                       uint32_t *restrict psums);
    /*
     * acc[i] = acc[i] op t[0][i] op t[1][i] ..., in this order and in one pass, or without acc
     * unless `begun`. A value that is alone keeps its bits, as in load; otherwise the result has
     * the bits of accumulations in acc's type. Writes the psums found, and returns the guard. Reads
     * each input once. Only for sums and products of floats, else NULL.
     */
    uint32_t (*add_terms)(void *restrict acc, struct by_terms *restrict terms, uint32_t count);
    /* Turns acc into wire elements in place (a no-op except for f16 and bf16). Updates *guard to
     * their psum; returns 1 or 0 as above. */
    int (*store)(void *acc, uint32_t count, uint32_t *guard);
    /* by_psum and by_psum_copy with the vectors of these kernels. */
    uint32_t (*psum)(const void *data, size_t bytes);
    uint32_t (*psum_copy)(void *restrict dst, const void *restrict src, size_t bytes);
};

/*
 * Returns the kernels for `op` on `dtype`, or NULL when the pair is undefined (band, bor, bxor on
 * floats) or a value is unknown: this is the only capability test. If this build or this processor
 * lacks `isa`, the scalar kernels are returned. All instruction sets give the same bits.
 */
const struct by_reducer *by_reducer_get(unsigned isa, unsigned op, unsigned dtype);

/* Returns 1 when the value of `op` on `dtype` depends on the order of more than two operands: sums
 * and products of floats. */
int by_reduction_is_ordered(unsigned op, unsigned dtype);

/* Returns the type that is sent and reduced for `op` on `dtype` in `mode`. Sums of floats in mode
 * EXACT are sums of integers (exact.h); otherwise it is `dtype`. Returns 0 when the mode does not
 * support the pair: products of floats in mode EXACT, and unknown modes. */
unsigned by_reduction_dtype(unsigned mode, unsigned op, unsigned dtype);

/* Returns the best instruction set of both this build and the running processor (x86: CPUID; arm64:
 * always NEON). */
unsigned by_isa_best(void);
/* Returns 1 when this build and the running processor support `isa`, else 0. Like by_isa_best for
 * start-up only: CPUID can take microseconds. */
int by_isa_usable(unsigned isa);
const char *by_isa_name(unsigned isa);

/* Returns the psum of `bytes` bytes at `data` (any alignment). */
uint32_t by_psum(const void *data, size_t bytes);
/* Copies `bytes` bytes and returns their psum, in one pass. The ranges must not overlap. */
uint32_t by_psum_copy(void *restrict dst, const void *restrict src, size_t bytes);

#endif
