/*
 * The loop family: every kernel of one instruction set. Included once by each kernels_<isa>.c, which names
 * its tables (BY_KERNEL_TABLE, BY_EXACT_TABLE), its vectors (BY_VECTOR_BYTES), and, where the processor
 * converts f16, provides f16_widen_block and f16_narrow_block and defines BY_KERNEL_F16_BLOCKS. The loops are
 * plain C that the compiler turns into vectors; what is said here about values therefore holds for all
 * instruction sets. Pure; any thread.
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
    uint16_t held[BLOCK];

    for (size_t i = 0; i < BLOCK; i++)
        held[i] = in[i];
    BY_HOLD_ALL(held);
    for (size_t i = 0; i < BLOCK; i++)
        wide[i] = by_f32_from_bits(by_f16_widen(held[i]));
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

/* Lanes of f32 rounded to bf16, which is in the high halves (by_bf16_narrow). */
static inline by_words bf16_round(by_words wide)
{
    by_words is_nan = (by_words)((wide & 0x7fffffffu) > BY_F32_INFINITY);

    return (is_nan & (wide | BY_F32_QUIET)) | (~is_nan & (wide + 0x7fffu + (wide >> 16 & 1u)));
}

/* bf16 lies in a slot in whole blocks of BLOCK in this order: those with an even index, then those with an
 * odd one. So both ways are made of the words of the payload by shifts and masks, without moves between
 * lanes. */
static inline void bf16_widen_block(float *restrict wide, const at_BF16 *restrict in)
{
    const at_U32 *words = (const at_U32 *)in;

    for (size_t i = 0; i < BLOCK / 2; i++)
        wide[i] = by_f32_from_bits(words[i] << 16);
    for (size_t i = 0; i < BLOCK / 2; i++)
        wide[BLOCK / 2 + i] = by_f32_from_bits(words[i] & 0xffff0000u);
}

