/* The planner's clock: for the seconds that plans report, and for the time limit that a caller may
 * set. Any thread. */
#ifndef BY_BASE_CLOCK_H
#define BY_BASE_CLOCK_H

#include <time.h>

/* Seconds on a clock that only moves forward. */
static inline double by_plan_clock(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

#endif
