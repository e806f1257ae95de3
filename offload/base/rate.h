/* A rate limit: a long-term rate per second, and a burst that is allowed at once after a pause.
 * Time is an argument. Pure; each object belongs to one thread. */
#ifndef BY_BASE_RATE_H
#define BY_BASE_RATE_H

#include <stdbool.h>
#include <stdint.h>

struct by_rate {
    uint64_t each_ns; /* credit that one event costs */
    uint64_t most_ns; /* maximum credit */
    uint64_t credit_ns;
    uint64_t last_ns; /* when the credit was last updated; 0: never */
};

/* Starts a limit of `per_second` events in the long run (1 to 10^9) and `burst` events at once (at
 * least 1). */
void by_rate_start(struct by_rate *rate, uint32_t per_second, uint32_t burst);
/* Counts one event and returns true, or returns false when the limit does not allow it now.
 * `now_ns` is monotonic; 0 means that there is no clock, and then no limit applies. */
bool by_rate_take(struct by_rate *rate, uint64_t now_ns);
/* Returns the time until the next event is allowed (ns); 0: now. */
uint64_t by_rate_wait_ns(const struct by_rate *rate, uint64_t now_ns);

#endif
