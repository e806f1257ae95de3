/* Measured rates of links. See rates.h. */
#include "control/service/daemon/rates.h"

#include <stdlib.h>

#include "control/base/alloc.h"

/* One counter of one end: the value at the start of the current period, and the last rate. */
struct counter {
    uint64_t bytes;
    uint64_t rate; /* bytes per second */
};

struct rates_end {
    bool known;           /* the members below are set */
    uint64_t since_ms;    /* start of the current period */
    uint64_t measured_ms; /* end of the period of the rates; 0: none yet */
    struct counter sent, received;
};

struct by_rates {
    struct rates_end (*links)[2];
};

struct by_rates *by_rates_open(uint32_t link_count)
{
    struct by_rates *rates = by_alloc(1, sizeof(*rates));

    rates->links = by_alloc(link_count, sizeof(*rates->links));
    return rates;
}

void by_rates_close(struct by_rates *rates)
{
    if (rates != NULL)
        free(rates->links);
    free(rates);
}

static void measure(struct counter *counter, uint64_t bytes, uint64_t span_ms)
{
    uint64_t more = bytes - counter->bytes;

    counter->rate = more <= UINT64_MAX / 1000 ? more * 1000 / span_ms : more / span_ms * 1000;
    counter->bytes = bytes;
}

void by_rates_take(struct by_rates *rates, uint32_t link, unsigned end, uint64_t now_ms, uint64_t sent_bytes,
                   uint64_t received_bytes)
{
    struct rates_end *at = &rates->links[link][end];
    uint64_t span_ms = now_ms - at->since_ms;

    /* A switch that has restarted counts from 0; after a silence, a mean over it would be shown as
     * the present rate. */
    if (!at->known || sent_bytes < at->sent.bytes || received_bytes < at->received.bytes ||
        span_ms > BY_RATES_STALE_MS) {
        *at = (struct rates_end){
            .known = true, .since_ms = now_ms, .sent.bytes = sent_bytes, .received.bytes = received_bytes};
        return;
    }
    if (span_ms < BY_RATES_SPAN_MS)
        return;
    measure(&at->sent, sent_bytes, span_ms);
    measure(&at->received, received_bytes, span_ms);
    at->since_ms = at->measured_ms = now_ms;
}

static bool is_fresh(const struct rates_end *end, uint64_t now_ms)
{
    return end->measured_ms != 0 && now_ms - end->measured_ms <= BY_RATES_STALE_MS;
}

bool by_rates_get(const struct by_rates *rates, uint32_t link, unsigned direction, uint64_t now_ms,
                  uint64_t *bytes_per_second)
{
    const struct rates_end *sends = &rates->links[link][direction],
                           *receives = &rates->links[link][!direction];

    *bytes_per_second = 0;
    if (is_fresh(sends, now_ms))
        *bytes_per_second = sends->sent.rate;
    else if (is_fresh(receives, now_ms))
        *bytes_per_second = receives->received.rate;
    else
        return false;
    return true;
}
