/*
 * The loops of exact.h, once for each instruction set: included by kernels_<isa>.c behind kernels.inc.h. Only
 * integers decide anything; the one rounding of a result is a conversion to float, or that of half.h.
 *
 * Of an element of `mant` stored bits and biased exponent e the significand m (hidden bit included) lies at
 * the top of WIDE_TOP bits: m << LEFT. A block with greatest exponent E over n <= 2^h ranks has the quantum
 * that is worth 1 after a shift to the right by h + (E - e): then each element is at most 2^(WIDE_TOP - h)
 * quanta and all together at most 2^WIDE_TOP. E is raised so far that no quantum is finer than the least
 * subnormal, of which all values are multiples: below that nothing is rounded at all.
 *
 * Where a block holds a NaN or an infinity (words[1]), EXTRA more bits are left free: finite elements are
 * then F quanta, |F| <= 2^(FREE - 2); +infinity is worth 2^FREE, -infinity 2^(FREE + h + 1), NaN both. A
 * sum tells how many there were of each.
 */
#include "offload/reduce/exact.h"

struct exact_scale {
    uint32_t headroom; /* h */
    uint32_t top;      /* E, raised */
    uint32_t extra;    /* bits to the right beside h + (E - e) */
    uint32_t free;     /* log2 of what +infinity is worth */
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

/* 2^exponent; within the range of normal and subnormal f32 and f64. */
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

/*
 * Explicit vectors, as compilers do not find them here: of elements as signed integers, which compare in one
 * instruction, and of as many elements as a vector holds of the wide type.
 */
#define EXACT_VECTORS(NAME, BITS, MANT, MASK, BIAS, WIDE, UWIDE, TOP)                                        \
    typedef EXACT_SIGNED_##NAME vector_bits_##NAME __attribute__((vector_size(BY_VECTOR_BYTES)));            \
    typedef EXACT_SIGNED_##NAME vector_bits_at_##NAME                                                        \
        __attribute__((vector_size(BY_VECTOR_BYTES), aligned(1), may_alias));                                \
    typedef UWIDE vector_wide_##NAME __attribute__((vector_size(BY_VECTOR_BYTES)));                          \
    typedef UWIDE vector_wide_at_##NAME                                                                      \
        __attribute__((vector_size(BY_VECTOR_BYTES), aligned(1), may_alias));                                \
    typedef WIDE vector_compared_##NAME __attribute__((vector_size(BY_VECTOR_BYTES)));                       \
    typedef value_##BITS vector_part_##NAME __attribute__((                                                  \
        vector_size(BY_VECTOR_BYTES / sizeof(WIDE) * sizeof(value_##BITS)), aligned(1), may_alias));

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

/* Rounded to the nearest quantum, halves away from zero; the magnitude stays below 2^(TOP + 1), shifts from 1
 * to TOP + 1: others come of an input that changed since its scale. */
#define EXACT_QUANTISE(NAME, BITS, MANT, MASK, BIAS, WIDE, UWIDE, TOP)                                       \
    static void exact_quantise_##NAME(const void *restrict in, uint32_t count,                               \
                                      const uint32_t words[BY_EXACT_WORDS], uint32_t ranks,                  \
                                      void *restrict out)                                                    \
    {                                                                                                        \
        const at_##BITS *restrict b = in;                                                                    \
        at_##WIDE *restrict to = out;                                                                        \
        const uint32_t lanes = BY_VECTOR_BYTES / sizeof(WIDE);                                               \
        const vector_wide_##NAME one = (vector_wide_##NAME){0} + 1;                                          \
        struct exact_scale scale = exact_scale_of(words, ranks, TOP - MANT - 1, TOP);                        \
        UWIDE right = (UWIDE)(scale.headroom + scale.extra + scale.top);                                     \
        uint32_t i = 0;                                                                                      \
        for (; count - i >= lanes; i += lanes) {                                                             \
            vector_wide_##NAME bits =                                                                        \
                __builtin_convertvector(*(const vector_part_##NAME *)(b + i), vector_wide_##NAME);           \
            vector_wide_##NAME e = bits >> MANT & MASK, bare = (vector_wide_##NAME)(e == 0);                 \
            vector_wide_##NAME m = (bits & (((UWIDE)1 << MANT) - 1)) | (~bare & (UWIDE)1 << MANT);           \
            vector_wide_##NAME shift = right - e - (bare & 1), over;                                         \
            vector_wide_##NAME negative = 0 - (bits >> (8 * sizeof(value_##BITS) - 1) & 1);                  \
            over = (vector_wide_##NAME)((vector_compared_##NAME)shift > TOP + 1) |                           \
                   (vector_wide_##NAME)((vector_compared_##NAME)shift < 1);                                  \
            shift = (shift & ~over) | (over & (TOP + 1));                                                    \
            m = ((m << (TOP - MANT - 1)) + (one << (shift - 1))) >> shift;                                   \
            *(vector_wide_at_##NAME *)(to + i) = (m ^ negative) - negative;                                  \
        }                                                                                                    \
        for (; i < count; i++) {                                                                             \
            UWIDE bits = b[i], e = bits >> MANT & MASK, hidden = e != 0;                                     \
            UWIDE m = (bits & (((UWIDE)1 << MANT) - 1)) | hidden << MANT;                                    \
            UWIDE shift = right - (hidden ? e : 1);                                                          \
            UWIDE negative = (UWIDE)0 - (bits >> (8 * sizeof(value_##BITS) - 1) & 1);                        \
            shift = shift - 1 > TOP ? TOP + 1 : shift;                                                       \
            m = ((m << (TOP - MANT - 1)) + ((UWIDE)1 << (shift - 1))) >> shift;                              \
            to[i] = (WIDE)((m ^ negative) - negative);                                                       \
        }                                                                                                    \
        if (!scale.special)                                                                                  \
            return;                                                                                          \
        for (i = 0; i < count; i++) {                                                                        \
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

/* One rounding of sum * 2^exponent. f32 and f64: that of the conversion, as the product is exact or too
 * large. Halves: down to 24 bits with a sticky last one, which f32 holds; then half.h rounds. */
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
        EXACT_FLOAT_##NAME power = EXACT_POWER_##NAME((int32_t)(scale.top + scale.headroom + scale.extra) -  \
                                                      (BIAS + MANT + TOP - MANT - 1));                       \
        for (uint32_t i = 0; i < count; i++)                                                                 \
            to[i] = exact_round_##NAME(b[i], power);                                                         \
        for (uint32_t i = 0; scale.special && i < count; i++)                                                \
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
