/*
 * Where long work stands, for somebody who shows it from another thread: the planner and the
 * baselines tell, `banyan`'s progress bar looks. Telling costs a store; nobody waits. All functions
 * take NULL, for nobody. One thread tells, any number look.
 */
#ifndef BY_BASE_STAGE_H
#define BY_BASE_STAGE_H

#include <stdatomic.h>
#include <stdint.h>

struct by_stage {
    _Atomic(const char *) name;   /* of the step, a literal: "packing trees"; NULL before the first */
    _Atomic uint64_t done, total; /* parts of the step; total 0: nobody knows */
};

/* A step of `total` parts begins. */
static inline void by_stage_begin(struct by_stage *stage, const char *name, uint64_t total)
{
    if (!stage)
        return;
    atomic_store_explicit(&stage->total, 0, memory_order_relaxed);
    atomic_store_explicit(&stage->done, 0, memory_order_relaxed);
    atomic_store_explicit(&stage->name, name, memory_order_relaxed);
    atomic_store_explicit(&stage->total, total, memory_order_relaxed);
}

/* `parts` more are done. */
static inline void by_stage_add(struct by_stage *stage, uint64_t parts)
{
    if (stage)
        atomic_fetch_add_explicit(&stage->done, parts, memory_order_relaxed);
}

#endif
