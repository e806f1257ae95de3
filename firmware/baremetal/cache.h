/*
 * Cache maintenance for memory that devices read and write. It has no effect where a board's
 * devices are coherent with the processor's caches (by_hal.is_coherent). Elsewhere each piece of
 * memory is cleaned before a device reads it, and dropped before a device writes it and again
 * before the processor reads the result. A piece that a device writes must begin and end at a line
 * boundary: BY_CACHE_ALIGNED, or memory from the plan.
 */
#ifndef BY_BAREMETAL_CACHE_H
#define BY_BAREMETAL_CACHE_H

#include <stdbool.h>
#include <stddef.h>

/* The longest supported line (bytes), to which the memory plan aligns. */
#define BY_CACHE_LINE    64u
#define BY_CACHE_ALIGNED __attribute__((aligned(BY_CACHE_LINE)))

/* Returns whether devices are coherent, or no line is longer than BY_CACHE_LINE. */
bool by_cache_fits(void);
/* Ensures that the processor's writes are in memory on return. */
void by_cache_clean(const volatile void *at, size_t bytes);
/* Ensures that the processor's next reads come from memory, and that no cached data overwrites it
 * later. */
void by_cache_drop(const volatile void *at, size_t bytes);
/* Ensures that the processor's writes survive a reset: they are in memory on return, also on
 * coherent boards, because a reset empties caches. */
void by_cache_keep(const volatile void *at, size_t bytes);

#endif
