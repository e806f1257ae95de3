/* The scalar oracle of banyan-perf; see oracle.h. Works in blocks that fit the cache: reduces all
 * ranks' values in 64-bit integers or in double precision, then compares them with the received
 * results. Pure; any thread. */
#include "host-driver/tools/perf/oracle.h"

#include <math.h>
#include <string.h>

#include "offload/wire/types.h"

#define BLOCK 1024u

/* One widened element: integers sign- or zero-extended, floats as double. */
union oracle_wide {
    uint64_t u;
    double f;
};

static bool is_float(unsigned dtype)
{
    return dtype == BY_DTYPE_F16 || dtype == BY_DTYPE_BF16 || dtype == BY_DTYPE_F32 || dtype == BY_DTYPE_F64;
}

static bool is_signed(unsigned dtype)
{
    return dtype == BY_DTYPE_I8 || dtype == BY_DTYPE_I32 || dtype == BY_DTYPE_I64;
}

/* ---- values ---- */

/* A 32-bit mixing function (Wellons, "Prospecting for hash functions", 2018). */
static inline uint32_t mix(uint32_t x)
{
    x ^= x >> 16;
    x *= 0x7feb352du;
    x ^= x >> 15;
    x *= 0x846ca68bu;
    return x ^ x >> 16;
}

static inline uint32_t key(const struct perf_oracle *oracle, uint32_t rank)
{
    return mix(oracle->salt * 0x9e3779b1u + rank + 1);
}

/* Returns the largest magnitude of whole numbers whose sums over all ranks are exact in the type,
 * however they are grouped. */
static double magnitude(const struct perf_oracle *oracle)
{
    double limit = oracle->dtype == BY_DTYPE_F16 ? 2048 : oracle->dtype == BY_DTYPE_BF16 ? 256 : 16777216;
    double each = floor(limit / oracle->ranks);

    if (oracle->op != BY_OP_SUM)
        return limit; /* no additions */
    return each < 1 ? 1 : each > 1000 ? 1000 : each;
}

static void values_float(const struct perf_oracle *oracle, uint32_t rank, uint64_t first, uint32_t count,
                         double *out)
{
    uint32_t salt = key(oracle, rank);
    uint32_t most = (uint32_t)magnitude(oracle);

    if (oracle->op == BY_OP_PROD) {
        /* 1, -1, and for the first four ranks also 2, -2, 1/2, -1/2: at most 2^4, at least 2^-4. */
        for (uint32_t i = 0; i < count; i++) {
            uint32_t h = mix((uint32_t)(first + i) + salt);
            double value = rank >= 4 ? 1 : (h >> 4 & 3) == 0 ? 2 : (h >> 4 & 3) == 1 ? 0.5 : 1;

            out[i] = (h & 1) != 0 ? -value : value;
        }
    } else if (oracle->random_data && oracle->op == BY_OP_SUM) {
        /* Fractions with as many bits as the type. */
        double scale = oracle->dtype == BY_DTYPE_F16 ? 1024 : oracle->dtype == BY_DTYPE_BF16 ? 128 : 8388608;

        for (uint32_t i = 0; i < count; i++) {
            uint32_t h = mix((uint32_t)(first + i) + salt);

            out[i] = ((double)(h % (uint32_t)(2 * scale)) - scale) / scale;
        }
        if (oracle->dtype == BY_DTYPE_F64)
            for (uint32_t i = 0; i < count; i++)
                out[i] += (double)mix((uint32_t)(first + i) ^ salt) * 0x1p-56;
    } else {
        for (uint32_t i = 0; i < count; i++)
            out[i] = (double)(mix((uint32_t)(first + i) + salt) % (2 * most + 1)) - most;
    }
}

