/*
 * The ladder of an idle loop. Where a port has a descriptor (packet sockets, AF_XDP) the switch sleeps in
 * poll and the next packet wakes it; it does not yield before, since a yield gives away a whole slice of the
 * scheduler's to whoever computes, and a sleeper is woken soon. Other ports (rings, NICs without interrupts)
 * are polled between naps that grow from 20 to 200 us. It is poll and not epoll, since that one is called for
 * each packet even while nobody sleeps. Loop's thread.
 */
#include "dataplane/idle.h"

#include <sys/prctl.h>
#include <time.h>

#include "offload/base/errors.h"

/* Rounds without work before the loop sleeps (count). */
#define SPIN_ROUNDS 2u
/* Naps without bells (ns): the first is about what a nap costs, the last bounds latency at 0.5% of a core. */
#define NAP_FIRST_NS 20000u
#define NAP_LAST_NS  200000u

void by_idle_open(struct by_idle *idle)
{
    *idle = (struct by_idle){.all_bells = true, .sleep_ns = NAP_FIRST_NS};
    /* Timers of this thread fire when they are due, not up to 50 us later. */
    prctl(PR_SET_TIMERSLACK, 1ul, 0ul, 0ul, 0ul);
}

int by_idle_watch(struct by_idle *idle, int fd)
{
    if (idle->fd_count == BY_IDLE_FDS_MAX)
        return BY_ELIMIT;
    idle->fds[idle->fd_count++] = (struct pollfd){.fd = fd, .events = POLLIN};
    return 0;
}

bool by_idle_will_sleep(const struct by_idle *idle)
{
    return idle->empty_rounds >= SPIN_ROUNDS;
}

bool by_idle_wait(struct by_idle *idle, uint64_t most_ns)
{
    struct timespec time;
    uint64_t ns = most_ns;

    idle->empty_rounds++;
    if (idle->empty_rounds <= SPIN_ROUNDS) {
        idle->sleep_ns = NAP_FIRST_NS;
        return false;
    }
    if (!idle->all_bells) {
        ns = idle->sleep_ns < most_ns ? idle->sleep_ns : most_ns;
        idle->sleep_ns = idle->sleep_ns * 2 < NAP_LAST_NS ? idle->sleep_ns * 2 : NAP_LAST_NS;
    }
    time = (struct timespec){.tv_sec = (time_t)(ns / 1000000000u), .tv_nsec = (long)(ns % 1000000000u)};
    ppoll(idle->fds, idle->fd_count, &time, NULL);
    return true;
}
