/*
 * What the loop does when nothing came: a lab runs all its switches and hosts on two cores, so an
 * idle switch must give the core away at once and still wake quickly. Rounds without work climb a
 * ladder: poll again, yield, sleep. Loop's thread.
 */
#ifndef BY_DATAPLANE_IDLE_H
#define BY_DATAPLANE_IDLE_H

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

/* Descriptors that may wake us (count): four of each port, and two of the control channel. */
#define BY_IDLE_FDS_MAX 258u

struct by_idle {
    unsigned fd_count;
    struct pollfd fds[BY_IDLE_FDS_MAX];
    unsigned yields;       /* rounds without work in which others may run, before a sleep */
    uint64_t shy_until_ns; /* before that we do not yield */
    bool all_bells;        /* each port has a descriptor that wakes us: sleep without polling */
    uint32_t empty_rounds; /* since the last packet */
    uint64_t sleep_ns;     /* of the next sleep, without bells */
};

void by_idle_open(struct by_idle *idle);
/* Wakes the loop when `fd` is readable. 0, or BY_ELIMIT. */
int by_idle_watch(struct by_idle *idle, int fd);
/* A round without work: returns true when it slept. Sleeps no longer than `most_ns`. */
bool by_idle_wait(struct by_idle *idle, uint64_t most_ns);

/* Will the next by_idle_wait sleep? */
bool by_idle_will_sleep(const struct by_idle *idle);

/* A round with work. */
static inline void by_idle_busy(struct by_idle *idle)
{
    idle->empty_rounds = 0;
}

#endif
