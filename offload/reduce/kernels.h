/*
 * The element types of the kernels, and the table that each instruction set exports. Neighbours:
 * kernels.inc.h (the loops), kernels_<isa>.c (one compilation each), reduce.c (selection). Pure;
 * any thread.
 */
#ifndef BY_REDUCE_KERNELS_H
#define BY_REDUCE_KERNELS_H

#include "offload/reduce/exact.h"
#include "offload/reduce/reduce.h"

/* X(NAME, C type on the wire, family, NAME of the accumulator's type). The family determines which
 * operators exist. */
#define BY_KERNEL_TYPE_LIST(X)                                                                               \
    X(I8, int8_t, INTEGER, I8)                                                                               \
    X(U8, uint8_t, INTEGER, U8)                                                                              \
    X(I32, int32_t, INTEGER, I32)                                                                            \
    X(U32, uint32_t, INTEGER, U32)                                                                           \
    X(I64, int64_t, INTEGER, I64)                                                                            \
    X(U64, uint64_t, INTEGER, U64)                                                                           \
    X(F16, uint16_t, HALF, F32)                                                                              \
    X(BF16, uint16_t, HALF, F32)                                                                             \
    X(F32, float, FLOAT, F32)                                                                                \
    X(F64, double, FLOAT, F64)

/* X(OP, ...) for each operator of a family. */
#define BY_KERNEL_OPS_INTEGER(X, ...)                                                                        \
    X(SUM, __VA_ARGS__)                                                                                      \
    X(PROD, __VA_ARGS__)                                                                                     \
    X(MIN, __VA_ARGS__)                                                                                      \
    X(MAX, __VA_ARGS__)                                                                                      \
    X(BAND, __VA_ARGS__)                                                                                     \
    X(BOR, __VA_ARGS__)                                                                                      \
    X(BXOR, __VA_ARGS__)
#define BY_KERNEL_OPS_FLOAT(X, ...)                                                                          \
    X(SUM, __VA_ARGS__)                                                                                      \
    X(PROD, __VA_ARGS__)                                                                                     \
    X(MIN, __VA_ARGS__)                                                                                      \
    X(MAX, __VA_ARGS__)
#define BY_KERNEL_OPS_HALF BY_KERNEL_OPS_FLOAT

/* [op][dtype]; an entry without functions is an undefined pair. */
typedef const struct by_reducer by_kernel_table[BY_OP_COUNT][BY_DTYPE_COUNT];

extern by_kernel_table by_kernels_scalar;
extern by_kernel_table by_kernels_avx2;
extern by_kernel_table by_kernels_avx512;
extern by_kernel_table by_kernels_neon;

extern const struct by_exact by_exact_scalar[BY_DTYPE_COUNT];
extern const struct by_exact by_exact_avx2[BY_DTYPE_COUNT];
extern const struct by_exact by_exact_avx512[BY_DTYPE_COUNT];
extern const struct by_exact by_exact_neon[BY_DTYPE_COUNT];

#endif
