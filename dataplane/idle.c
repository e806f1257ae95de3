/*
 * The steps of an idle loop. If a port has a descriptor (packet sockets, AF_XDP), the switch sleeps
 * in poll and the next packet wakes it. It does not yield first: a yield gives a whole time slice
 * to a computing process, whereas a sleeper is woken soon. Other ports (rings, NICs without
 * interrupts) are polled between sleeps that grow from 20 to 200 us. poll is used rather than
 * epoll, whose callback runs for each packet even while no thread sleeps. If hosts share memory
 * with the switch, a wake-up is a system call of theirs, which takes ten times a round trip; then
 * the loop yields first, unless another process computes on this core. Loop's thread.
 */
#include "dataplane/idle.h"

#include <sched.h>
#include <sys/prctl.h>
#include <time.h>

#include "offload/base/errors.h"

/* Rounds without work before the loop sleeps (count). */
#define SPIN_ROUNDS 2u
/* A yield that takes longer (ns) has given a time slice to a computing process. For SHY_NS (ns)
 * afterwards the loop sleeps without yielding, since a sleeper is woken soon. */
#define YIELD_MOST_NS 1000000u
#define SHY_NS        30000000u
/* Sleeps without wake-up descriptors (ns): the first is about the cost of a sleep, the last limits
 * the load of polling to 0.5% of a core. */
#define NAP_FIRST_NS 20000u
#define NAP_LAST_NS  200000u

void by_idle_open(struct by_idle *idle)
{
    *idle = (struct by_idle){.all_bells = true, .sleep_ns = NAP_FIRST_NS};
    by_idle_here();
}

void by_idle_here(void)
{
    prctl(PR_SET_TIMERSLACK, 1ul, 0ul, 0ul, 0ul);
}

int by_idle_watch(struct by_idle *idle, int fd)
{
    if (idle->fd_count == BY_IDLE_FDS_MAX)
        return BY_ELIMIT;
    idle->fds[idle->fd_count++] = (struct pollfd){.fd = fd, .events = POLLIN};
    return 0;
}

static uint64_t clock_ns(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static unsigned yields(const struct by_idle *idle)
{
    return idle->yields > 0 && clock_ns() >= idle->shy_until_ns ? idle->yields : 0;
}

/* Yields; if a computing process got the core, does not yield again for a while. */
static void give_way(struct by_idle *idle)
{
    uint64_t begin = clock_ns();

    uint64_t end;

    sched_yield();
    end = clock_ns();
    if (end - begin > YIELD_MOST_NS)
        idle->shy_until_ns = end + SHY_NS;
}

bool by_idle_will_sleep(const struct by_idle *idle)
{
    return idle->empty_rounds >= SPIN_ROUNDS + yields(idle);
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
    if (idle->empty_rounds <= SPIN_ROUNDS + yields(idle)) {
        give_way(idle);
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
