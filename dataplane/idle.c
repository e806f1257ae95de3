/*
 * The ladder of an idle loop. Where a port has a descriptor (packet sockets, AF_XDP) the switch sleeps in
 * epoll and the next packet wakes it; it does not yield before, since a yield gives away a whole slice of the
 * scheduler's to whoever computes, and a sleeper is woken soon. Other ports (rings, NICs without interrupts)
 * are polled between naps that grow from 20 to 200 us. Loop's thread.
 */
#include "dataplane/idle.h"

#include <sys/epoll.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "offload/base/errors.h"

/* Rounds without work before the loop sleeps (count). */
#define SPIN_ROUNDS 2u
/* Naps without bells (ns): the first is about what a nap costs, the last bounds latency at 0.5% of a core. */
#define NAP_FIRST_NS 20000u
#define NAP_LAST_NS  200000u

int by_idle_open(struct by_idle *idle)
{
    *idle = (struct by_idle){.all_bells = true, .sleep_ns = NAP_FIRST_NS};
    idle->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (idle->epoll < 0)
        return BY_EIO;
    /* Timers of this thread fire when they are due, not up to 50 us later. */
    prctl(PR_SET_TIMERSLACK, 1ul, 0ul, 0ul, 0ul);
    return 0;
}

int by_idle_watch(struct by_idle *idle, int fd)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};

    return epoll_ctl(idle->epoll, EPOLL_CTL_ADD, fd, &event) == 0 ? 0 : BY_EIO;
}

bool by_idle_will_sleep(const struct by_idle *idle)
{
    return idle->empty_rounds >= SPIN_ROUNDS;
}

bool by_idle_wait(struct by_idle *idle, uint64_t most_ns)
{
    struct epoll_event event;
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
    epoll_pwait2(idle->epoll, &event, 1, &time, NULL);
    return true;
}

void by_idle_close(struct by_idle *idle)
{
    close(idle->epoll);
}