static void values_int(const struct perf_oracle *oracle, uint32_t rank, uint64_t first, uint32_t count,
                       uint64_t *out)
{
    uint32_t salt = key(oracle, rank);
    unsigned shift = 64 - 8 * by_dtype_bytes(oracle->dtype);

    for (uint32_t i = 0; i < count; i++) {
        uint32_t h = mix((uint32_t)(first + i) + salt);

        out[i] = ((uint64_t)h << 32 | (h * 0x85ebca77u ^ salt)) << shift;
    }
    if (is_signed(oracle->dtype))
        for (uint32_t i = 0; i < count; i++)
            out[i] = (uint64_t)((int64_t)out[i] >> shift);
    else
        for (uint32_t i = 0; i < count; i++)
            out[i] >>= shift;
}

static void values(const struct perf_oracle *oracle, uint32_t rank, uint64_t first, uint32_t count,
                   union oracle_wide *out)
{
    if (is_float(oracle->dtype))
        values_float(oracle, rank, first, count, &out->f);
    else
        values_int(oracle, rank, first, count, &out->u);
}

/* ---- 16-bit floats, by definition: sign, exponent, mantissa ---- */

static uint16_t half_of(double value, int mantissa_bits, int exponent_least, int bias)
{
    uint16_t sign = signbit(value) ? 0x8000 : 0;
    int exponent;
    double fraction;

    if (value == 0)
        return sign;
    fraction = frexp(fabs(value), &exponent) * 2; /* 1 <= fraction < 2 */
    exponent--;
    if (exponent < exponent_least)
        return (uint16_t)(sign | (uint16_t)ldexp(fabs(value), mantissa_bits - exponent_least));
    return (uint16_t)(sign | (unsigned)(exponent + bias) << mantissa_bits |
                      (unsigned)ldexp(fraction - 1, mantissa_bits));
}

static double of_half(uint16_t bits, int mantissa_bits, int exponent_least, int bias)
{
    int exponent = (bits & 0x7fff) >> mantissa_bits;
    double mantissa = bits & ((1u << mantissa_bits) - 1);
    double value;

    if (exponent == (0x7fff >> mantissa_bits))
        value = mantissa != 0 ? (double)NAN : (double)INFINITY;
    else if (exponent == 0)
        value = ldexp(mantissa, exponent_least - mantissa_bits);
    else
        value = ldexp(1 + ldexp(mantissa, -mantissa_bits), exponent - bias);
    return (bits & 0x8000) != 0 ? -value : value;
}

/* ---- memory -> wide and back ---- */

#define EACH(type, field, expression)                                                                        \
    for (uint32_t i = 0; i < count; i++) {                                                                   \
        type element;                                                                                        \
        memcpy(&element, bytes + (size_t)i * sizeof(type), sizeof(type));                                    \
        out[i].field = (expression);                                                                         \
    }                                                                                                        \
    break

static void read_block(unsigned dtype, const uint8_t *bytes, uint32_t count, union oracle_wide *out)
{
    switch ((enum by_dtype)dtype) {
    case BY_DTYPE_I8:
        EACH(int8_t, u, (uint64_t)(int64_t)element);
    case BY_DTYPE_U8:
        EACH(uint8_t, u, element);
    case BY_DTYPE_I32:
        EACH(int32_t, u, (uint64_t)(int64_t)element);
    case BY_DTYPE_U32:
        EACH(uint32_t, u, element);
    case BY_DTYPE_I64:
    case BY_DTYPE_U64:
        EACH(uint64_t, u, element);
    case BY_DTYPE_F16:
        EACH(uint16_t, f, of_half(element, 10, -14, 15));
    case BY_DTYPE_BF16:
        EACH(uint16_t, f, of_half(element, 7, -126, 127));
    case BY_DTYPE_F32:
        EACH(float, f, (double)element);
    case BY_DTYPE_F64:
        EACH(double, f, element);
    default:
        memset(out, 0, count * sizeof(*out));
        break;
    }
}
#undef EACH

#define EACH(type, expression)                                                                               \
    for (uint32_t i = 0; i < count; i++) {                                                                   \
        type element = (type)(expression);                                                                   \
        memcpy(bytes + (size_t)i * sizeof(type), &element, sizeof(type));                                    \
    }                                                                                                        \
    break

