/*
 * The loop family: every kernel of one instruction set. Each kernels_<isa>.c includes this once. It
 * names its tables (BY_KERNEL_TABLE, BY_EXACT_TABLE) and its vectors (BY_VECTOR_BYTES); where the
 * processor converts f16, it provides f16_widen_vectors and f16_narrow_block and defines
 * BY_KERNEL_F16_BLOCKS. The loops are plain C with vectors of the compiler; the rules for values
 * given here hold for all instruction sets. Pure; any thread.
 *
 * An input can be shared memory, which its owner may write at any time, so each of its bytes is
 * read only once. Vectors are loaded into a register and held there (BY_HOLD); the rest behind the
 * last whole vector is copied to a local array (psum_copy). An input with a single use has the
 * result of that use held instead, so that the load is part of its instruction: a separate load
 * costs sums a tenth of their speed (f16: a fifth). No other expression names an input, because a
 * compiler may read it again in a plain loop.
 *
 * NaN rule, so that neither the order of operands nor the processor affects the bits: an operator
 * whose result is a NaN produces the quiet NaN 0x7fc00000 (f64: 0x7ff8000000000000). Only load and
 * store keep a NaN's sign and payload; NaNs of f16 and bf16 become quiet. Sums and products round
 * to nearest even in the default floating-point environment.
 */
#include "offload/reduce/half.h"
#include "offload/reduce/kernels.h"
#include "offload/reduce/psum.h"
#include "offload/reduce/reduce.h"

/*
 * Elements of f16 and bf16 that are widened or narrowed at a time (count). Compilers unroll shorter
 * loops before they try to vectorise them (gcc: 16 times), and then fail to.
 */
#define BLOCK 32u

/* value_<NAME> is the type for computing, at_<NAME> the type in memory: any alignment, may
 * alias. */
#define X(NAME, C, FAMILY, ACC)                                                                              \
    typedef C value_##NAME;                                                                                  \
    typedef C at_##NAME __attribute__((aligned(1), may_alias));
BY_KERNEL_TYPE_LIST(X)
#undef X

/* Vectors of these types, in registers and in memory. */
#define X(NAME, C, FAMILY, ACC)                                                                              \
    typedef value_##NAME vector_##NAME __attribute__((vector_size(BY_VECTOR_BYTES)));                        \
    typedef value_##NAME vector_at_##NAME                                                                    \
        __attribute__((vector_size(BY_VECTOR_BYTES), aligned(1), may_alias));
BY_KERNEL_TYPE_LIST(X)
#undef X

#define BLOCK_VECTORS (BLOCK * 4 / BY_VECTOR_BYTES) /* of f32 */

/* All ones in each lane where x or y is a NaN. */
#ifndef UNORDERED_F32
#define UNORDERED_F32(x, y) ((by_words)((x) != (x)) | (by_words)((y) != (y)))
#define UNORDERED_F64       UNORDERED_F32
#endif

static __attribute__((noinline)) uint32_t psum(const void *data, size_t bytes)
{
    return by_words_sum(data, bytes);
}

static __attribute__((noinline)) uint32_t psum_copy(void *restrict dst, const void *restrict src,
                                                    size_t bytes)
{
    return by_words_copy(dst, src, bytes);
}

/* ---- operators on two values ---- */

/* Sums and products wrap by way of U, the unsigned type; 8-bit values are promoted to int, where
 * they fit. */
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
 * The minimum is computed in both orders. The two results differ only if the operands are equal (or
 * unordered), and equal operands differ in bits only if they are zeros. Then OR gives -0 if there
 * is one; for the maximum, AND gives +0 if there is one.
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

/* ---- operators on two vectors ---- */

/* x in the lanes of `lanes`, else y. */
#define VECTOR_CHOICE(lanes, x, y)                                                                           \
    (((by_words)(x) & (by_words)(lanes)) | ((by_words)(y) & ~(by_words)(lanes)))

/* Minima and maxima up to 32 bits: one instruction, which gcc does not select by itself. */
#ifdef BY_KERNEL_INTRINSIC
#define CHOICE_BY(NAME, a, b)                                                                                \
    ((by_words)BY_KERNEL_INTRINSIC(NAME)((BY_KERNEL_INTEGERS)(a), (BY_KERNEL_INTEGERS)(b)))
