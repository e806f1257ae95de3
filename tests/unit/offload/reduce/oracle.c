/* Implements oracle.h. double represents f16, bf16 and f32 exactly, quad represents f64.
 * Single-threaded. */
#include <math.h>
#include <string.h>

#include "offload/wire/types.h"
#include "tests/unit/offload/reduce/oracle.h"

/* binary128, under the compiler's name for it. */
#if defined(__clang__) && defined(__x86_64__)
typedef __float128 quad;
#else
typedef _Float128 quad;
#endif

/* Widths of the fields of a binary format (bits). */
struct oracle_format {
    unsigned exponent;
    unsigned fraction;
};

static const struct oracle_format f16 = {5, 10}, bf16 = {8, 7}, f32 = {8, 23}, f64 = {11, 52};

static const struct {
    uint8_t element_bytes, acc_bytes, is_float, is_signed;
    const struct oracle_format *wire;
} kinds[BY_DTYPE_COUNT] = {
    [BY_DTYPE_I8] = {1, 1, 0, 1, NULL},  [BY_DTYPE_U8] = {1, 1, 0, 0, NULL},
    [BY_DTYPE_I32] = {4, 4, 0, 1, NULL}, [BY_DTYPE_U32] = {4, 4, 0, 0, NULL},
    [BY_DTYPE_I64] = {8, 8, 0, 1, NULL}, [BY_DTYPE_U64] = {8, 8, 0, 0, NULL},
    [BY_DTYPE_F16] = {2, 4, 1, 0, &f16}, [BY_DTYPE_BF16] = {2, 4, 1, 0, &bf16},
    [BY_DTYPE_F32] = {4, 4, 1, 0, &f32}, [BY_DTYPE_F64] = {8, 8, 1, 0, &f64},
};

unsigned oracle_element_bytes(unsigned dtype)
{
    return kinds[dtype].element_bytes;
}

unsigned oracle_acc_bytes(unsigned dtype)
{
    return kinds[dtype].acc_bytes;
}

int oracle_is_float(unsigned dtype)
{
    return kinds[dtype].is_float;
}

int oracle_defined(unsigned op, unsigned dtype)
{
    int bitwise = op == BY_OP_BAND || op == BY_OP_BOR || op == BY_OP_BXOR;

    return !(bitwise && kinds[dtype].is_float);
}

/* ---- formats ---- */

static uint64_t fraction_of(const struct oracle_format *format, uint64_t bits)
{
    return bits & (((uint64_t)1 << format->fraction) - 1);
}

static unsigned exponent_of(const struct oracle_format *format, uint64_t bits)
{
    return (unsigned)(bits >> format->fraction) & ((1u << format->exponent) - 1);
}

static int negative(const struct oracle_format *format, uint64_t bits)
{
    return (int)(bits >> (format->fraction + format->exponent)) & 1;
}

static int is_nan(const struct oracle_format *format, uint64_t bits)
{
    return exponent_of(format, bits) == (1u << format->exponent) - 1 && fraction_of(format, bits) != 0;
}

/* Returns the number of the fields: fraction times a power of two. Not for NaN. */
static double value_of(const struct oracle_format *format, uint64_t bits)
{
    int bias = (1 << (format->exponent - 1)) - 1;
    unsigned exponent = exponent_of(format, bits);
    double value;

    if (exponent == (1u << format->exponent) - 1)
        value = HUGE_VAL;
    else if (exponent == 0)
        value = ldexp((double)fraction_of(format, bits), 1 - bias - (int)format->fraction);
    else
        value = ldexp((double)(fraction_of(format, bits) + ((uint64_t)1 << format->fraction)),
                      (int)exponent - bias - (int)format->fraction);
    return negative(format, bits) ? -value : value;
}

/* Returns the bits of the number nearest to `value`, ties to even, in a format of at most 24 bits
 * of precision. Not for NaN. */
static uint64_t bits_of(const struct oracle_format *format, double value)
{
    int bias = (1 << (format->exponent - 1)) - 1;
    uint64_t sign = (uint64_t)(signbit(value) != 0) << (format->fraction + format->exponent);
    uint64_t infinity = (uint64_t)((1u << format->exponent) - 1) << format->fraction;
    uint64_t units;
    double magnitude = fabs(value), scaled, rest;
    int exponent;

    if (isinf(magnitude))
        return sign | infinity;
    if (magnitude == 0)
        return sign;
    (void)frexp(magnitude, &exponent);
    exponent -= 1; /* magnitude = 1.x times 2^exponent */
    if (exponent < 1 - bias)
        exponent = 1 - bias;
    scaled = ldexp(magnitude, (int)format->fraction - exponent); /* in units of the last place; exact */
    units = (uint64_t)scaled;
    rest = scaled - (double)units;
    if (rest > 0.5 || (rest == 0.5 && units % 2 == 1))
        units++;
    /* The hidden bit, or a carry out of the fraction, adds one to the exponent field. */
    units += (uint64_t)(exponent - (1 - bias)) << format->fraction;
    return sign | (units < infinity ? units : infinity);
}

