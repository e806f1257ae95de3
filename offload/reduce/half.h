/*
 * Conversions of f16 (IEEE 754 binary16) and bf16 (the high half of binary32) to and from f32 as
 * bits. Widening is exact; narrowing rounds to nearest even, overflows to infinity and keeps
 * subnormals. A NaN keeps its sign and the high bits of its payload and becomes quiet (bf16
 * widened: bits unchanged), like F16C and AArch64. Branch-free and in 32 bits (the result in the
 * low half), so that compilers vectorise loops over these. Requires the default floating-point
 * environment: round to nearest, no flush to zero. Pure; any thread.
 */
#ifndef BY_REDUCE_HALF_H
#define BY_REDUCE_HALF_H

#include <stdint.h>

#define BY_F32_QUIET    0x00400000u
#define BY_F32_INFINITY 0x7f800000u

static inline uint32_t by_f32_bits(float x)
{
    union {
        float value;
        uint32_t bits;
    } u = {.value = x};
    return u.bits;
}

static inline float by_f32_from_bits(uint32_t bits)
{
    union {
        uint32_t bits;
        float value;
    } u = {.bits = bits};
    return u.value;
}

static inline uint32_t by_f16_widen(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000u) << 16;
    uint32_t rest = half & 0x7fffu;
    uint32_t fraction = rest << 13;
    /* A subnormal read as if its hidden bit were 1 is too large by exactly that bit, 2^-14; the
     * difference is exact. */
    uint32_t subnormal = by_f32_bits(by_f32_from_bits(fraction + (113u << 23)) - 0x1p-14f);
    uint32_t is_subnormal = 0u - (uint32_t)(rest < 0x0400u); /* masks, all zeros or all ones */
    uint32_t is_special = 0u - (uint32_t)(rest >= 0x7c00u);
    uint32_t is_nan = 0u - (uint32_t)(rest > 0x7c00u);
    uint32_t normal = fraction + (112u << 23);

    return sign | (is_subnormal & subnormal) | (~is_subnormal & normal) | (is_special & BY_F32_INFINITY) |
           (is_nan & BY_F32_QUIET);
}

static inline uint32_t by_f16_narrow(uint32_t wide)
{
    uint32_t sign = (wide >> 16) & 0x8000u;
    uint32_t rest = wide & 0x7fffffffu;
    /* Below 2^-14 the result is a multiple of 2^-24, the spacing of f32 in [0.5, 1): one add rounds
     * to it. */
    uint32_t subnormal = by_f32_bits(by_f32_from_bits(rest) + 0.5f) - 0x3f000000u;
    uint32_t normal = (rest + 0x0fffu + ((rest >> 13) & 1u) - (112u << 23)) >> 13;
    uint32_t nan = 0x7e00u | ((rest >> 13) & 0x03ffu);
    uint32_t half = rest < 0x38800000u ? subnormal : normal;

    half = rest >= 0x477ff000u ? 0x7c00u : half; /* 65520, halfway between 65504 and 65536, and above */
    half = rest > BY_F32_INFINITY ? nan : half;
    return sign | half;
}

static inline uint32_t by_bf16_widen(uint16_t half)
{
    return (uint32_t)half << 16;
}

static inline uint32_t by_bf16_narrow(uint32_t wide)
{
    uint32_t rounded = wide + 0x7fffu + ((wide >> 16) & 1u);
    float value = by_f32_from_bits(wide);

    return (value != value ? wide | BY_F32_QUIET : rounded) >> 16;
}

#endif