#define LEAST_I8(a, b)  CHOICE_BY(min_epi8, a, b)
#define LEAST_U8(a, b)  CHOICE_BY(min_epu8, a, b)
#define LEAST_I32(a, b) CHOICE_BY(min_epi32, a, b)
#define LEAST_U32(a, b) CHOICE_BY(min_epu32, a, b)
#define MOST_I8(a, b)   CHOICE_BY(max_epi8, a, b)
#define MOST_U8(a, b)   CHOICE_BY(max_epu8, a, b)
#define MOST_I32(a, b)  CHOICE_BY(max_epi32, a, b)
#define MOST_U32(a, b)  CHOICE_BY(max_epu32, a, b)
#else
#define LEAST_I8(a, b) VECTOR_CHOICE((a) < (b), a, b)
#define LEAST_U8       LEAST_I8
#define LEAST_I32      LEAST_I8
#define LEAST_U32      LEAST_I8
#define MOST_I8(a, b)  VECTOR_CHOICE((a) > (b), a, b)
#define MOST_U8        MOST_I8
#define MOST_I32       MOST_I8
#define MOST_U32       MOST_I8
#endif
#define LEAST_I64(a, b) VECTOR_CHOICE((a) < (b), a, b)
#define LEAST_U64       LEAST_I64
#define MOST_I64(a, b)  VECTOR_CHOICE((a) > (b), a, b)
#define MOST_U64        MOST_I64

