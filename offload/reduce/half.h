/*
 * f16 (IEEE 754 binary16) and bf16 (the high half of binary32), to and from f32 as bits. Widening is exact;
 * narrowing rounds to nearest even, overflows to infinity, keeps subnormals. A NaN keeps its sign and the
 * high bits of its payload and becomes quiet (bf16 widened: bits unchanged), which is what F16C and AArch64
 * do. Branch-free, so that loops over these become vectors. Needs the default floating-point environment:
 * round to nearest, no flush to zero. Pure; any thread.
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
    /* A subnormal is its integer times 2^-24, exact in f32. */
    uint32_t subnormal = by_f32_bits((float)(int32_t)rest * 0x1p-24f);
    uint32_t normal = (rest << 13) + (112u << 23);
    uint32_t special = (rest << 13) | BY_F32_INFINITY | (rest > 0x7c00u ? BY_F32_QUIET : 0u);
    uint32_t wide = rest < 0x0400u ? subnormal : normal;

    wide = rest >= 0x7c00u ? special : wide;
    return sign | wide;
}

static inline uint16_t by_f16_narrow(uint32_t wide)
{
    uint32_t sign = (wide >> 16) & 0x8000u;
    uint32_t rest = wide & 0x7fffffffu;
    /* Below 2^-14 the result is a multiple of 2^-24, the spacing of f32 in [0.5, 1): one add rounds to it. */
    uint32_t subnormal = by_f32_bits(by_f32_from_bits(rest) + 0.5f) - 0x3f000000u;
    uint32_t normal = (rest + 0x0fffu + ((rest >> 13) & 1u) - (112u << 23)) >> 13;
    uint32_t nan = 0x7e00u | ((rest >> 13) & 0x03ffu);
    uint32_t half = rest < 0x38800000u ? subnormal : normal;

    half = rest >= 0x477ff000u ? 0x7c00u : half; /* 65520, halfway between 65504 and 65536, and above */
    half = rest > BY_F32_INFINITY ? nan : half;
    return (uint16_t)(sign | half);
}

static inline uint32_t by_bf16_widen(uint16_t half)
{
    return (uint32_t)half << 16;
}

static inline uint16_t by_bf16_narrow(uint32_t wide)
{
    uint32_t rest = wide & 0x7fffffffu;
    uint32_t rounded = (wide + 0x7fffu + ((wide >> 16) & 1u)) >> 16;
    uint32_t nan = (wide | BY_F32_QUIET) >> 16;

    return (uint16_t)(rest > BY_F32_INFINITY ? nan : rounded);
}

#endif