static inline void bf16_narrow_block(at_BF16 *half, const at_F32 *wide)
{
    const by_words_at *even = (const by_words_at *)wide, *odd = even + BLOCK * 2 / BY_VECTOR_BYTES;
    by_words words[BLOCK * 2 / BY_VECTOR_BYTES];

    for (size_t k = 0; k < BLOCK * 2 / BY_VECTOR_BYTES; k++)
        words[k] = bf16_round(even[k]) >> 16 | (bf16_round(odd[k]) & 0xffff0000u);
    for (size_t k = 0; k < BLOCK * 2 / BY_VECTOR_BYTES; k++)
        ((by_words_at *)half)[k] = words[k];
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

/*
 * The guard of a slot: the sum mod 2^32 of its 32-bit words (the last one padded with zeros), so that a slot
 * whose elements lie as on the wire has its psum for a guard. A loop that changes a slot sums what it finds
 * and what it leaves, in the same pass: memory that changed in between is found out, and the psum of a
 * complete sum is there without another look at it.
 */

static inline int guard_swap(uint32_t *guard, uint32_t before, uint32_t after)
{
    int holds = *guard == before;

    *guard = after;
    return holds;
}

/* An element's bits, and its part of a guard by its bytes. The low half of the sum of x + (x >> 32) is that
 * of both halves of all x. */
#define TALLY_4(bits) ((uint32_t)(bits))
#define TALLY_8(bits) ((uint64_t)(bits) + ((uint64_t)(bits) >> 32))

/* Integers, f32 and f64 lie in a slot as on the wire; loads copy them as integers, so that a NaN keeps its
 * bits. */
#define LOAD_STORE_SAME(NAME)                                                                                \
    static uint32_t load_##NAME(void *restrict acc, const void *restrict in, uint32_t count)                 \
    {                                                                                                        \
        return by_words_copy(acc, in, (size_t)count * sizeof(value_##NAME));                                 \
    }                                                                                                        \
    static int store_##NAME(void *acc, uint32_t count, uint32_t *guard)                                      \
    {                                                                                                        \
        uint32_t found = by_words_sum(acc, (size_t)count * sizeof(value_##NAME));                            \
        return guard_swap(guard, found, found);                                                              \
    }

LOAD_STORE_SAME(I8)
LOAD_STORE_SAME(U8)
LOAD_STORE_SAME(I32)
LOAD_STORE_SAME(U32)
LOAD_STORE_SAME(I64)
LOAD_STORE_SAME(U64)
LOAD_STORE_SAME(F32)
LOAD_STORE_SAME(F64)

#define LOAD_STORE_HALF(NAME)                                                                                \
    static uint32_t load_##NAME(void *restrict acc, const void *restrict in, uint32_t count)                 \
    {                                                                                                        \
        at_U32 *restrict a = acc;                                                                            \
        const at_##NAME *restrict b = in;                                                                    \
        uint32_t guard = 0;                                                                                  \
        size_t i = 0;                                                                                        \
        for (; count - i >= BLOCK; i += BLOCK) {                                                             \
            float wide[BLOCK];                                                                               \
            WIDEN_BLOCK_##NAME(wide, b + i);                                                                 \
            for (size_t j = 0; j < BLOCK; j++) {                                                             \
                uint32_t bits = by_f32_bits(wide[j]);                                                        \
                guard += bits;                                                                               \
                a[i + j] = bits;                                                                             \
            }                                                                                                \
        }                                                                                                    \
        for (; i < count; i++) {                                                                             \
            a[i] = WIDEN_##NAME(b[i]);                                                                       \
            guard += a[i];                                                                                   \
        }                                                                                                    \
        return guard;                                                                                        \
    }                                                                                                        \
    static int store_##NAME(void *acc, uint32_t count, uint32_t *guard)                                      \
    {                                                                                                        \
        const at_U32 *a = acc;                                                                               \
        at_##NAME *out = acc;                                                                                \
        uint32_t before = by_words_sum(acc, (size_t)count * 4);                                              \
        size_t i = 0;                                                                                        \
        for (; count - i >= BLOCK; i += BLOCK)                                                               \
            NARROW_BLOCK_##NAME(out + i, (const at_F32 *)(a + i));                                           \
        for (; i < count; i++)                                                                               \
            out[i] = (value_##NAME)NARROW_##NAME(a[i]);                                                      \
        return guard_swap(guard, before, by_words_sum(acc, (size_t)count * 2));                              \
    }

LOAD_STORE_HALF(F16)
LOAD_STORE_HALF(BF16)

#define ACCUMULATE_HEAD(OP, NAME)                                                                            \
    static int accumulate_##OP##_##NAME(void *restrict acc, const void *restrict in, uint32_t count,         \
                                        uint32_t *guard)

#include "offload/reduce/sums.inc.h"

#define ACCUMULATE_INTEGER(OP, NAME, SUM_TYPE, TALLY)                                                        \
    ACCUMULATE_HEAD(OP, NAME)                                                                                \
    {                                                                                                        \
        at_##NAME *restrict a = acc;                                                                         \
        const at_##NAME *restrict b = in;                                                                    \
        SUM_TYPE before = 0, after = 0;                                                                      \
        for (uint32_t i = 0; i < count; i++) {                                                               \
            value_##NAME x = a[i], y = OP##_##NAME(x, b[i]);                                                 \
            before += TALLY(x);                                                                              \
            after += TALLY(y);                                                                               \
            a[i] = y;                                                                                        \
        }                                                                                                    \
        return guard_swap(guard, (uint32_t)before, (uint32_t)after);                                         \
    }

/*
 * Minima and maxima of 64 bits, for which many processors have a comparison alone: left to themselves,
 * compilers read an input for that and again for its outcome, and its owner may have written in between.
 */
#define X(NAME)                                                                                              \
    typedef value_##NAME vector_##NAME __attribute__((vector_size(BY_VECTOR_BYTES)));                        \
    typedef value_##NAME vector_at_##NAME                                                                    \
        __attribute__((vector_size(BY_VECTOR_BYTES), aligned(1), may_alias));
X(I64)
X(U64)
#undef X

#define ACCUMULATE_CHOICE(OP, NAME, IS)                                                                      \
    ACCUMULATE_HEAD(OP, NAME)                                                                                \
    {                                                                                                        \
        const uint32_t each = BY_VECTOR_BYTES / sizeof(value_##NAME);                                        \
        at_##NAME *restrict a = acc;                                                                         \
        const at_##NAME *restrict b = in;                                                                    \
        by_words before = {0}, after = {0};                                                                  \
        uint64_t rest_before = 0, rest_after = 0;                                                            \
        uint32_t i = 0;                                                                                      \
        for (; count - i >= each; i += each) {                                                               \
            vector_##NAME x = *(const vector_at_##NAME *)(a + i);                                            \
            vector_##NAME y = *(const vector_at_##NAME *)(b + i), taken;                                     \
            BY_HOLD(y);                                                                                      \
            taken = (vector_##NAME)(y IS x);                                                                 \
            y = (y & taken) | (x & ~taken);                                                                  \
            before += (by_words)x;                                                                           \
            after += (by_words)y;                                                                            \
            *(vector_at_##NAME *)(a + i) = y;                                                                \
        }                                                                                                    \
        for (; i < count; i++) {                                                                             \
            value_##NAME x = a[i], y = b[i];                                                                 \
            __asm__("" : "+r"(y));                                                                           \
            y = y IS x ? y : x;                                                                              \
            rest_before += TALLY_8(x);                                                                       \
            rest_after += TALLY_8(y);                                                                        \
            a[i] = y;                                                                                        \
        }                                                                                                    \
        return guard_swap(guard, by_words_total(before) + (uint32_t)rest_before,                             \
                          by_words_total(after) + (uint32_t)rest_after);                                     \
    }

/* Slots are read and written as integers, so that compilers do so once. */
#define ACCUMULATE_FLOAT(OP, NAME, BITS, SUM_TYPE, TALLY)                                                    \
    ACCUMULATE_HEAD(OP, NAME)                                                                                \
    {                                                                                                        \
        at_##BITS *restrict a = acc;                                                                         \
        const at_##NAME *restrict b = in;                                                                    \
        SUM_TYPE before = 0, after = 0;                                                                      \
        for (uint32_t i = 0; i < count; i++) {                                                               \
            union bits_##NAME x = {.bits = a[i]}, y;                                                         \
            y.value = OP##_##NAME(x.value, b[i]);                                                            \
            before += TALLY(x.bits);                                                                         \
            after += TALLY(y.bits);                                                                          \
            a[i] = y.bits;                                                                                   \
        }                                                                                                    \
        return guard_swap(guard, (uint32_t)before, (uint32_t)after);                                         \
    }

/* Words of four elements, BYTES_BLOCK at a time: they stay in the first-level cache for the three loops. */
#define BYTES_BLOCK 256u
#define ACCUMULATE_BYTES(OP, NAME)                                                                           \
    ACCUMULATE_HEAD(OP, NAME)                                                                                \
    {                                                                                                        \
        at_##NAME *a = acc;                                                                                  \
        const at_##NAME *restrict b = in;                                                                    \
        uint32_t before = 0, after = 0;                                                                      \
        size_t i = 0;                                                                                        \
        for (; count - i >= BYTES_BLOCK; i += BYTES_BLOCK) {                                                 \
            before += by_words_sum(a + i, BYTES_BLOCK);                                                      \
            for (size_t j = 0; j < BYTES_BLOCK; j++)                                                         \
                a[i + j] = OP##_##NAME(a[i + j], b[i + j]);                                                  \
            after += by_words_sum(a + i, BYTES_BLOCK);                                                       \
        }                                                                                                    \
        before += by_words_sum(a + i, count - i);                                                            \
        for (size_t j = i; j < count; j++)                                                                   \
            a[j] = OP##_##NAME(a[j], b[j]);                                                                  \
        return guard_swap(guard, before, after + by_words_sum(a + i, count - i));                            \
    }

#define ACCUMULATE_HALF(OP, NAME)                                                                            \
    ACCUMULATE_HEAD(OP, NAME)                                                                                \
    {                                                                                                        \
        at_F32 *restrict a = acc;                                                                            \
        const at_##NAME *restrict b = in;                                                                    \
        uint32_t before = 0, after = 0;                                                                      \
        size_t i = 0;                                                                                        \
        for (; count - i >= BLOCK; i += BLOCK) {                                                             \
            float wide[BLOCK];                                                                               \
            WIDEN_BLOCK_##NAME(wide, b + i);                                                                 \
            for (size_t j = 0; j < BLOCK; j++) {                                                             \
                float x = a[i + j], y = OP##_F32(x, wide[j]);                                                \
                before += by_f32_bits(x);                                                                    \
                after += by_f32_bits(y);                                                                     \
                a[i + j] = y;                                                                                \
            }                                                                                                \
        }                                                                                                    \
        for (; i < count; i++) {                                                                             \
            float x = a[i], y = OP##_F32(x, by_f32_from_bits(WIDEN_##NAME(b[i])));                           \
            before += by_f32_bits(x);                                                                        \
            after += by_f32_bits(y);                                                                         \
            a[i] = y;                                                                                        \
        }                                                                                                    \
        return guard_swap(guard, before, after);                                                             \
    }

#define ACCUMULATE_I8(OP)   ACCUMULATE_BYTES(OP, I8)
#define ACCUMULATE_U8(OP)   ACCUMULATE_BYTES(OP, U8)
#define ACCUMULATE_I32(OP)  ACCUMULATE_INTEGER(OP, I32, uint32_t, TALLY_4)
#define ACCUMULATE_U32(OP)  ACCUMULATE_INTEGER(OP, U32, uint32_t, TALLY_4)
#define ACCUMULATE_I64(OP)  ACCUMULATE_64_##OP(OP, I64)
#define ACCUMULATE_U64(OP)  ACCUMULATE_64_##OP(OP, U64)
#define ACCUMULATE_F32(OP)  ACCUMULATE_FLOAT_##OP(F32, U32, uint32_t, TALLY_4)
#define ACCUMULATE_F64(OP)  ACCUMULATE_FLOAT_##OP(F64, U64, uint64_t, TALLY_8)
#define ACCUMULATE_F16(OP)  ACCUMULATE_HALF_##OP(F16)
#define ACCUMULATE_BF16(OP) ACCUMULATE_HALF_##OP(BF16)

#define ACCUMULATE_64_SUM(OP, NAME) ACCUMULATE_INTEGER(OP, NAME, uint64_t, TALLY_8)
#define ACCUMULATE_64_MIN(OP, NAME) ACCUMULATE_CHOICE(OP, NAME, <)
#define ACCUMULATE_64_MAX(OP, NAME) ACCUMULATE_CHOICE(OP, NAME, >)
#define ACCUMULATE_64_PROD          ACCUMULATE_64_SUM
#define ACCUMULATE_64_BAND          ACCUMULATE_64_SUM
#define ACCUMULATE_64_BOR           ACCUMULATE_64_SUM
#define ACCUMULATE_64_BXOR          ACCUMULATE_64_SUM

#define ACCUMULATE_FLOAT_SUM(NAME, ...)                                                                      \
    ACCUMULATE_ARITHMETIC(SUM, +, NAME)                                                                      \
    ACCUMULATE_PAIR_ARITHMETIC(SUM, +, NAME)
#define ACCUMULATE_FLOAT_PROD(NAME, ...)                                                                     \
    ACCUMULATE_ARITHMETIC(PROD, *, NAME)                                                                     \
    ACCUMULATE_PAIR_ARITHMETIC(PROD, *, NAME)
#define ACCUMULATE_FLOAT_MIN(NAME, ...) ACCUMULATE_FLOAT(MIN, NAME, __VA_ARGS__)
#define ACCUMULATE_FLOAT_MAX(NAME, ...) ACCUMULATE_FLOAT(MAX, NAME, __VA_ARGS__)
#define ACCUMULATE_HALF_SUM(NAME)                                                                            \
    ACCUMULATE_HALF_ARITHMETIC(SUM, +, NAME)                                                                 \
    ACCUMULATE_PAIR_HALF_ARITHMETIC(SUM, +, NAME)
#define ACCUMULATE_HALF_PROD(NAME)                                                                           \
    ACCUMULATE_HALF_ARITHMETIC(PROD, *, NAME)                                                                \
    ACCUMULATE_PAIR_HALF_ARITHMETIC(PROD, *, NAME)
#define ACCUMULATE_HALF_MIN(NAME) ACCUMULATE_HALF(MIN, NAME)
#define ACCUMULATE_HALF_MAX(NAME) ACCUMULATE_HALF(MAX, NAME)

#define ACCUMULATE(OP, NAME)    ACCUMULATE_##NAME(OP)
#define X(NAME, C, FAMILY, ACC) BY_KERNEL_OPS_##FAMILY(ACCUMULATE, NAME)
BY_KERNEL_TYPE_LIST(X)
#undef X

static uint32_t psum(const void *data, size_t bytes)
{
    return by_words_sum(data, bytes);
}

static uint32_t psum_copy(void *restrict dst, const void *restrict src, size_t bytes)
{
    return by_words_copy(dst, src, bytes);
}

/* ---- the table ---- */

/* Only what depends on the order of operands is added in pairs. */
#define PAIR_INTEGER(OP, NAME) NULL
#define PAIR_FLOAT(OP, NAME)   PAIR_##OP(NAME)
#define PAIR_HALF              PAIR_FLOAT
#define PAIR_SUM(NAME)         accumulate_pair_SUM_##NAME
#define PAIR_PROD(NAME)        accumulate_pair_PROD_##NAME
#define PAIR_MIN(NAME)         NULL
#define PAIR_MAX(NAME)         NULL

#define ENTRY_AT(ROW, COLUMN, OP, NAME, FAMILY, ACC)                                                         \
    [ROW][COLUMN] = {.element_bytes = sizeof(value_##NAME),                                                  \
                     .acc_bytes = sizeof(value_##ACC),                                                       \
                     .load = load_##NAME,                                                                    \
                     .accumulate = accumulate_##OP##_##NAME,                                                 \
                     .accumulate_pair = PAIR_##FAMILY(OP, NAME),                                             \
                     .store = store_##NAME,                                                                  \
                     .psum = psum,                                                                           \
                     .psum_copy = psum_copy},
#define ENTRY(OP, NAME, FAMILY, ACC) ENTRY_AT(BY_OP_##OP, BY_DTYPE_##NAME, OP, NAME, FAMILY, ACC)

by_kernel_table BY_KERNEL_TABLE = {
#define X(NAME, C, FAMILY, ACC) BY_KERNEL_OPS_##FAMILY(ENTRY, NAME, FAMILY, ACC)
    BY_KERNEL_TYPE_LIST(X)
#undef X
};

#include "offload/reduce/exact.inc.h"
