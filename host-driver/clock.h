/* The monotonic clock in nanoseconds. Any thread. */
#ifndef BY_HOST_CLOCK_H
#define BY_HOST_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t by_clock_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

#endif
