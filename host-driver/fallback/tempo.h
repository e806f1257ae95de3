/*
 * How many parcels may be on their way, and when one is overdue: a congestion window that grows
 * while what is sent arrives and halves when something is lost (RFC 5681), and a time-out out of
 * measured times there and back (RFC 6298), which a time-out for nothing takes back (in the manner
 * of RFC 4015: the acknowledgement says which transmission it answers). What differs: the least
 * time-out is that of one network with busy hosts, not of the Internet, and a pause does not shrink
 * the window, since the calls of a job resemble each other. Pure; any thread.
 */
#ifndef BY_HOST_FALLBACK_TEMPO_H
#define BY_HOST_FALLBACK_TEMPO_H

#include <stdbool.h>
#include <stdint.h>

#define BY_TEMPO_FIRST_NS 50000000u  /* time-out before anything was measured */
#define BY_TEMPO_LEAST_NS 10000000u  /* a host with more processes than cores is away for milliseconds */
#define BY_TEMPO_MOST_NS  400000000u /* so that the least BANYAN_TIMEOUT sees several */

struct by_tempo {
    uint32_t window; /* parcels */
    uint32_t threshold;
    uint32_t part;    /* acknowledged since the window grew last, beyond the threshold */
    uint32_t recover; /* transmissions before this one belong to a loss that is answered already */
    uint64_t smooth_ns, variance_ns, timeout_ns;
    uint32_t late_window, late_threshold, late_order; /* what a time-out has changed, and when */
    bool late;
};

/* `order`: the number of the first transmission. */
void by_tempo_begin(struct by_tempo *tempo, uint32_t order);
/* A transmission took so long there and back. */
void by_tempo_sample(struct by_tempo *tempo, uint64_t rtt_ns);
/* So many have arrived; `full`: the window was what kept more from being sent. */
void by_tempo_arrived(struct by_tempo *tempo, uint32_t count, bool full);
/* Transmission `order` was lost; the next one will be `next`. */
void by_tempo_lost(struct by_tempo *tempo, uint32_t order, uint32_t next);
/* The time is out, with `flight` parcels on their way. */
void by_tempo_timeout(struct by_tempo *tempo, uint32_t flight, uint32_t next);
/* The time is out and nothing was on its way: the next one is twice as long. */
void by_tempo_wait(struct by_tempo *tempo);
/* The newest transmission that has arrived is `newest`: one before the time-out means that it was
 * for nothing; then the window is as before, and the answer true. */
bool by_tempo_answer(struct by_tempo *tempo, uint32_t newest);

#endif
