/*
 * The calling thread may have an unusual floating-point environment: some programs flush subnormals
 * to zero, round upwards or trap. Sums must not depend on it. A node's kernels, and the conversions
 * of mode exact that each rank does for itself, run in the default environment (round to nearest,
 * subnormals kept, no traps). Each step of progress saves the environment, sets the default and
 * restores it. Any thread.
 */
#ifndef BY_HOST_FLOAT_ENV_H
#define BY_HOST_FLOAT_ENV_H

#include <stdint.h>

#if defined(__x86_64__)

#define BY_MXCSR_DEFAULT 0x1f80u
#define BY_MXCSR_CONTROL 0xffc0u /* all bits except the exception flags */

static inline uint64_t by_float_env_enter(void)
{
    uint32_t was = __builtin_ia32_stmxcsr();

    if ((was & BY_MXCSR_CONTROL) != BY_MXCSR_DEFAULT)
        __builtin_ia32_ldmxcsr(BY_MXCSR_DEFAULT);
    return was;
}

static inline void by_float_env_leave(uint64_t was)
{
    if ((was & BY_MXCSR_CONTROL) != BY_MXCSR_DEFAULT)
        __builtin_ia32_ldmxcsr((uint32_t)was);
}

#elif defined(__aarch64__)

static inline void by_float_env_set(uint64_t fpcr)
{
    __asm__ volatile("msr fpcr, %0" : : "r"(fpcr) : "memory");
}

static inline uint64_t by_float_env_enter(void)
{
    uint64_t was;

    __asm__ volatile("mrs %0, fpcr" : "=r"(was) : : "memory");
    if (was != 0)
        by_float_env_set(0);
    return was;
}

static inline void by_float_env_leave(uint64_t was)
{
    if (was != 0)
        by_float_env_set(was);
}

#else

static inline uint64_t by_float_env_enter(void)
{
    return 0;
}

static inline void by_float_env_leave(uint64_t was)
{
    (void)was;
}

#endif

#endif