static void write_block(unsigned dtype, const union oracle_wide *in, uint32_t count, uint8_t *bytes)
{
    switch ((enum by_dtype)dtype) {
    case BY_DTYPE_I8:
    case BY_DTYPE_U8:
        EACH(uint8_t, in[i].u);
    case BY_DTYPE_I32:
    case BY_DTYPE_U32:
        EACH(uint32_t, in[i].u);
    case BY_DTYPE_I64:
    case BY_DTYPE_U64:
        EACH(uint64_t, in[i].u);
    case BY_DTYPE_F16:
        EACH(uint16_t, half_of(in[i].f, 10, -14, 15));
    case BY_DTYPE_BF16:
        EACH(uint16_t, half_of(in[i].f, 7, -126, 127));
    case BY_DTYPE_F32:
        EACH(float, in[i].f);
    case BY_DTYPE_F64:
        EACH(double, in[i].f);
    default:
        break;
    }
}
#undef EACH

/* ---- reduction ---- */

#define EACH(field, expression)                                                                              \
    for (uint32_t i = 0; i < count; i++)                                                                     \
        acc[i].field = (expression);                                                                         \
    break

static void reduce_float(unsigned op, union oracle_wide *acc, const union oracle_wide *in, uint32_t count)
{
    switch ((enum by_op)op) {
    case BY_OP_SUM:
        EACH(f, acc[i].f + in[i].f);
    case BY_OP_PROD:
        EACH(f, acc[i].f * in[i].f);
    case BY_OP_MIN:
        EACH(f, in[i].f < acc[i].f ? in[i].f : acc[i].f);
    case BY_OP_MAX:
        EACH(f, in[i].f > acc[i].f ? in[i].f : acc[i].f);
    case BY_OP_BAND:
    case BY_OP_BOR:
    case BY_OP_BXOR:
    default:
        break;
    }
}

static void reduce_int(unsigned op, bool with_sign, union oracle_wide *acc, const union oracle_wide *in,
                       uint32_t count)
{
    /* maps the order of signed numbers to that of unsigned numbers */
    uint64_t flip = with_sign ? 1ull << 63 : 0;

    switch ((enum by_op)op) {
    case BY_OP_SUM:
        EACH(u, acc[i].u + in[i].u);
    case BY_OP_PROD:
        EACH(u, acc[i].u * in[i].u);
    case BY_OP_MIN:
        EACH(u, (in[i].u ^ flip) < (acc[i].u ^ flip) ? in[i].u : acc[i].u);
    case BY_OP_MAX:
        EACH(u, (in[i].u ^ flip) > (acc[i].u ^ flip) ? in[i].u : acc[i].u);
    case BY_OP_BAND:
        EACH(u, acc[i].u & in[i].u);
    case BY_OP_BOR:
        EACH(u, acc[i].u | in[i].u);
    case BY_OP_BXOR:
        EACH(u, acc[i].u ^ in[i].u);
    default:
        break;
    }
}
#undef EACH

/* ---- comparison ---- */

static uint64_t count_wrong_int(unsigned dtype, const union oracle_wide *want, const union oracle_wide *got,
                                uint32_t count)
{
    /* the wide sum has carried into bits that the type does not have */
    unsigned shift = 64 - 8 * by_dtype_bytes(dtype);
    uint64_t wrong = 0;

    for (uint32_t i = 0; i < count; i++)
        wrong += want[i].u << shift != got[i].u << shift;
    return wrong;
}

/* `bound`: n u times the sum of magnitudes of each element; NULL: exact. A NaN is always wrong. */
static uint64_t count_wrong_float(const union oracle_wide *want, const union oracle_wide *got,
                                  const double *bound, uint32_t count)
{
    uint64_t wrong = 0;

    for (uint32_t i = 0; i < count; i++)
        wrong += !(fabs(want[i].f - got[i].f) <= (bound != NULL ? bound[i] : 0));
    return wrong;
}

