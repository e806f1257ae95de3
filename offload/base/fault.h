/*
 * Fault injection. This file decides the fate of a packet, and each shell carries the decision out:
 * the packet passes, is dropped, is sent twice, or is held back until later packets have overtaken
 * it. Probabilities are in parts of 2^32, so that no decision depends on floating point.
 * Deterministic for a given seed.
 */
#ifndef BY_BASE_FAULT_H
#define BY_BASE_FAULT_H

#include "offload/base/prng.h"

struct by_fault {
    struct by_prng prng;
    uint32_t loss;      /* parts of 2^32 */
    uint32_t duplicate; /* parts of 2^32 */
    uint32_t reorder;   /* parts of 2^32 */
};

enum by_fault_verdict { BY_FAULT_PASS = 1, BY_FAULT_DROP, BY_FAULT_DUPLICATE, BY_FAULT_HOLD };

static inline enum by_fault_verdict by_fault_draw(struct by_fault *fault)
{
    uint64_t r = by_prng_next(&fault->prng);
    uint32_t low = (uint32_t)r;

    if (low < fault->loss)
        return BY_FAULT_DROP;
    low = (uint32_t)(r >> 32);
    if (low < fault->duplicate)
        return BY_FAULT_DUPLICATE;
    if (low - fault->duplicate < fault->reorder)
        return BY_FAULT_HOLD;
    return BY_FAULT_PASS;
}

static inline int by_fault_enabled(const struct by_fault *fault)
{
    return (fault->loss | fault->duplicate | fault->reorder) != 0;
}

#endif
