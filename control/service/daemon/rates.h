/*
 * Measured rates of links: bytes per second in each direction, from the byte counters that the
 * switches at both ends report. A direction has the rate that its sending end counts, or, if a host
 * sends, the rate that the receiving switch counts. Links between two hosts have no rate.
 * Neighbours: by_reduce gives the heartbeats; history.c and live.c read. Pure except for memory.
 */
#ifndef BY_SERVICE_DAEMON_RATES_H
#define BY_SERVICE_DAEMON_RATES_H

#include <stdbool.h>
#include <stdint.h>

/* Period over which a rate is measured, at least (milliseconds). */
#define BY_RATES_SPAN_MS 450u
/* A rate that is older than this is unknown (milliseconds). */
#define BY_RATES_STALE_MS 3000u

struct by_rates;

struct by_rates *by_rates_open(uint32_t link_count);
void by_rates_close(struct by_rates *rates);
/* Takes the counters of one end of a link: 0 for its `a`, 1 for its `b`. */
void by_rates_take(struct by_rates *rates, uint32_t link, unsigned end, uint64_t now_ms, uint64_t sent_bytes,
                   uint64_t received_bytes);
/* Gets the bytes per second from end 0 to end 1 (`direction` 0), or from end 1 to end 0. Returns
 * false if they are unknown. */
bool by_rates_get(const struct by_rates *rates, uint32_t link, unsigned direction, uint64_t now_ms,
                  uint64_t *bytes_per_second);

#endif