#define VECTOR_OPERATOR(OP, NAME, EXPRESSION)                                                                \
    static inline vector_##NAME vector_##OP##_##NAME(vector_##NAME a, vector_##NAME b)                       \
    {                                                                                                        \
        return (vector_##NAME)(EXPRESSION);                                                                  \
    }

#define INTEGER_VECTOR_OPERATORS(NAME, U)                                                                    \
    VECTOR_OPERATOR(SUM, NAME, (vector_##U)a + (vector_##U)b)                                                \
    VECTOR_OPERATOR(PROD, NAME, (vector_##U)a *(vector_##U)b)                                                \
    VECTOR_OPERATOR(MIN, NAME, LEAST_##NAME(a, b))                                                           \
    VECTOR_OPERATOR(MAX, NAME, MOST_##NAME(a, b))                                                            \
    VECTOR_OPERATOR(BAND, NAME, a &b)                                                                        \
    VECTOR_OPERATOR(BOR, NAME, a | b)                                                                        \
    VECTOR_OPERATOR(BXOR, NAME, a ^ b)

INTEGER_VECTOR_OPERATORS(I8, U8)
INTEGER_VECTOR_OPERATORS(U8, U8)
INTEGER_VECTOR_OPERATORS(I32, U32)
INTEGER_VECTOR_OPERATORS(U32, U32)
INTEGER_VECTOR_OPERATORS(I64, U64)
INTEGER_VECTOR_OPERATORS(U64, U64)

/* The same rules as for two values. */
#ifndef LEAST_F32
#define FLOAT_CHOICE(NAME, NAN, a, b, choice)                                                                \
    VECTOR_CHOICE(UNORDERED_##NAME(a, b), (vector_##NAME){0} + (NAN), choice)
#define LEAST_FLOAT(a, b) (VECTOR_CHOICE((a) < (b), a, b) | VECTOR_CHOICE((b) < (a), b, a))
#define MOST_FLOAT(a, b)  (VECTOR_CHOICE((a) > (b), a, b) & VECTOR_CHOICE((b) > (a), b, a))
#define LEAST_F32(a, b)   FLOAT_CHOICE(F32, __builtin_nanf(""), a, b, LEAST_FLOAT(a, b))
#define LEAST_F64(a, b)   FLOAT_CHOICE(F64, __builtin_nan(""), a, b, LEAST_FLOAT(a, b))
#define MOST_F32(a, b)    FLOAT_CHOICE(F32, __builtin_nanf(""), a, b, MOST_FLOAT(a, b))
#define MOST_F64(a, b)    FLOAT_CHOICE(F64, __builtin_nan(""), a, b, MOST_FLOAT(a, b))
#endif

VECTOR_OPERATOR(MIN, F32, LEAST_F32(a, b))
VECTOR_OPERATOR(MAX, F32, MOST_F32(a, b))
VECTOR_OPERATOR(MIN, F64, LEAST_F64(a, b))
VECTOR_OPERATOR(MAX, F64, MOST_F64(a, b))

/* ---- f16 and bf16, a block at a time ---- */

/*
 * The narrow form of an accumulator is written at or below the place of its wide form. So narrowing
 * works in place if nothing is written before it has been read: here, one block at a time.
 */

#if BY_VECTOR_BYTES >= 16
#define WIDEN_LINKAGE static inline
#else /* for small code */
#define WIDEN_LINKAGE static __attribute__((noinline))
#endif

#ifndef BY_KERNEL_F16_BLOCKS
WIDEN_LINKAGE void f16_widen_vectors(vector_F32 wide[BLOCK_VECTORS], const void *in)
{
    uint16_t held[BLOCK];
    uint32_t block[BLOCK];

    for (size_t k = 0; k < BLOCK_VECTORS / 2; k++) {
        by_words words = ((const by_words_at *)in)[k];

        BY_HOLD(words);
        ((by_words_at *)held)[k] = words;
    }
    for (size_t i = 0; i < BLOCK; i++)
        block[i] = by_f16_widen(held[i]);
    for (size_t k = 0; k < BLOCK_VECTORS; k++) /* a long copy would be a call of the C library */
        wide[k] = ((const vector_at_F32 *)block)[k];
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

/* Rounds lanes of f32 to bf16 in the high halves (by_bf16_narrow). */
static inline by_words bf16_round(by_words wide)
{
    by_words is_nan = (by_words)((wide & 0x7fffffffu) > BY_F32_INFINITY);

    return (is_nan & (wide | BY_F32_QUIET)) | (~is_nan & (wide + 0x7fffu + (wide >> 16 & 1u)));
}

/* A slot stores bf16 in whole blocks of BLOCK in this order: first the elements with an even index,
 * then those with an odd one. So both conversions need only shifts and masks of the payload's
 * words, without moves between lanes. */
WIDEN_LINKAGE void bf16_widen_vectors(vector_F32 wide[BLOCK_VECTORS], const void *in)
{
    for (size_t k = 0; k < BLOCK_VECTORS / 2; k++) {
        by_words words = ((const by_words_at *)in)[k];

        BY_HOLD(words);
        wide[k] = (vector_F32)(words << 16);
        wide[k + BLOCK_VECTORS / 2] = (vector_F32)(words & 0xffff0000u);
    }
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
#define WIDEN_F16          by_f16_widen
#define WIDEN_BF16         by_bf16_widen
#define NARROW_F16         by_f16_narrow
#define NARROW_BF16        by_bf16_narrow
#define WIDEN_VECTORS_F16  f16_widen_vectors
#define WIDEN_VECTORS_BF16 bf16_widen_vectors
#define NARROW_BLOCK_F16   f16_narrow_block
#define NARROW_BLOCK_BF16  bf16_narrow_block

/* ---- loops ---- */

/*
 * The guard of a slot: the sum mod 2^32 of its 32-bit words (the last one padded with zeros). A
 * slot whose elements are stored as on the wire therefore has its psum as guard. A loop that
 * changes a slot sums the old and the new contents in the same pass. This detects memory that
 * changed in between, and the psum of a complete sum is available without another pass.
 */

static inline int guard_swap(uint32_t *guard, uint32_t before, uint32_t after)
{
    int holds = *guard == before;

    *guard = after;
    return holds;
}

/* A slot stores integers, f32 and f64 as on the wire; loads copy them as integers, so that a NaN
 * keeps its bits. */
#define LOAD_STORE_SAME(NAME)                                                                                \
    static uint32_t load_##NAME(void *restrict acc, const void *restrict in, uint32_t count)                 \
    {                                                                                                        \
        return psum_copy(acc, in, (size_t)count * sizeof(value_##NAME));                                     \
    }                                                                                                        \
    static int store_##NAME(void *acc, uint32_t count, uint32_t *guard)                                      \
    {                                                                                                        \
        uint32_t found = psum(acc, (size_t)count * sizeof(value_##NAME));                                    \
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
        by_words sum = {0};                                                                                  \
        uint32_t guard = 0;                                                                                  \
        size_t i = 0;                                                                                        \
        for (; count - i >= BLOCK; i += BLOCK) {                                                             \
            vector_F32 wide[BLOCK_VECTORS];                                                                  \
            WIDEN_VECTORS_##NAME(wide, b + i);                                                               \
            for (size_t k = 0; k < BLOCK_VECTORS; k++) {                                                     \
                sum += (by_words)wide[k];                                                                    \
                ((by_words_at *)(a + i))[k] = (by_words)wide[k];                                             \
            }                                                                                                \
        }                                                                                                    \
        if (i < count) {                                                                                     \
            value_##NAME rest[BLOCK];                                                                        \
            psum_copy(rest, b + i, (count - i) * sizeof(value_##NAME));                                      \
            for (size_t j = i; j < count; j++) {                                                             \
                uint32_t wide = WIDEN_##NAME(rest[j - i]);                                                   \
                guard += wide;                                                                               \
                a[j] = wide;                                                                                 \
            }                                                                                                \
        }                                                                                                    \
        return guard + by_words_total(sum);                                                                  \
    }                                                                                                        \
    static int store_##NAME(void *acc, uint32_t count, uint32_t *guard)                                      \
    {                                                                                                        \
        const at_U32 *a = acc;                                                                               \
        at_##NAME *out = acc;                                                                                \
        uint32_t before = psum(acc, (size_t)count * 4);                                                      \
        size_t i = 0;                                                                                        \
        for (; count - i >= BLOCK; i += BLOCK)                                                               \
            NARROW_BLOCK_##NAME(out + i, (const at_F32 *)(a + i));                                           \
        for (; i < count; i++)                                                                               \
            out[i] = (value_##NAME)NARROW_##NAME(a[i]);                                                      \
        return guard_swap(guard, before, psum(acc, (size_t)count * 2));                                      \
    }

LOAD_STORE_HALF(F16)
LOAD_STORE_HALF(BF16)

#define ACCUMULATE_HEAD(OP, NAME)                                                                            \
    static int accumulate_##OP##_##NAME(void *restrict acc, const void *restrict in, uint32_t count,         \
                                        uint32_t *guard)

/* The parts of a guard for the elements behind the vectors. */
struct tail {
    uint32_t before, after;
};

#define TAIL(OP, NAME)                                                                                       \
    __attribute__((noinline)) static struct tail tail_##OP##_##NAME(void *acc, const void *in,               \
                                                                    size_t count) {                          \
        value_##NAME rest[2 * BY_VECTOR_BYTES > 4 * BLOCK ? 2 * BY_VECTOR_BYTES / sizeof(value_##NAME)       \
                                                          : 4 * BLOCK / sizeof(value_##NAME)];               \
        at_##NAME *a = acc;                                                                                  \
        struct tail tail = {.before = psum(acc, count * sizeof(value_##NAME))};                              \
        psum_copy(rest, in, count * sizeof(value_##NAME));                                                   \
        for (size_t i = 0; i < count; i++)                                                                   \
            a[i] = OP##_##NAME(a[i], rest[i]);                                                               \
        tail.after = psum(acc, count * sizeof(value_##NAME));                                                \
        return tail;                                                                                         \
    }
#define TAILS_INTEGER(NAME) BY_KERNEL_OPS_INTEGER(TAIL, NAME)
#define TAILS_FLOAT(NAME)   BY_KERNEL_OPS_FLOAT(TAIL, NAME)
#define TAILS_HALF(NAME)
#define X(NAME, C, FAMILY, ACC) TAILS_##FAMILY(NAME)
BY_KERNEL_TYPE_LIST(X)
#undef X

/* Copies up to BLOCK halves as f32; returns their psum. */
#define REST(NAME)                                                                                           \
    static uint32_t rest_##NAME(at_F32 *wide, const void *in, size_t count)                                  \
    {                                                                                                        \
        value_##NAME held[BLOCK];                                                                            \
        uint32_t sum = psum_copy(held, in, count * sizeof(value_##NAME));                                    \
        for (size_t i = 0; i < count; i++)                                                                   \
            wide[i] = by_f32_from_bits(WIDEN_##NAME(held[i]));                                               \
        return sum;                                                                                          \
    }
REST(F16)
REST(BF16)

#if BY_VECTOR_BYTES >= 16
#include "offload/reduce/sums.inc.h"
#endif

/* Combines a vector y of input with the vector of a slot at `at`. */
#define MEET(OP, NAME, at, y, before, after)                                                                 \
    do {                                                                                                     \
        vector_##NAME x_ = *(const vector_at_##NAME *)(at), y_;                                              \
        BY_HOLD(x_);                                                                                         \
        y_ = vector_##OP##_##NAME(x_, y);                                                                    \
        (before) += (by_words)x_;                                                                            \
        (after) += (by_words)y_;                                                                             \
        *(vector_at_##NAME *)(at) = y_;                                                                      \
    } while (0)

#if BY_VECTOR_BYTES >= 16
#define ACCUMULATE_VECTORS(OP, NAME)                                                                         \
    ACCUMULATE_HEAD(OP, NAME)                                                                                \
    {                                                                                                        \
        const size_t each = 2 * BY_VECTOR_BYTES / sizeof(value_##NAME);                                      \
        uint8_t *at = acc;                                                                                   \
        const uint8_t *from = in;                                                                            \
        by_words before[2] = {{0}, {0}}, after[2] = {{0}, {0}};                                              \
        struct tail tail = {0, 0};                                                                           \
        for (size_t steps = count / each; steps > 0; steps--) {                                              \
            vector_##NAME y0 = *(const vector_at_##NAME *)from;                                              \
            vector_##NAME y1 = *(const vector_at_##NAME *)(from + BY_VECTOR_BYTES);                          \
            BY_HOLD(y0);                                                                                     \
            BY_HOLD(y1);                                                                                     \
            MEET(OP, NAME, at, y0, before[0], after[0]);                                                     \
            MEET(OP, NAME, at + BY_VECTOR_BYTES, y1, before[1], after[1]);                                   \
            at += 2 * BY_VECTOR_BYTES;                                                                       \
            from += 2 * BY_VECTOR_BYTES;                                                                     \
        }                                                                                                    \
        if (count % each != 0)                                                                               \
            tail = tail_##OP##_##NAME(at, from, count % each);                                               \
        return guard_swap(guard, by_words_total(before[0] + before[1]) + tail.before,                        \
                          by_words_total(after[0] + after[1]) + tail.after);                                 \
    }

#define ACCUMULATE_HALF(OP, NAME)                                                                            \
    ACCUMULATE_HEAD(OP, NAME)                                                                                \
    {                                                                                                        \
        uint8_t *at = acc;                                                                                   \
        const at_##NAME *from = in;                                                                          \
        by_words before = {0}, after = {0};                                                                  \
        struct tail tail = {0, 0};                                                                           \
        size_t i = 0;                                                                                        \
        for (; count - i >= BLOCK; i += BLOCK) {                                                             \
            vector_F32 wide[BLOCK_VECTORS];                                                                  \
            WIDEN_VECTORS_##NAME(wide, from + i);                                                            \
            for (size_t k = 0; k < BLOCK_VECTORS; k++, at += BY_VECTOR_BYTES)                                \
                MEET(OP, F32, at, wide[k], before, after);                                                   \
        }                                                                                                    \
        if (i < count) {                                                                                     \
            float rest[BLOCK];                                                                               \
            rest_##NAME(rest, from + i, count - i);                                                          \
            tail = tail_##OP##_F32(at, rest, count - i);                                                     \
        }                                                                                                    \
        return guard_swap(guard, by_words_total(before) + tail.before, by_words_total(after) + tail.after);  \
    }

#else
/* Without vectors: one piece at a time in a local array, because the code must be small here. */
#define ACCUMULATE_VECTORS(OP, NAME)                                                                         \
    ACCUMULATE_HEAD(OP, NAME)                                                                                \
    {                                                                                                        \
        const uint32_t each = 4 * BLOCK / sizeof(value_##NAME);                                              \
        struct tail all = {0, 0};                                                                            \
        for (uint32_t i = 0; i < count; i += each) {                                                         \
            uint32_t part = count - i < each ? count - i : each;                                             \
            struct tail tail = tail_##OP##_##NAME((at_##NAME *)acc + i, (const at_##NAME *)in + i, part);    \
            all.before += tail.before;                                                                       \
            all.after += tail.after;                                                                         \
        }                                                                                                    \
        return guard_swap(guard, all.before, all.after);                                                     \
    }

#define ACCUMULATE_HALF(OP, NAME)                                                                            \
    ACCUMULATE_HEAD(OP, NAME)                                                                                \
    {                                                                                                        \
        struct tail all = {0, 0};                                                                            \
        for (uint32_t i = 0; i < count; i += BLOCK) {                                                        \
            uint32_t part = count - i < BLOCK ? count - i : BLOCK;                                           \
            const at_##NAME *from = (const at_##NAME *)in + i;                                               \
            vector_F32 wide[BLOCK_VECTORS];                                                                  \
            struct tail tail;                                                                                \
            if (part < BLOCK)                                                                                \
                rest_##NAME((at_F32 *)wide, from, part);                                                     \
            else                                                                                             \
                WIDEN_VECTORS_##NAME(wide, from);                                                            \
            tail = tail_##OP##_F32((at_F32 *)acc + i, wide, part);                                           \
            all.before += tail.before;                                                                       \
            all.after += tail.after;                                                                         \
        }                                                                                                    \
        return guard_swap(guard, all.before, all.after);                                                     \
    }
#endif

#define ACCUMULATE_I8(OP)   ACCUMULATE_VECTORS(OP, I8)
#define ACCUMULATE_U8(OP)   ACCUMULATE_VECTORS(OP, U8)
#define ACCUMULATE_I32(OP)  ACCUMULATE_VECTORS(OP, I32)
#define ACCUMULATE_U32(OP)  ACCUMULATE_VECTORS(OP, U32)
#define ACCUMULATE_I64(OP)  ACCUMULATE_VECTORS(OP, I64)
#define ACCUMULATE_U64(OP)  ACCUMULATE_VECTORS(OP, U64)
#define ACCUMULATE_F32(OP)  ACCUMULATE_FLOAT_##OP(F32)
#define ACCUMULATE_F64(OP)  ACCUMULATE_FLOAT_##OP(F64)
#define ACCUMULATE_F16(OP)  ACCUMULATE_HALF_##OP(F16)
#define ACCUMULATE_BF16(OP) ACCUMULATE_HALF_##OP(BF16)

#if BY_VECTOR_BYTES >= 16
#define ACCUMULATE_FLOAT_SUM(NAME)  ACCUMULATE_ARITHMETIC(SUM, +, NAME)
#define ACCUMULATE_FLOAT_PROD(NAME) ACCUMULATE_ARITHMETIC(PROD, *, NAME)
#define ACCUMULATE_HALF_SUM(NAME)   ACCUMULATE_HALF_ARITHMETIC(SUM, +, NAME)
#define ACCUMULATE_HALF_PROD(NAME)  ACCUMULATE_HALF_ARITHMETIC(PROD, *, NAME)
#else
#define ACCUMULATE_FLOAT_SUM(NAME)  ACCUMULATE_VECTORS(SUM, NAME)
#define ACCUMULATE_FLOAT_PROD(NAME) ACCUMULATE_VECTORS(PROD, NAME)
#define ACCUMULATE_HALF_SUM(NAME)   ACCUMULATE_HALF(SUM, NAME)
#define ACCUMULATE_HALF_PROD(NAME)  ACCUMULATE_HALF(PROD, NAME)
#endif
#define ACCUMULATE_FLOAT_MIN(NAME) ACCUMULATE_VECTORS(MIN, NAME)
#define ACCUMULATE_FLOAT_MAX(NAME) ACCUMULATE_VECTORS(MAX, NAME)
#define ACCUMULATE_HALF_MIN(NAME)  ACCUMULATE_HALF(MIN, NAME)
#define ACCUMULATE_HALF_MAX(NAME)  ACCUMULATE_HALF(MAX, NAME)

#define ACCUMULATE(OP, NAME)    ACCUMULATE_##NAME(OP)
#define X(NAME, C, FAMILY, ACC) BY_KERNEL_OPS_##FAMILY(ACCUMULATE, NAME)
BY_KERNEL_TYPE_LIST(X)
#undef X

#if BY_VECTOR_BYTES >= 16
#include "offload/reduce/gather.inc.h"
#endif
#include "offload/reduce/terms.inc.h"
#if BY_GATHERS
#define GATHER_OF(OP, NAME) gather_##OP##_##NAME
#else /* for small code */
#define GATHER_OF(OP, NAME) NULL
#endif

/* ---- the table ---- */

/* Terms exist only for operators that depend on the order of operands. */
#define TERMS_OF_INTEGER(OP, NAME) NULL
#define TERMS_OF_FLOAT(OP, NAME)   TERMS_OF_##OP(NAME)
#define TERMS_OF_HALF              TERMS_OF_FLOAT
#define TERMS_OF_SUM(NAME)         add_terms_SUM_##NAME
#define TERMS_OF_PROD(NAME)        add_terms_PROD_##NAME
#define TERMS_OF_MIN(NAME)         NULL
#define TERMS_OF_MAX(NAME)         NULL

#define ENTRY_AT(ROW, COLUMN, OP, NAME, FAMILY, ACC)                                                         \
    [ROW][COLUMN] = {.element_bytes = sizeof(value_##NAME),                                                  \
                     .acc_bytes = sizeof(value_##ACC),                                                       \
                     .load = load_##NAME,                                                                    \
                     .accumulate = accumulate_##OP##_##NAME,                                                 \
                     .add_terms = TERMS_OF_##FAMILY(OP, NAME),                                               \
                     .gather = GATHER_OF(OP, NAME),                                                          \
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
