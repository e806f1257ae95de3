/* Rate limits, counted in nanoseconds of credit; see rate.h. Pure. */
#include "offload/base/rate.h"

#define SECOND_NS 1000000000u

void by_rate_start(struct by_rate *rate, uint32_t per_second, uint32_t burst)
{
    rate->each_ns = SECOND_NS / per_second;
    rate->most_ns = rate->credit_ns = rate->each_ns * burst;
    rate->last_ns = 0;
}

/* Returns the credit at `now_ns`: the stored credit plus the time passed since, up to the
 * maximum. */
static uint64_t credit_at(const struct by_rate *rate, uint64_t now_ns)
{
    uint64_t passed = rate->last_ns != 0 && now_ns > rate->last_ns ? now_ns - rate->last_ns : 0;

    return passed < rate->most_ns - rate->credit_ns ? rate->credit_ns + passed : rate->most_ns;
}

bool by_rate_take(struct by_rate *rate, uint64_t now_ns)
{
    if (now_ns == 0)
        return true;
    rate->credit_ns = credit_at(rate, now_ns);
    rate->last_ns = now_ns;
    if (rate->credit_ns < rate->each_ns)
        return false;
    rate->credit_ns -= rate->each_ns;
    return true;
}

uint64_t by_rate_wait_ns(const struct by_rate *rate, uint64_t now_ns)
{
    uint64_t credit = now_ns != 0 ? credit_at(rate, now_ns) : rate->each_ns;

    return credit < rate->each_ns ? rate->each_ns - credit : 0;
}
