/* How often something may happen: so many a second, and a number at once after a rest. Time is an
 * argument. Pure; one thread for each. */
#ifndef BY_BASE_RATE_H
#define BY_BASE_RATE_H

#include <stdbool.h>
#include <stdint.h>

struct by_rate {
    uint64_t each_ns; /* what one costs of credit */
    uint64_t most_ns; /* credit at most */
    uint64_t credit_ns;
    uint64_t last_ns; /* when the credit was counted, 0 = never */
};

/* `per_second` in the long run, 1 to 10^9; `burst` at once, at least 1. */
void by_rate_start(struct by_rate *rate, uint32_t per_second, uint32_t burst);
/* One happens now, or may not. `now_ns` is monotonic; 0: there is no clock, and no limit. */
bool by_rate_take(struct by_rate *rate, uint64_t now_ns);
/* How long until one may happen (ns); 0: now. */
uint64_t by_rate_wait_ns(const struct by_rate *rate, uint64_t now_ns);

#endif
