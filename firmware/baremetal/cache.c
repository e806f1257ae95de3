/* Cache maintenance by address, to the point of coherency (Arm ARM, section D7.5); see cache.h. */
#include "firmware/baremetal/cache.h"

#include <stdint.h>

#include "firmware/baremetal/hal.h"

/* Returns the length of the shortest line of all data caches (bytes). */
static size_t line_bytes(void)
{
    uint64_t type;

    __asm__("mrs %0, ctr_el0" : "=r"(type));
    return (size_t)4 << (type >> 16 & 15);
}

bool by_cache_fits(void)
{
    return by_hal.is_coherent || line_bytes() <= BY_CACHE_LINE;
}

/* Cleans each line of a piece of memory, and with `is_drop` invalidates it. A line that also holds
 * other data is written back, so that data is kept. */
static void each_line(const volatile void *at, size_t bytes, bool is_drop)
{
    uintptr_t step = line_bytes(), end = (uintptr_t)at + bytes;

    for (uintptr_t line = (uintptr_t)at & ~(step - 1); line < end; line += step) {
        if (is_drop)
            __asm__ volatile("dc civac, %0" ::"r"(line) : "memory");
        else
            __asm__ volatile("dc cvac, %0" ::"r"(line) : "memory");
    }
    __asm__ volatile("dsb sy" ::: "memory");
}

void by_cache_clean(const volatile void *at, size_t bytes)
{
    if (!by_hal.is_coherent)
        each_line(at, bytes, false);
}

void by_cache_drop(const volatile void *at, size_t bytes)
{
    if (!by_hal.is_coherent)
        each_line(at, bytes, true);
}

void by_cache_keep(const volatile void *at, size_t bytes)
{
    each_line(at, bytes, false);
}
