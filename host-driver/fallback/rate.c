/* Congestion window and time-out; see rate.h. */
#include "host-driver/fallback/rate.h"

#include <string.h>

#define WINDOW_FIRST 10u /* RFC 6928 */
#define WINDOW_LEAST 2u
#define WINDOW_MOST  65535u

static bool is_before(uint32_t a, uint32_t b)
{
    return (int32_t)(a - b) < 0;
}

static uint64_t clamp(uint64_t ns)
{
    return ns < BY_RATE_LEAST_NS ? BY_RATE_LEAST_NS : ns > BY_RATE_MOST_NS ? BY_RATE_MOST_NS : ns;
}

static uint32_t half_of(uint32_t window)
{
    return window / 2 > WINDOW_LEAST ? window / 2 : WINDOW_LEAST;
}

void by_rate_begin(struct by_rate *rate, uint32_t order)
{
    memset(rate, 0, sizeof(*rate));
    rate->window = WINDOW_FIRST;
    rate->threshold = WINDOW_MOST;
    rate->recover = order;
    rate->timeout_ns = BY_RATE_FIRST_NS;
}

void by_rate_sample(struct by_rate *rate, uint64_t rtt_ns)
{
    if (rate->smooth_ns == 0) {
        rate->smooth_ns = rtt_ns > 0 ? rtt_ns : 1;
        rate->variance_ns = rtt_ns / 2;
    } else {
        uint64_t far = rtt_ns > rate->smooth_ns ? rtt_ns - rate->smooth_ns : rate->smooth_ns - rtt_ns;

        rate->variance_ns = (3 * rate->variance_ns + far) / 4;
        rate->smooth_ns = (7 * rate->smooth_ns + rtt_ns) / 8;
    }
    rate->timeout_ns = clamp(rate->smooth_ns + 4 * rate->variance_ns);
}

void by_rate_arrived(struct by_rate *rate, uint32_t count, bool full)
{
    if (!full || rate->window >= WINDOW_MOST)
        return;
    if (rate->window < rate->threshold) {
        rate->window += count;
        return;
    }
    rate->part += count;
    if (rate->part >= rate->window) {
        rate->part -= rate->window;
        rate->window++;
    }
}

void by_rate_lost(struct by_rate *rate, uint32_t order, uint32_t next)
{
    if (is_before(order, rate->recover))
        return;
    rate->recover = next;
    rate->window = rate->threshold = half_of(rate->window);
    rate->part = 0;
}

void by_rate_timeout(struct by_rate *rate, uint32_t flight, uint32_t next)
{
    if (!rate->late) {
        rate->late_window = rate->window;
        rate->late_threshold = rate->threshold;
        rate->late_order = next;
        rate->late = true;
        rate->threshold = half_of(flight);
    }
    rate->window = 1;
    rate->part = 0;
    rate->recover = next;
    by_rate_wait(rate);
}

void by_rate_wait(struct by_rate *rate)
{
    rate->timeout_ns = clamp(2 * rate->timeout_ns);
}

bool by_rate_answer(struct by_rate *rate, uint32_t newest)
{
    bool undo = rate->late && is_before(newest, rate->late_order);

    rate->late = false;
    if (!undo)
        return false;
    rate->window = rate->late_window;
    rate->threshold = rate->late_threshold;
    return true;
}
