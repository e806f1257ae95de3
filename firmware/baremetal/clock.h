/* Time: the processor's counter in nanoseconds, and a timer that ends a sleep. */
#ifndef BY_BAREMETAL_CLOCK_H
#define BY_BAREMETAL_CLOCK_H

#include <stdint.h>

/* Nanoseconds since the counter began; never 0. */
uint64_t by_clock_ns(void);
/* An interrupt after `ns` from now, instead of any set before. */
void by_clock_alarm(uint64_t ns);
/* No interrupt. */
void by_clock_quiet(void);

#endif