static double roundoff(unsigned dtype)
{
    switch ((enum by_dtype)dtype) {
    case BY_DTYPE_F16:
        return 0x1p-11;
    case BY_DTYPE_BF16:
        return 0x1p-8;
    case BY_DTYPE_F32:
        return 0x1p-24;
    case BY_DTYPE_I8:
    case BY_DTYPE_U8:
    case BY_DTYPE_I32:
    case BY_DTYPE_U32:
    case BY_DTYPE_I64:
    case BY_DTYPE_U64:
    case BY_DTYPE_F64:
    default:
        /* f64: twice the bound, because the oracle itself rounds */
        return 0x1p-52;
    }
}

void perf_oracle_fill(const struct perf_oracle *oracle, uint32_t rank, uint64_t first, uint64_t count,
                      void *buffer)
{
    union oracle_wide block[BLOCK];
    uint8_t *bytes = buffer;

    for (uint64_t at = 0; at < count; at += BLOCK) {
        uint32_t size = count - at < BLOCK ? (uint32_t)(count - at) : BLOCK;

        values(oracle, rank, first + at, size, block);
        write_block(oracle->dtype, block, size, bytes + at * by_dtype_bytes(oracle->dtype));
    }
}

uint64_t perf_oracle_wrong_copy(const struct perf_oracle *oracle, uint32_t rank, uint64_t first,
                                uint64_t count, const void *buffer)
{
    unsigned element = by_dtype_bytes(oracle->dtype);
    const uint8_t *bytes = buffer;
    union oracle_wide block[BLOCK];
    uint8_t want[BLOCK * 8];
    uint64_t wrong = 0;

    for (uint64_t at = 0; at < count; at += BLOCK) {
        uint32_t size = count - at < BLOCK ? (uint32_t)(count - at) : BLOCK;
        const uint8_t *got = bytes + at * element;

        values(oracle, rank, first + at, size, block);
        write_block(oracle->dtype, block, size, want);
        if (memcmp(want, got, (size_t)size * element) == 0)
            continue;
        for (uint32_t i = 0; i < size; i++)
            wrong += memcmp(want + (size_t)i * element, got + (size_t)i * element, element) != 0;
    }
    return wrong;
}

/* One block: reduces all ranks' values, and sums their magnitudes if an error bound is needed. */
static void expect(const struct perf_oracle *oracle, uint64_t first, uint32_t count, union oracle_wide *want,
                   double *bound)
{
    union oracle_wide next[BLOCK];

    values(oracle, 0, first, count, want);
    if (bound != NULL)
        for (uint32_t i = 0; i < count; i++)
            bound[i] = fabs(want[i].f);
    for (uint32_t rank = 1; rank < oracle->ranks; rank++) {
        values(oracle, rank, first, count, next);
        if (is_float(oracle->dtype))
            reduce_float(oracle->op, want, next, count);
        else
            reduce_int(oracle->op, is_signed(oracle->dtype), want, next, count);
        if (bound != NULL)
            for (uint32_t i = 0; i < count; i++)
                bound[i] += fabs(next[i].f);
    }
    for (uint32_t i = 0; bound != NULL && i < count; i++)
        bound[i] =
            (oracle->mode == BY_MODE_EXACT && oracle->dtype != BY_DTYPE_F64 ? fabs(want[i].f)
                                                                            : oracle->ranks * bound[i]) *
            roundoff(oracle->dtype);
}

uint64_t perf_oracle_wrong_sum(const struct perf_oracle *oracle, uint64_t first, uint64_t count,
                               const void *buffer)
{
    bool bounded = oracle->random_data && oracle->op == BY_OP_SUM && is_float(oracle->dtype);
    const uint8_t *bytes = buffer;
    union oracle_wide want[BLOCK], got[BLOCK];
    double bound[BLOCK] = {0};
    uint64_t wrong = 0;

    for (uint64_t at = 0; at < count; at += BLOCK) {
        uint32_t size = count - at < BLOCK ? (uint32_t)(count - at) : BLOCK;

        expect(oracle, first + at, size, want, bounded ? bound : NULL);
        read_block(oracle->dtype, bytes + at * by_dtype_bytes(oracle->dtype), size, got);
        wrong += is_float(oracle->dtype) ? count_wrong_float(want, got, bounded ? bound : NULL, size)
                                         : count_wrong_int(oracle->dtype, want, got, size);
    }
    return wrong;
}
