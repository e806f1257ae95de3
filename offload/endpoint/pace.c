/*
 * How fast: round-trip times and timeouts of each lane (RFC 6298 in integers, Karn's rule), and one
 * congestion window over all lanes. Pure; the endpoint's thread.
 *
 * A tree carries one packet a chunk on each link whatever the number of ranks, so there is no incast, and the
 * trees' windows bound the load. Loss alone is therefore weak evidence of congestion: a cut is slight unless
 * the round trips have grown as well (TCP Veno's test; Fu and Liew, IEEE JSAC 21(2), 2003), the network
 * marked a packet, or a lane went silent.
 */
#include "offload/endpoint/state.h"

/* A round trip beyond this many times the least one of the last seconds means queues, not chance. */
#define INFLATED 3u
/* Length of an epoch of the least round trip. */
#define EPOCH_NS 1000000000u
/* A first timeout needs a first guess (ns). */
#define RTO_FIRST_NS 10000000u

void by_pace_init(struct by_endpoint *endpoint, uint64_t windows)
{
    uint32_t max = windows < UINT32_MAX ? (uint32_t)windows : UINT32_MAX;

    if (endpoint->config.inflight_max > 0 && endpoint->config.inflight_max < max)
        max = endpoint->config.inflight_max;
    endpoint->window_max = max;
    endpoint->window = max < BY_WINDOW_START ? max : BY_WINDOW_START;
    endpoint->window_floor = max / 8 > BY_WINDOW_FLOOR ? max / 8 : BY_WINDOW_FLOOR;
    if (endpoint->window_floor > max)
        endpoint->window_floor = max;
    endpoint->window_opening = 1;
}

void by_pace_sample(struct by_lane *lane, uint64_t now_ns, uint64_t rtt_ns)
{
    uint32_t rtt = rtt_ns < 1u << 28 ? (uint32_t)rtt_ns : (1u << 28) - 1; /* 268 ms: x 8 fits */

    if (rtt == 0)
        rtt = 1;
    if (lane->srtt == 0) {
        lane->srtt = rtt << 3;
        lane->rttvar = rtt << 1;
        lane->rtt_low = lane->rtt_low_next = rtt;
        lane->rtt_epoch_ns = now_ns;
        return;
    }
    {
        uint32_t smooth = lane->srtt >> 3;
        uint32_t error = rtt > smooth ? rtt - smooth : smooth - rtt;

        lane->rttvar += error - (lane->rttvar >> 2);
        lane->srtt += rtt - smooth;
        if (lane->srtt == 0)
            lane->srtt = 1;
    }
    if (now_ns - lane->rtt_epoch_ns > EPOCH_NS) {
        lane->rtt_low = lane->rtt_low_next;
        lane->rtt_low_next = rtt;
        lane->rtt_epoch_ns = now_ns;
    }
    if (rtt < lane->rtt_low_next)
        lane->rtt_low_next = rtt;
    if (rtt < lane->rtt_low)
        lane->rtt_low = rtt;
}

void by_pace_accepted(struct by_endpoint *endpoint)
{
    uint32_t step = endpoint->window_max / 32 > 0 ? endpoint->window_max / 32 : 1;

    /* A window that is not used says nothing about a wider one. */
    if (endpoint->window >= endpoint->window_max || endpoint->inflight < endpoint->window / 2)
        return;
    endpoint->window_earned++;
    if (endpoint->window_opening) {
        endpoint->window++;
    } else if (endpoint->window_earned >= endpoint->window) {
        endpoint->window_earned = 0;
        endpoint->window += step;
    }
    if (endpoint->window > endpoint->window_max)
        endpoint->window = endpoint->window_max;
}

void by_pace_cut(struct by_endpoint *endpoint, const struct by_lane *lane, enum by_pace_event event)
{
    uint32_t smooth = lane->srtt >> 3;
    uint32_t cut;

    if (endpoint->now_ns < endpoint->window_cut_ns)
        return;
    if (event == BY_PACE_SILENCE)
        cut = endpoint->window / 2;
    else if (event == BY_PACE_MARK || smooth / INFLATED > lane->rtt_low)
        cut = endpoint->window / 8;
    else
        cut = endpoint->window / 64;
    /* Start-up ends at the first sign of a queue, not at the first chance loss. */
    if (cut > endpoint->window / 64)
        endpoint->window_opening = 0;
    endpoint->window =
        endpoint->window - cut > endpoint->window_floor ? endpoint->window - cut : endpoint->window_floor;
    endpoint->window_cut_ns = endpoint->now_ns + (smooth > 0 ? smooth : endpoint->config.rto_min_ns);
}

uint64_t by_pace_timeout(const struct by_endpoint *endpoint, const struct by_lane *lane)
{
    const struct by_endpoint_config *config = &endpoint->config;
    /* Twice the round trip, where RFC 6298 says once: its least timeout of a second hides that a steady path
     * has no variance. */
    uint64_t rto = lane->srtt > 0 ? (uint64_t)(lane->srtt >> 2) + lane->rttvar : RTO_FIRST_NS;
    /* The first timeout sends one packet only, so it may come early (tail loss probe, RFC 8985, section 7.2).
     */
    uint64_t least = lane->backoff == 0 ? config->rto_min_ns / 16 : config->rto_min_ns;

    if (rto < least)
        rto = least;
    if (lane->backoff > 1)
        rto <<= lane->backoff - 1;
    return rto < config->rto_max_ns ? rto : config->rto_max_ns;
}
