/* Functions of an AArch64 processor that C lacks: device registers, barriers, the counter, waiting.
 * Inline; with BY_METAL_MODEL, a test that runs drivers against a model of devices and caches
 * provides them. */
#ifndef BY_BAREMETAL_PROCESSOR_H
#define BY_BAREMETAL_PROCESSOR_H

#include <stdint.h>

#ifdef BY_METAL_MODEL
uint32_t by_read32(uint64_t address);
void by_write32(uint64_t address, uint32_t value);
void by_barrier(void);
#else
static inline uint32_t by_read32(uint64_t address)
{
    uint32_t value;

    __asm__ volatile("ldr %w0, [%1]" : "=r"(value) : "r"(address) : "memory");
    return value;
}

static inline void by_write32(uint64_t address, uint32_t value)
{
    __asm__ volatile("str %w0, [%1]" ::"r"(value), "r"(address) : "memory");
}

/* Orders all memory accesses before it against all after it, as devices see them. */
static inline void by_barrier(void)
{
    __asm__ volatile("dmb osh" ::: "memory");
}

/* Sleeps until an interrupt is pending, masked or not; returns at once when one is. */
static inline void by_wait_for_interrupt(void)
{
    __asm__ volatile("dsb sy\n\twfi" ::: "memory");
}

/* Return the virtual counter, and its frequency in Hz. */
static inline uint64_t by_counter(void)
{
    uint64_t value;

    __asm__ volatile("isb\n\tmrs %0, cntvct_el0" : "=r"(value)::"memory");
    return value;
}

static inline uint64_t by_counter_hz(void)
{
    uint64_t value;

    __asm__("mrs %0, cntfrq_el0" : "=r"(value));
    return value;
}
#endif

#endif
