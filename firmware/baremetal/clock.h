/* Time: the processor's counter in nanoseconds, and a timer that ends a sleep. */
#ifndef BY_BAREMETAL_CLOCK_H
#define BY_BAREMETAL_CLOCK_H

#include <stdint.h>

/* Returns the nanoseconds since the counter started; never 0. */
uint64_t by_clock_ns(void);
/* Requests an interrupt `ns` from now, replacing any earlier request. */
void by_clock_alarm(uint64_t ns);
/* Cancels the request. */
void by_clock_quiet(void);

#endif
