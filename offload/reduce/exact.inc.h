/*
 * The loops of exact.h, once for each instruction set: included by kernels_<isa>.c after
 * kernels.inc.h. Each value is rounded only once: an element to quanta, in integers or in floats
 * where everything else is exact (docs/decisions/0133), and a result, by a conversion to float or
 * by half.h.
 *
 * For an element of `mant` stored bits and biased exponent e the significand m (hidden bit
 * included) is at the top of WIDE_TOP bits: m << LEFT. In a block with greatest exponent E over n
 * <= 2^h ranks, a shift to the right by h + (E - e) makes the quantum 1. Then each element is at
 * most 2^(WIDE_TOP - h) quanta, and all together at most 2^WIDE_TOP. E is raised so far that no
 * quantum is finer than the smallest subnormal. All values are multiples of that, so below it
 * nothing is rounded at all.
 *
 * In a block that contains a NaN or an infinity (words[1]), EXTRA more bits are left free. Finite
 * elements are then F quanta, |F| <= 2^(FREE - 2); +infinity has the value 2^FREE, -infinity
 * 2^(FREE + h + 1), NaN both. A sum shows how many there were of each.
 */
#include "offload/base/bytes.h"
#include "offload/reduce/exact.h"

struct exact_scale {
    uint32_t headroom; /* h */
    uint32_t top;      /* E, raised */
    uint32_t extra;    /* bits to the right in addition to h + (E - e) */
    uint32_t free;     /* log2 of the value of +infinity */
    uint32_t special;
};

static inline struct exact_scale exact_scale_of(const uint32_t words[BY_EXACT_WORDS], uint32_t ranks,
                                                uint32_t left, uint32_t wide_top)
{
    struct exact_scale scale = {.headroom = 1, .top = words[0], .special = words[1] != 0};

    while (((uint64_t)1 << scale.headroom) < ranks)
        scale.headroom++;
    if (scale.top + scale.headroom < left + 1)
        scale.top = left + 1 - scale.headroom;
    if (scale.special) {
        scale.extra = 2 * scale.headroom + 3;
        scale.free = wide_top - scale.extra + 2;
    }
    return scale;
}

/* Returns 2^exponent, within the range of normal and subnormal f32 and f64. */
static inline float exact_power_F32(int32_t exponent)
{
    return by_f32_from_bits(exponent >= -126 ? (uint32_t)(exponent + 127) << 23
                                             : (uint32_t)1 << (exponent + 149));
}

static inline double exact_power_F64(int32_t exponent)
{
    union bits_F64 u = {.bits = exponent >= -1022 ? (uint64_t)(exponent + 1023) << 52
                                                  : (uint64_t)1 << (exponent + 1074)};
    return u.value;
}

/* X(NAME, BITS, mant, exponent mask, bias, WIDE, UWIDE, WIDE_TOP) */
#define EXACT_LIST(X)                                                                                        \
    X(F16, U16, 10, 0x1fu, 15, int32_t, uint32_t, 30)                                                        \
    X(BF16, U16, 7, 0xffu, 127, int32_t, uint32_t, 30)                                                       \
    X(F32, U32, 23, 0xffu, 127, int64_t, uint64_t, 62)                                                       \
    X(F64, U64, 52, 0x7ffu, 1023, int64_t, uint64_t, 62)

typedef uint16_t value_U16;
typedef uint16_t at_U16 __attribute__((aligned(1), may_alias));
typedef int32_t at_int32_t __attribute__((aligned(1), may_alias));
typedef int64_t at_int64_t __attribute__((aligned(1), may_alias));

/* Explicit vectors, because compilers do not vectorise this. Elements are signed integers, which
 * one instruction compares. */
#define EXACT_VECTORS(NAME, BITS, MANT, MASK, BIAS, WIDE, UWIDE, TOP)                                        \
    typedef EXACT_SIGNED_##NAME vector_bits_##NAME __attribute__((vector_size(BY_VECTOR_BYTES)));            \
    typedef EXACT_SIGNED_##NAME vector_bits_at_##NAME                                                        \
        __attribute__((vector_size(BY_VECTOR_BYTES), aligned(1), may_alias));

