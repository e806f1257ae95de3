/*
 * Progress of long work, which another thread displays: the planner and the baselines report, and
 * `banyan`'s progress bar reads. A report costs one store, and no thread waits. All functions
 * accept NULL, for no display. One thread writes, any number of threads read.
 */
#ifndef BY_BASE_STAGE_H
#define BY_BASE_STAGE_H

#include <stdatomic.h>
#include <stdint.h>

struct by_stage {
    /* the step's name, a literal such as "packing trees"; NULL before the first step */
    _Atomic(const char *) name;
    _Atomic uint64_t done, total; /* parts of the step; total 0: unknown */
};

/* Begins a step of `total` parts. */
static inline void by_stage_begin(struct by_stage *stage, const char *name, uint64_t total)
{
    if (!stage)
        return;
    atomic_store_explicit(&stage->total, 0, memory_order_relaxed);
    atomic_store_explicit(&stage->done, 0, memory_order_relaxed);
    atomic_store_explicit(&stage->name, name, memory_order_relaxed);
    atomic_store_explicit(&stage->total, total, memory_order_relaxed);
}

/* Reports `parts` more as done. */
static inline void by_stage_add(struct by_stage *stage, uint64_t parts)
{
    if (stage)
        atomic_fetch_add_explicit(&stage->done, parts, memory_order_relaxed);
}

#endif
