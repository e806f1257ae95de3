/*
 * The loop family: every kernel of one instruction set. Included once by each kernels_<isa>.c, which names
 * its table (BY_KERNEL_TABLE), its vectors (BY_VECTOR_BYTES), and, where the processor converts f16, provides
 * f16_widen_block and f16_narrow_block and defines BY_KERNEL_F16_BLOCKS. The loops are plain C that the
 * compiler turns into vectors; what is said here about values therefore holds for all instruction sets. Pure;
 * any thread.
 *
 * NaN rule, so that neither the order of operands nor the processor shows in the bits: whatever an operator
 * makes is the quiet NaN 0x7fc00000 (f64: 0x7ff8000000000000) if it is a NaN. load and store alone keep a
 * NaN's sign and payload; f16 and bf16 become quiet. Sums and products round to nearest even in the default
 * floating-point environment.
 */
#include "offload/reduce/half.h"
#include "offload/reduce/kernels.h"
#include "offload/reduce/psum.h"

/*
 * Elements of f16 and bf16 that are widened or narrowed at a time (count). Compilers unroll shorter loops
 * before they look for vectors (gcc: 16 times), and then miss them.
 */
#define BLOCK 32u

/* value_<NAME> as computed with, at_<NAME> as it lies in memory: any alignment, any neighbours. */
#define X(NAME, C, FAMILY, ACC)                                                                              \
    typedef C value_##NAME;                                                                                  \
    typedef C at_##NAME __attribute__((aligned(1), may_alias));
BY_KERNEL_TYPE_LIST(X)
#undef X

/* ---- operators on two values ---- */

