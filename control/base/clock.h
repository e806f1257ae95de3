/* The planner's clock: for the seconds that plans report, and for the time limit that a caller may
 * set. Any thread. */
#ifndef BY_BASE_CLOCK_H
#define BY_BASE_CLOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>

/* Seconds on a clock that only moves forward. */
static inline double by_plan_clock(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* Whether the process was asked to end all searches with the results so far. Set by a signal
 * handler, never cleared. */
extern atomic_bool by_plan_ended;

/* Whether a search has to end: `deadline` (a time of by_plan_clock, 0 for none) has passed, or
 * by_plan_ended is set. */
static inline bool by_plan_late(double deadline)
{
    return atomic_load_explicit(&by_plan_ended, memory_order_relaxed) ||
           (deadline > 0 && by_plan_clock() > deadline);
}

#endif
