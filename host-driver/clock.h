/* The monotonic clock, and processor time, in nanoseconds. Any thread. */
#ifndef BY_HOST_CLOCK_H
#define BY_HOST_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t by_clock_of_ns(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static inline uint64_t by_clock_ns(void)
{
    return by_clock_of_ns(CLOCK_MONOTONIC);
}

/* Processor time of the calling thread. */
static inline uint64_t by_clock_thread_ns(void)
{
    return by_clock_of_ns(CLOCK_THREAD_CPUTIME_ID);
}

#endif
