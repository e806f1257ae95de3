/*
 * A small deterministic generator for simulation, tests and fault injection (splitmix64; Steele,
 * Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014). Not for keys.
 */
#ifndef BY_BASE_PRNG_H
#define BY_BASE_PRNG_H

#include <stdint.h>

struct by_prng {
    uint64_t state;
};

static inline uint64_t by_prng_next(struct by_prng *prng)
{
    uint64_t z = (prng->state += 0x9e3779b97f4a7c15u);

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* Returns a hash of a value: different for different values. */
static inline uint64_t by_prng_mix(uint64_t value)
{
    return by_prng_next(&(struct by_prng){value});
}

/* Returns a value uniform in [0, bound); bound > 0. The bias is below bound / 2^64. */
static inline uint64_t by_prng_below(struct by_prng *prng, uint64_t bound)
{
    return by_prng_next(prng) % bound;
}

#endif
