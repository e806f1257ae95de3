/*
 * Exact sums of floats for tests, which compare sums and error bounds with them. Fixed point in
 * 64-bit limbs, two's complement; the unit is the minimum subnormal of f64, 2^-1074. Pure; any
 * thread.
 */
#ifndef BY_TESTS_REDUCE_WIDE_H
#define BY_TESTS_REDUCE_WIDE_H

#include <stdint.h>

/* A type of floats: its fields, and the bits that mode EXACT uses (exact.h). */
struct wide_format {
    unsigned dtype, mant, bias, exponents, top;
};
#define FORMATS 4u
extern const struct wide_format formats[FORMATS]; /* f16, bf16, f32, f64 */

#define LIMBS 36u /* 2304 bits: 2^1024 * 2^16 over 2^-1074, a factor of 2^53, and a sign */
struct reduce_wide {
    uint64_t limb[LIMBS];
};

/* Adds value * 2^(shift - 1074), or subtracts it. */
void wide_add(struct reduce_wide *w, uint64_t value, unsigned shift, int negative);
int wide_negative(const struct reduce_wide *w);
struct reduce_wide wide_magnitude(const struct reduce_wide *w);
/* Returns -1, 0 or 1; both must be non-negative. */
int wide_compare(const struct reduce_wide *a, const struct reduce_wide *b);
/* Return a + b for any signs; w * factor and w * 2^shift for w that is not negative. */
struct reduce_wide wide_sum(const struct reduce_wide *a, const struct reduce_wide *b);
struct reduce_wide wide_times(const struct reduce_wide *w, uint32_t factor);
struct reduce_wide wide_shifted(const struct reduce_wide *w, unsigned shift);
/* Adds the element with these bits, which must be finite, or subtracts it. */
void wide_add_element(struct reduce_wide *w, const struct wide_format *f, uint64_t bits, int minus);
/* Returns the bits of the nearest element, ties to even. Values that are too large become
 * infinities. Zero is +0. */
uint64_t wide_round(const struct wide_format *f, const struct reduce_wide *w);

#endif
