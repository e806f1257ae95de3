/*
 * What the loop does when no frames arrive. A lab runs all its switches and hosts on two cores, so
 * an idle switch must release the core at once and still wake quickly. Rounds without work
 * escalate: poll again, yield, sleep. Loop's thread.
 */
#ifndef BY_DATAPLANE_IDLE_H
#define BY_DATAPLANE_IDLE_H

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

/* Maximum number of wake-up descriptors: four per port, and two of the control channel. */
#define BY_IDLE_FDS_MAX 258u

struct by_idle {
    unsigned fd_count;
    struct pollfd fds[BY_IDLE_FDS_MAX];
    /* rounds without work that yield to other processes before a sleep */
    unsigned yields;
    uint64_t shy_until_ns; /* no yields before this time */
    bool all_bells;        /* each port has a wake-up descriptor: sleep without polling */
    uint32_t empty_rounds; /* since the last packet */
    uint64_t sleep_ns;     /* of the next sleep without wake-up descriptors */
};

void by_idle_open(struct by_idle *idle);
/* Makes this thread's timers fire on time, not up to 50 us later; included in by_idle_open. */
void by_idle_here(void);
/* Makes the loop wake when `fd` is readable. 0, or BY_ELIMIT. */
int by_idle_watch(struct by_idle *idle, int fd);
/* Handles a round without work; returns true if it slept. Sleeps at most `most_ns`. */
bool by_idle_wait(struct by_idle *idle, uint64_t most_ns);

/* Whether the next by_idle_wait will sleep. */
bool by_idle_will_sleep(const struct by_idle *idle);

/* Handles a round with work. */
static inline void by_idle_busy(struct by_idle *idle)
{
    idle->empty_rounds = 0;
}

#endif