/* Narrows a NaN: keeps the sign and the high payload bits, sets the quiet bit. */
static uint64_t nan_narrowed(const struct oracle_format *to, uint32_t bits)
{
    uint64_t exponent_and_quiet = (((uint64_t)2 << to->exponent) - 1) << (to->fraction - 1);

    return (uint64_t)negative(&f32, bits) << (to->fraction + to->exponent) | exponent_and_quiet |
           fraction_of(&f32, bits) >> (f32.fraction - to->fraction);
}

static uint64_t f32_narrowed(const struct oracle_format *to, uint32_t bits)
{
    return is_nan(&f32, bits) ? nan_narrowed(to, bits) : bits_of(to, value_of(&f32, bits));
}

double oracle_f16_value(uint16_t bits)
{
    return value_of(&f16, bits);
}

uint16_t oracle_f16_from_f32(uint32_t bits)
{
    return (uint16_t)f32_narrowed(&f16, bits);
}

uint16_t oracle_bf16_from_f32(uint32_t bits)
{
    return (uint16_t)f32_narrowed(&bf16, bits);
}

/* ---- elements ---- */

uint64_t oracle_load(unsigned dtype, uint64_t in)
{
    uint64_t nan;

    if (dtype != BY_DTYPE_F16 && dtype != BY_DTYPE_BF16)
        return in;
    if (!is_nan(kinds[dtype].wire, in))
        return bits_of(&f32, value_of(kinds[dtype].wire, in));
    nan = (uint64_t)negative(kinds[dtype].wire, in) << 31 | 0x7f800000u |
          fraction_of(kinds[dtype].wire, in) << (f32.fraction - kinds[dtype].wire->fraction);
    return dtype == BY_DTYPE_F16 ? nan | 0x00400000u : nan;
}

uint64_t oracle_store(unsigned dtype, uint64_t acc)
{
    if (dtype == BY_DTYPE_F16)
        return oracle_f16_from_f32((uint32_t)acc);
    if (dtype == BY_DTYPE_BF16)
        return oracle_bf16_from_f32((uint32_t)acc);
    return acc;
}

static __int128 widened(unsigned dtype, uint64_t bits)
{
    unsigned width = 8u * kinds[dtype].element_bytes;
    __int128 value = bits;

    if (kinds[dtype].is_signed && (bits >> (width - 1)) & 1)
        value -= (__int128)1 << width;
    return value;
}

static uint64_t apply_integer(unsigned op, unsigned dtype, uint64_t a, uint64_t b)
{
    unsigned width = 8u * kinds[dtype].element_bytes;
    uint64_t mask = width == 64 ? UINT64_MAX : ((uint64_t)1 << width) - 1;
    __int128 x = widened(dtype, a), y = widened(dtype, b);

    switch (op) {
    case BY_OP_SUM:
        return (uint64_t)(x + y) & mask;
    case BY_OP_PROD: /* unsigned: modulo 2^128, which keeps the low 64 bits */
        return (uint64_t)((unsigned __int128)x * (unsigned __int128)y) & mask;
    case BY_OP_MIN:
        return x <= y ? a : b;
    case BY_OP_MAX:
        return x >= y ? a : b;
    case BY_OP_BAND:
        return a & b;
    case BY_OP_BOR:
        return a | b;
    default:
        return a ^ b;
    }
}

/* Returns the minimum or maximum in the order of the real numbers, with -0 below +0. */
static uint64_t apply_extremum(unsigned op, const struct oracle_format *format, uint64_t a, uint64_t b)
{
    double x = value_of(format, a), y = value_of(format, b);
    int a_first = x < y || (x == y && negative(format, a) >= negative(format, b));

    return (op == BY_OP_MIN) == a_first ? a : b;
}

/* Sums and products of f32 in double are rounded twice without harm: 53 >= 2 * 24 + 2 (Figueroa,
 * "When is double rounding innocuous?", SIGNUM 1995). So are those of f64 in quad: 113 >= 2 * 53 +
 * 2. */
static uint64_t apply_float(unsigned op, const struct oracle_format *format, uint64_t a, uint64_t b)
{
    uint64_t quiet = (((uint64_t)2 << format->exponent) - 1) << (format->fraction - 1);
    uint64_t bits;
    double x, y, result;

    if (is_nan(format, a) || is_nan(format, b))
        return quiet;
    if (op == BY_OP_MIN || op == BY_OP_MAX)
        return apply_extremum(op, format, a, b);
    x = value_of(format, a);
    y = value_of(format, b);
    if (format == &f64)
        result = (double)(op == BY_OP_SUM ? (quad)x + (quad)y : (quad)x * (quad)y);
    else
        result = op == BY_OP_SUM ? x + y : x * y;
    if (isnan(result))
        return quiet;
    if (format != &f64)
        return bits_of(format, result);
    memcpy(&bits, &result, sizeof(bits));
    return bits;
}

uint64_t oracle_apply(unsigned op, unsigned dtype, uint64_t acc, uint64_t in)
{
    if (!kinds[dtype].is_float)
        return apply_integer(op, dtype, acc, in);
    return apply_float(op, dtype == BY_DTYPE_F64 ? &f64 : &f32, acc, oracle_load(dtype, in));
}

uint32_t oracle_psum(const void *data, size_t bytes)
{
    const uint8_t *p = data;
    uint32_t sum = 0;

    for (size_t i = 0; i < bytes; i++)
        sum += (uint32_t)p[i] << (8 * (i % 4));
    return sum;
}