/* Sums and products wrap through U, the unsigned type; 8-bit ones are promoted to int, where they fit. */
#define INTEGER_OPERATORS(NAME, U)                                                                           \
    static inline value_##NAME SUM_##NAME(value_##NAME a, value_##NAME b)                                    \
    {                                                                                                        \
        return (value_##NAME)(U)((U)a + (U)b);                                                               \
    }                                                                                                        \
    static inline value_##NAME PROD_##NAME(value_##NAME a, value_##NAME b)                                   \
    {                                                                                                        \
        return (value_##NAME)(U)((U)a * (U)b);                                                               \
    }                                                                                                        \
    static inline value_##NAME MIN_##NAME(value_##NAME a, value_##NAME b)                                    \
    {                                                                                                        \
        return a < b ? a : b;                                                                                \
    }                                                                                                        \
    static inline value_##NAME MAX_##NAME(value_##NAME a, value_##NAME b)                                    \
    {                                                                                                        \
        return a > b ? a : b;                                                                                \
    }                                                                                                        \
    static inline value_##NAME BAND_##NAME(value_##NAME a, value_##NAME b)                                   \
    {                                                                                                        \
        return (value_##NAME)(a & b);                                                                        \
    }                                                                                                        \
    static inline value_##NAME BOR_##NAME(value_##NAME a, value_##NAME b)                                    \
    {                                                                                                        \
        return (value_##NAME)(a | b);                                                                        \
    }                                                                                                        \
    static inline value_##NAME BXOR_##NAME(value_##NAME a, value_##NAME b)                                   \
    {                                                                                                        \
        return (value_##NAME)(a ^ b);                                                                        \
    }

INTEGER_OPERATORS(I8, uint8_t)
INTEGER_OPERATORS(U8, uint8_t)
INTEGER_OPERATORS(I32, uint32_t)
INTEGER_OPERATORS(U32, uint32_t)
INTEGER_OPERATORS(I64, uint64_t)
INTEGER_OPERATORS(U64, uint64_t)

/*
 * The minimum is taken in both orders: the two differ only where the operands are equal (or unordered), and
 * equal operands differ in bits only if they are zeros. Then or gives -0 if there is one; for the maximum,
 * and gives +0 if there is one.
 */
#define FLOAT_OPERATORS(NAME, BITS, NAN)                                                                     \
    union bits_##NAME {                                                                                      \
        value_##NAME value;                                                                                  \
        BITS bits;                                                                                           \
    };                                                                                                       \
    static inline value_##NAME SUM_##NAME(value_##NAME a, value_##NAME b)                                    \
    {                                                                                                        \
        value_##NAME r = a + b;                                                                              \
        return r == r ? r : NAN;                                                                             \
    }                                                                                                        \
    static inline value_##NAME PROD_##NAME(value_##NAME a, value_##NAME b)                                   \
    {                                                                                                        \
        value_##NAME r = a * b;                                                                              \
        return r == r ? r : NAN;                                                                             \
    }                                                                                                        \
    static inline value_##NAME MIN_##NAME(value_##NAME a, value_##NAME b)                                    \
    {                                                                                                        \
        union bits_##NAME x = {.value = a < b ? a : b}, y = {.value = b < a ? b : a};                        \
        x.bits |= y.bits;                                                                                    \
        return __builtin_isunordered(a, b) ? NAN : x.value;                                                  \
    }                                                                                                        \
    static inline value_##NAME MAX_##NAME(value_##NAME a, value_##NAME b)                                    \
    {                                                                                                        \
        union bits_##NAME x = {.value = a > b ? a : b}, y = {.value = b > a ? b : a};                        \
        x.bits &= y.bits;                                                                                    \
        return __builtin_isunordered(a, b) ? NAN : x.value;                                                  \
    }

FLOAT_OPERATORS(F32, uint32_t, __builtin_nanf(""))
FLOAT_OPERATORS(F64, uint64_t, __builtin_nan(""))

/* ---- f16 and bf16, a block at a time ---- */

/*
 * The narrow form of an accumulator is written at or below the place where its wide form was read, so that
 * narrowing works in place if nothing is written before it has been read: here a block at a time.
 */

#ifndef BY_KERNEL_F16_BLOCKS
static inline void f16_widen_block(float *restrict wide, const at_F16 *restrict in)
{
    for (size_t i = 0; i < BLOCK; i++)
        wide[i] = by_f32_from_bits(by_f16_widen(in[i]));
}

static inline void f16_narrow_block(at_F16 *half, const at_F32 *wide)
{
    uint32_t narrow[BLOCK];

    for (size_t i = 0; i < BLOCK; i++)
        narrow[i] = by_f16_narrow(by_f32_bits(wide[i]));
    for (size_t i = 0; i < BLOCK; i++)
        half[i] = (uint16_t)narrow[i];
}
#endif

static inline void bf16_widen_block(float *restrict wide, const at_BF16 *restrict in)
{
    for (size_t i = 0; i < BLOCK; i++)
        wide[i] = by_f32_from_bits(by_bf16_widen(in[i]));
}

static inline void bf16_narrow_block(at_BF16 *half, const at_F32 *wide)
{
    uint32_t narrow[BLOCK];

    for (size_t i = 0; i < BLOCK; i++)
        narrow[i] = by_bf16_narrow(by_f32_bits(wide[i]));
    for (size_t i = 0; i < BLOCK; i++)
        half[i] = (uint16_t)narrow[i];
}

/* Names by element type for the loops below. */
#define WIDEN_F16         by_f16_widen
#define WIDEN_BF16        by_bf16_widen
#define NARROW_F16        by_f16_narrow
#define NARROW_BF16       by_bf16_narrow
#define WIDEN_BLOCK_F16   f16_widen_block
#define WIDEN_BLOCK_BF16  bf16_widen_block
#define NARROW_BLOCK_F16  f16_narrow_block
#define NARROW_BLOCK_BF16 bf16_narrow_block

/* ---- loops ---- */

/* Zeroes up to the next multiple of 4 bytes. */
static inline void pad(uint8_t *bytes, size_t count)
{
    for (; count % 4 != 0; count++)
        bytes[count] = 0;
}

/* Integers, f32 and f64 lie in a slot as on the wire; loads copy them as integers, so that a NaN keeps its
 * bits. */
#define LOAD_STORE_SAME(NAME, BITS)                                                                          \
    static void load_##NAME(void *restrict acc, const void *restrict in, uint32_t count)                     \
    {                                                                                                        \
        at_##BITS *restrict a = acc;                                                                         \
        const at_##BITS *restrict b = in;                                                                    \
        for (uint32_t i = 0; i < count; i++)                                                                 \
            a[i] = b[i];                                                                                     \
    }                                                                                                        \
    static uint32_t store_##NAME(void *acc, uint32_t count)                                                  \
    {                                                                                                        \
        size_t bytes = (size_t)count * sizeof(value_##BITS);                                                 \
        pad(acc, bytes);                                                                                     \
        return by_words_sum(acc, bytes);                                                                     \
    }

LOAD_STORE_SAME(I8, U8)
LOAD_STORE_SAME(U8, U8)
LOAD_STORE_SAME(I32, U32)
LOAD_STORE_SAME(U32, U32)
LOAD_STORE_SAME(I64, U64)
LOAD_STORE_SAME(U64, U64)
LOAD_STORE_SAME(F32, U32)
LOAD_STORE_SAME(F64, U64)

#define LOAD_STORE_HALF(NAME)                                                                                \
    static void load_##NAME(void *restrict acc, const void *restrict in, uint32_t count)                     \
    {                                                                                                        \
        at_U32 *restrict a = acc;                                                                            \
        const at_##NAME *restrict b = in;                                                                    \
        size_t i = 0;                                                                                        \
        for (; count - i >= BLOCK; i += BLOCK) {                                                             \
            float wide[BLOCK];                                                                               \
            WIDEN_BLOCK_##NAME(wide, b + i);                                                                 \
            for (size_t j = 0; j < BLOCK; j++)                                                               \
                a[i + j] = by_f32_bits(wide[j]);                                                             \
        }                                                                                                    \
        for (; i < count; i++)                                                                               \
            a[i] = WIDEN_##NAME(b[i]);                                                                       \
    }                                                                                                        \
    static uint32_t store_##NAME(void *acc, uint32_t count)                                                  \
    {                                                                                                        \
        const at_U32 *a = acc;                                                                               \
        at_##NAME *out = acc;                                                                                \
        size_t i = 0;                                                                                        \
        for (; count - i >= BLOCK; i += BLOCK)                                                               \
            NARROW_BLOCK_##NAME(out + i, (const at_F32 *)(a + i));                                           \
        for (; i < count; i++)                                                                               \
            out[i] = (value_##NAME)NARROW_##NAME(a[i]);                                                      \
        pad(acc, (size_t)count * 2);                                                                         \
        return by_words_sum(acc, (size_t)count * 2);                                                         \
    }

LOAD_STORE_HALF(F16)
LOAD_STORE_HALF(BF16)

#define ACCUMULATE_INTEGER(OP, NAME, ACC)                                                                    \
    static void accumulate_##OP##_##NAME(void *restrict acc, const void *restrict in, uint32_t count)        \
    {                                                                                                        \
        at_##NAME *restrict a = acc;                                                                         \
        const at_##NAME *restrict b = in;                                                                    \
        for (uint32_t i = 0; i < count; i++)                                                                 \
            a[i] = OP##_##NAME(a[i], b[i]);                                                                  \
    }
#define ACCUMULATE_FLOAT ACCUMULATE_INTEGER
#define ACCUMULATE_HALF(OP, NAME, ACC)                                                                       \
    static void accumulate_##OP##_##NAME(void *restrict acc, const void *restrict in, uint32_t count)        \
    {                                                                                                        \
        at_##ACC *restrict a = acc;                                                                          \
        const at_##NAME *restrict b = in;                                                                    \
        size_t i = 0;                                                                                        \
        for (; count - i >= BLOCK; i += BLOCK) {                                                             \
            float wide[BLOCK];                                                                               \
            WIDEN_BLOCK_##NAME(wide, b + i);                                                                 \
            for (size_t j = 0; j < BLOCK; j++)                                                               \
                a[i + j] = OP##_##ACC(a[i + j], wide[j]);                                                    \
        }                                                                                                    \
        for (; i < count; i++)                                                                               \
            a[i] = OP##_##ACC(a[i], by_f32_from_bits(WIDEN_##NAME(b[i])));                                   \
    }

#define X(NAME, C, FAMILY, ACC) BY_KERNEL_OPS_##FAMILY(ACCUMULATE_##FAMILY, NAME, ACC)
BY_KERNEL_TYPE_LIST(X)
#undef X

/* ---- the table ---- */

#define ENTRY_AT(ROW, COLUMN, OP, NAME, ACC)                                                                 \
    [ROW][COLUMN] = {.element_bytes = sizeof(value_##NAME),                                                  \
                     .acc_bytes = sizeof(value_##ACC),                                                       \
                     .load = load_##NAME,                                                                    \
                     .accumulate = accumulate_##OP##_##NAME,                                                 \
                     .store = store_##NAME},
#define ENTRY(OP, NAME, ACC) ENTRY_AT(BY_OP_##OP, BY_DTYPE_##NAME, OP, NAME, ACC)

by_kernel_table BY_KERNEL_TABLE = {
#define X(NAME, C, FAMILY, ACC) BY_KERNEL_OPS_##FAMILY(ENTRY, NAME, ACC)
    BY_KERNEL_TYPE_LIST(X)
#undef X
};
