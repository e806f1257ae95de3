/*
 * Caches around what devices read and write. Where a board's devices see the processor's caches
 * (by_hal.is_coherent) nothing is done; else each piece of memory is cleaned before a device reads
 * it, and dropped before a device writes it and again before we read what it wrote. A piece that a
 * device writes must begin and end at a line: BY_CACHE_ALIGNED, or memory from the plan.
 */
#ifndef BY_BAREMETAL_CACHE_H
#define BY_BAREMETAL_CACHE_H

#include <stdbool.h>
#include <stddef.h>

/* The longest line that is allowed for (bytes): what the memory plan aligns to. */
#define BY_CACHE_LINE    64u
#define BY_CACHE_ALIGNED __attribute__((aligned(BY_CACHE_LINE)))

/* Whether devices see the caches, or no line is longer than BY_CACHE_LINE. */
bool by_cache_fits(void);
/* What we wrote there is in memory when this returns. */
void by_cache_clean(const volatile void *at, size_t bytes);
/* What we read there next comes from memory, and nothing of ours goes over it later. */
void by_cache_drop(const volatile void *at, size_t bytes);
/* What we wrote there outlives a reset: it is in memory, whatever devices see, since a reset
 * empties caches.
 */
void by_cache_keep(const volatile void *at, size_t bytes);

#endif