#define EXACT_SIGNED_F16  int16_t
#define EXACT_SIGNED_BF16 int16_t
#define EXACT_SIGNED_F32  int32_t
#define EXACT_SIGNED_F64  int64_t
EXACT_LIST(EXACT_VECTORS)

#define EXACT_SCALE(NAME, BITS, MANT, MASK, BIAS, WIDE, UWIDE, TOP)                                          \
    static void exact_scale_##NAME(const void *in, uint32_t count, uint32_t words[BY_EXACT_WORDS])           \
    {                                                                                                        \
        const at_##BITS *b = in;                                                                             \
        const uint32_t lanes = BY_VECTOR_BYTES / sizeof(value_##BITS);                                       \
        const EXACT_SIGNED_##NAME infinity = (EXACT_SIGNED_##NAME)((value_##BITS)MASK << MANT);              \
        vector_bits_##NAME most = {0}, any = {0};                                                            \
        value_##BITS greatest = 1, special = 0;                                                              \
        uint32_t i = 0;                                                                                      \
        for (; count - i >= lanes; i += lanes) {                                                             \
            vector_bits_##NAME e = *(const vector_bits_at_##NAME *)(b + i) & infinity;                       \
            vector_bits_##NAME is_special = (vector_bits_##NAME)(e == infinity), more;                       \
            e &= ~is_special;                                                                                \
            more = (vector_bits_##NAME)(e > most);                                                           \
            most = (e & more) | (most & ~more);                                                              \
            any |= is_special;                                                                               \
        }                                                                                                    \
        for (uint32_t lane = 0; lane < lanes; lane++) {                                                      \
            value_##BITS e = (value_##BITS)(most[lane] >> MANT);                                             \
            greatest = e > greatest ? e : greatest;                                                          \
            special |= any[lane] != 0;                                                                       \
        }                                                                                                    \
        for (; i < count; i++) {                                                                             \
            value_##BITS e = (value_##BITS)(b[i] >> MANT & MASK), is_special = e == MASK;                    \
            value_##BITS finite = is_special ? 0 : e;                                                        \
            greatest = finite > greatest ? finite : greatest;                                                \
            special |= is_special;                                                                           \
        }                                                                                                    \
        words[0] = (uint32_t)greatest;                                                                       \
        words[1] = (uint32_t)special;                                                                        \
    }

/*
 * Rounds to the nearest quantum, halves away from zero. Types of 16 and 32 bits use floats of twice
 * the size: an element in quanta is exact (or so far below one half that it does not matter), and
 * so is its sum with one half, as long as it has fraction bits. Only elements that changed since
 * their scale, and specials, are beyond 2^TOP.
 */
#define EXACT_SCALED(NAME, REAL, UREAL, TOP)                                                                 \
    typedef REAL vector_real_##NAME __attribute__((vector_size(BY_VECTOR_BYTES)));                           \
    typedef UREAL vector_ureal_##NAME __attribute__((vector_size(BY_VECTOR_BYTES)));                         \
    struct exact_factors_##NAME {                                                                            \
        vector_real_##NAME less, more; /* two, because one could be beyond the type's range */               \
    };                                                                                                       \
    static inline vector_real_##NAME exact_splat_##NAME(REAL x)                                              \
    {                                                                                                        \
        vector_real_##NAME all;                                                                              \
        for (size_t i = 0; i < BY_VECTOR_BYTES / sizeof(REAL); i++)                                          \
            all[i] = x;                                                                                      \
        return all;                                                                                          \
    }                                                                                                        \
    static inline vector_real_##NAME exact_scaled_##NAME(vector_real_##NAME x,                               \
                                                         struct exact_factors_##NAME by)                     \
    {                                                                                                        \
        const vector_ureal_##NAME top = (vector_ureal_##NAME){0} + ((UREAL)1 << (8 * sizeof(UREAL) - 1));    \
        const vector_real_##NAME limit = (vector_real_##NAME){0} + (REAL)((UREAL)1 << TOP);                  \
        vector_ureal_##NAME sign = (vector_ureal_##NAME)x & top, within;                                     \
        vector_real_##NAME quanta = (vector_real_##NAME)((vector_ureal_##NAME)x & ~top) * by.less * by.more; \
        within = (vector_ureal_##NAME)(quanta < limit);                                                      \
        quanta = (vector_real_##NAME)(((vector_ureal_##NAME)quanta & within) |                               \
                                      ((vector_ureal_##NAME)limit & ~within)) +                              \
                 (REAL)0.5;                                                                                  \
        return (vector_real_##NAME)((vector_ureal_##NAME)quanta | sign);                                     \
    }

EXACT_SCALED(HALF, float, uint32_t, 30)
EXACT_SCALED(F32, double, uint64_t, 62)

typedef int32_t vector_I32 __attribute__((vector_size(BY_VECTOR_BYTES)));
typedef int32_t vector_at_I32 __attribute__((vector_size(BY_VECTOR_BYTES), aligned(1), may_alias));
typedef uint16_t vector_narrow_U16 __attribute__((vector_size(BY_VECTOR_BYTES / 2)));
typedef uint16_t vector_at_narrow_U16
    __attribute__((vector_size(BY_VECTOR_BYTES / 2), aligned(1), may_alias));
typedef float vector_at_narrow_F32 __attribute__((vector_size(BY_VECTOR_BYTES / 2), aligned(1), may_alias));

/* Conversions for which compilers generate slow code; the including source may define better
 * ones. */
#ifndef F64_FROM_F32
#define F64_FROM_F32(at) __builtin_convertvector(*(const vector_at_narrow_F32 *)(at), vector_F64)
#endif
/* Packs two vectors of words below 2^16 into one of half words at `to`. */
#ifndef PACK_U16
#define PACK_U16(to, low, high)                                                                              \
    ((vector_at_narrow_U16 *)(to))[0] = __builtin_convertvector(low, vector_narrow_U16),                     \
                           ((vector_at_narrow_U16 *)(to))[1] =                                               \
                               __builtin_convertvector(high, vector_narrow_U16)
#endif

/* Widens bf16 in the order of the slot. */
static inline void exact_widen_bf16(vector_F32 wide[BLOCK_VECTORS], const void *in)
{
    const vector_at_narrow_U16 *halves = in;

    for (size_t k = 0; k < BLOCK_VECTORS; k++)
        wide[k] = (vector_F32)(__builtin_convertvector(halves[k], by_words) << 16);
}

#define EXACT_QUANTA_HALF(NAME, WIDEN_BLOCK)                                                                 \
    static void exact_quanta_##NAME(const at_U16 *restrict b, uint32_t count, int32_t exponent,              \
                                    at_int32_t *restrict to)                                                 \
    {                                                                                                        \
        const struct exact_factors_HALF by = {exact_splat_HALF(exact_power_F32(exponent / 2)),               \
                                              exact_splat_HALF(exact_power_F32(exponent - exponent / 2))};   \
        uint16_t last[BLOCK];                                                                                \
        int32_t quanta[BLOCK];                                                                               \
        for (uint32_t i = 0; i < count; i += BLOCK) {                                                        \
            uint32_t part = count - i < BLOCK ? count - i : BLOCK;                                           \
            const void *from = b + i;                                                                        \
            vector_at_I32 *at = (vector_at_I32 *)(to + i);                                                   \
            vector_F32 wide[BLOCK_VECTORS];                                                                  \
            if (part < BLOCK) {                                                                              \
                by_zero(last, sizeof(last));                                                                 \
                by_copy(last, from, 2 * part);                                                               \
                from = last;                                                                                 \
                at = (vector_at_I32 *)quanta;                                                                \
            }                                                                                                \
            WIDEN_BLOCK(wide, from);                                                                         \
            for (size_t k = 0; k < BLOCK_VECTORS; k++)                                                       \
                at[k] = __builtin_convertvector(exact_scaled_HALF(wide[k], by), vector_I32);                 \
            if (part < BLOCK)                                                                                \
                by_copy(to + i, quanta, 4 * part);                                                           \
        }                                                                                                    \
    }

EXACT_QUANTA_HALF(F16, f16_widen_vectors)
EXACT_QUANTA_HALF(BF16, exact_widen_bf16)

/* A loop of its own, because not all processors convert f64 to integers in vectors. */
static void exact_quanta_F32(const at_U32 *restrict b, uint32_t count, int32_t exponent,
                             at_int64_t *restrict to)
{
    const struct exact_factors_F32 by = {exact_splat_F32(exact_power_F64(exponent)), exact_splat_F32(1)};
    float last[BLOCK];

    for (uint32_t i = 0; i < count; i += BLOCK) {
        uint32_t part = count - i < BLOCK ? count - i : BLOCK;
        const uint8_t *from = (const uint8_t *)(b + i);
        union {
            vector_F64 vector[BLOCK * 8 / BY_VECTOR_BYTES];
            double value[BLOCK];
        } scaled;

        if (part < BLOCK) {
            by_zero(last, sizeof(last));
            by_copy(last, from, 4 * part);
            from = (const uint8_t *)last;
        }
        for (size_t k = 0; k < BLOCK * 8 / BY_VECTOR_BYTES; k++)
            scaled.vector[k] = exact_scaled_F32(F64_FROM_F32(from + k * BY_VECTOR_BYTES / 2), by);
        if (part < BLOCK) {
            for (uint32_t j = 0; j < part; j++)
                to[i + j] = (int64_t)scaled.value[j];
            break;
        }
        for (at_int64_t *at = to + i, *end = at + BLOCK; at != end; at += 4) {
            const double *value = scaled.value + (at - (to + i));

            at[0] = (int64_t)value[0];
            at[1] = (int64_t)value[1];
            at[2] = (int64_t)value[2];
            at[3] = (int64_t)value[3];
        }
    }
}

/* f64 in integers: the magnitude is below 2^63, shifts are from 1 to 63. */
typedef uint64_t vector_U64 __attribute__((vector_size(BY_VECTOR_BYTES)));
typedef int64_t vector_I64 __attribute__((vector_size(BY_VECTOR_BYTES)));
typedef uint64_t vector_at_U64 __attribute__((vector_size(BY_VECTOR_BYTES), aligned(1), may_alias));

static void exact_quanta_F64(const at_U64 *restrict b, uint32_t count, int32_t exponent,
                             at_int64_t *restrict to)
{
    const uint32_t lanes = BY_VECTOR_BYTES / 8;
    const vector_U64 one = (vector_U64){0} + 1;
    uint64_t right = (uint64_t)(1023 + 61 - exponent);
    uint32_t i = 0;

    for (; count - i >= lanes; i += lanes) {
        vector_U64 bits = *(const vector_at_U64 *)(b + i);
        vector_U64 e = bits >> 52 & 0x7ffu, bare = (vector_U64)(e == 0);
        vector_U64 m = (bits & (((uint64_t)1 << 52) - 1)) | (~bare & (uint64_t)1 << 52);
        vector_U64 shift = right - e - (bare & 1), over, negative = 0 - (bits >> 63);

        over = (vector_U64)((vector_I64)shift > 63) | (vector_U64)((vector_I64)shift < 1);
        shift = (shift & ~over) | (over & 63);
        m = ((m << 9) + (one << (shift - 1))) >> shift;
        *(vector_at_U64 *)(to + i) = (m ^ negative) - negative;
    }
    for (; i < count; i++) {
        uint64_t bits = b[i], e = bits >> 52 & 0x7ffu, hidden = e != 0;
        uint64_t m = (bits & (((uint64_t)1 << 52) - 1)) | hidden << 52;
        uint64_t shift = right - (hidden ? e : 1), negative = 0 - (bits >> 63);

        shift = shift - 1 > 62 ? 63 : shift;
        m = ((m << 9) + ((uint64_t)1 << (shift - 1))) >> shift;
        to[i] = (int64_t)((m ^ negative) - negative);
    }
}

/* log2 of the quanta in 1. */
#define EXACT_EXPONENT(scale, BIAS, TOP)                                                                     \
    ((BIAS) + (TOP)-1 - (int32_t)((scale).top + (scale).headroom + (scale).extra))

#define EXACT_QUANTISE(NAME, BITS, MANT, MASK, BIAS, WIDE, UWIDE, TOP)                                       \
    static void exact_quantise_##NAME(const void *restrict in, uint32_t count,                               \
                                      const uint32_t words[BY_EXACT_WORDS], uint32_t ranks,                  \
                                      void *restrict out)                                                    \
    {                                                                                                        \
        const at_##BITS *restrict b = in;                                                                    \
        at_##WIDE *restrict to = out;                                                                        \
        struct exact_scale scale = exact_scale_of(words, ranks, TOP - MANT - 1, TOP);                        \
        exact_quanta_##NAME(b, count, EXACT_EXPONENT(scale, BIAS, TOP), to);                                 \
        if (!scale.special)                                                                                  \
            return;                                                                                          \
        for (uint32_t i = 0; i < count; i++) {                                                               \
            UWIDE bits = b[i], plus = (UWIDE)1 << scale.free;                                                \
            UWIDE minus = plus << (scale.headroom + 1);                                                      \
            if ((bits >> MANT & MASK) != MASK)                                                               \
                continue;                                                                                    \
            if (bits & (((UWIDE)1 << MANT) - 1))                                                             \
                to[i] = (WIDE)(plus + minus);                                                                \
            else                                                                                             \
                to[i] = (WIDE)(bits >> (8 * sizeof(value_##BITS) - 1) & 1 ? minus : plus);                   \
        }                                                                                                    \
    }

/* Rounds sum * 2^exponent once. f32 and f64: by the conversion, because the product is exact or too
 * large. Halves: reduced to 24 bits with a sticky last bit, which fit f32; then half.h rounds. */
static inline uint32_t exact_round_F32(int64_t sum, float power)
{
    return by_f32_bits((float)sum * power);
}

static inline uint64_t exact_round_F64(int64_t sum, double power)
{
    union bits_F64 u = {.value = (double)sum * power};
    return u.bits;
}

static inline float exact_sticky(int32_t sum, float power)
{
    uint32_t magnitude = sum < 0 ? 0u - (uint32_t)sum : (uint32_t)sum;
    uint32_t large = magnitude >> 24 != 0;
    uint32_t kept = large ? magnitude >> 7 | ((magnitude & 127u) != 0) : magnitude;
    float value = (float)(int32_t)kept * (large ? 128.0f : 1.0f) * power;

    return sum < 0 ? -value : value;
}

static inline uint16_t exact_round_F16(int32_t sum, float power)
{
    return (uint16_t)by_f16_narrow(by_f32_bits(exact_sticky(sum, power)));
}

static inline uint16_t exact_round_BF16(int32_t sum, float power)
{
    return (uint16_t)by_bf16_narrow(by_f32_bits(exact_sticky(sum, power)));
}

/* As exact_sticky, in vectors. */
static inline void exact_sticky_block(vector_F32 wide[BLOCK_VECTORS], const void *sums, float power)
{
    const vector_at_I32 *from = sums;
    const vector_F32 each = exact_splat_HALF(power);

    for (size_t k = 0; k < BLOCK_VECTORS; k++) {
        by_words sum = (by_words)from[k], negative = (by_words)(from[k] < 0), magnitude, small, kept, factor;

        magnitude = (sum ^ negative) - negative;
        small = (by_words)((magnitude >> 24) == 0);
        kept = magnitude >> 7 | ((by_words)((magnitude & 127u) != 0) & 1u);
        kept = (small & magnitude) | (~small & kept);
        factor = (small & 0x3f800000u) | (~small & 0x43000000u); /* 1 and 128 */
        wide[k] = __builtin_convertvector((vector_I32)kept, vector_F32) * (vector_F32)factor * each;
        wide[k] = (vector_F32)((by_words)wide[k] | (negative & 0x80000000u));
    }
}

/* Rounds halves in whole blocks and returns the number of elements in them. */
static uint32_t exact_round_blocks_F16(at_U16 *restrict to, const at_int32_t *restrict b, uint32_t count,
                                       float power)
{
    uint32_t i = 0;

    for (; count - i >= BLOCK; i += BLOCK) {
        vector_F32 wide[BLOCK_VECTORS];

        exact_sticky_block(wide, b + i, power);
        f16_narrow_block((at_F16 *)(to + i), (const at_F32 *)wide);
    }
    return i;
}

/* Narrows to bf16, in the low halves; the input has no NaN. */
static inline by_words exact_round_words(vector_F32 wide)
{
    return ((by_words)wide + 0x7fffu + ((by_words)wide >> 16 & 1u)) >> 16;
}

static uint32_t exact_round_blocks_BF16(at_U16 *restrict to, const at_int32_t *restrict b, uint32_t count,
                                        float power)
{
    uint32_t i = 0;

    for (; count - i >= BLOCK; i += BLOCK) {
        vector_F32 wide[BLOCK_VECTORS];

        exact_sticky_block(wide, b + i, power);
        for (size_t k = 0; k < BLOCK_VECTORS; k += 2)
            PACK_U16((uint8_t *)(to + i) + k * BY_VECTOR_BYTES / 2, exact_round_words(wide[k]),
                     exact_round_words(wide[k + 1]));
    }
    return i;
}

#define EXACT_ROUND_BLOCKS_F16                       exact_round_blocks_F16
#define EXACT_ROUND_BLOCKS_BF16                      exact_round_blocks_BF16
#define EXACT_ROUND_BLOCKS_F32(to, in, count, power) 0
#define EXACT_ROUND_BLOCKS_F64                       EXACT_ROUND_BLOCKS_F32

#define EXACT_POWER_F16  exact_power_F32
#define EXACT_POWER_BF16 exact_power_F32
#define EXACT_POWER_F32  exact_power_F32
#define EXACT_POWER_F64  exact_power_F64
#define EXACT_FLOAT_F16  float
#define EXACT_FLOAT_BF16 float
#define EXACT_FLOAT_F32  float
#define EXACT_FLOAT_F64  double

#define EXACT_RESTORE(NAME, BITS, MANT, MASK, BIAS, WIDE, UWIDE, TOP)                                        \
    static value_##BITS exact_special_##NAME(UWIDE sum, struct exact_scale scale, EXACT_FLOAT_##NAME power)  \
    {                                                                                                        \
        UWIDE plus = (UWIDE)1 << scale.free, raised = sum + plus / 2;                                        \
        UWIDE infinities = raised >> scale.free & (((UWIDE)2 << scale.headroom) - 1);                        \
        UWIDE negatives = raised >> (scale.free + scale.headroom + 1);                                       \
        value_##BITS infinity = (value_##BITS)((value_##BITS)MASK << MANT);                                  \
        if (infinities && negatives)                                                                         \
            return (value_##BITS)(infinity | (value_##BITS)1 << (MANT - 1));                                 \
        if (infinities || negatives)                                                                         \
            return (value_##BITS)(infinity | (value_##BITS)(negatives != 0) << (8 * sizeof(infinity) - 1));  \
        return exact_round_##NAME((WIDE)sum, power);                                                         \
    }                                                                                                        \
    static void exact_restore_##NAME(const void *restrict in, uint32_t count,                                \
                                     const uint32_t words[BY_EXACT_WORDS], uint32_t ranks,                   \
                                     void *restrict out)                                                     \
    {                                                                                                        \
        const at_##WIDE *restrict b = in;                                                                    \
        at_##BITS *restrict to = out;                                                                        \
        struct exact_scale scale = exact_scale_of(words, ranks, TOP - MANT - 1, TOP);                        \
        EXACT_FLOAT_##NAME power = EXACT_POWER_##NAME(-EXACT_EXPONENT(scale, BIAS, TOP));                    \
        uint32_t i = EXACT_ROUND_BLOCKS_##NAME(to, b, count, power);                                         \
        for (; i < count; i++)                                                                               \
            to[i] = exact_round_##NAME(b[i], power);                                                         \
        for (i = 0; scale.special && i < count; i++)                                                         \
            to[i] = exact_special_##NAME((UWIDE)b[i], scale, power);                                         \
    }

#define EXACT(...)                                                                                           \
    EXACT_SCALE(__VA_ARGS__)                                                                                 \
    EXACT_QUANTISE(__VA_ARGS__)                                                                              \
    EXACT_RESTORE(__VA_ARGS__)
EXACT_LIST(EXACT)

#define EXACT_ENTRY_AT(ROW, BITS, WIDE, SCALE, QUANTISE, RESTORE)                                            \
    [ROW] = {sizeof(value_##BITS), sizeof(WIDE), SCALE, QUANTISE, RESTORE},
#define EXACT_ENTRY(NAME, BITS, MANT, MASK, BIAS, WIDE, UWIDE, TOP)                                          \
    EXACT_ENTRY_AT(BY_DTYPE_##NAME, BITS, WIDE, exact_scale_##NAME, exact_quantise_##NAME,                   \
                   exact_restore_##NAME)

const struct by_exact BY_EXACT_TABLE[BY_DTYPE_COUNT] = {EXACT_LIST(EXACT_ENTRY)};
