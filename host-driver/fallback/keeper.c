/* The thread beside the owner of a carrier; see keeper.h. */
#include "host-driver/fallback/keeper.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "host-driver/clock.h"
#include "host-driver/error.h"

#define SLEEP_MOST_NS UINT64_C(10000000000)

int by_keeper_open(struct by_keeper *keeper)
{
    memset(keeper, 0, sizeof(*keeper));
    atomic_init(&keeper->ends, false);
    atomic_init(&keeper->until_ns, 0);
    pthread_mutex_init(&keeper->lock, NULL);
    keeper->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    keeper->tell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (keeper->wake < 0 || keeper->tell < 0)
        return by_fail(BY_EIO, "no event for messages over UDP: %s", strerror(errno));
    return 0;
}

static void raise_event(int fd)
{
    const uint64_t one = 1;

    (void)!write(fd, &one, sizeof(one)); /* full: it is readable already */
}

static void take_event(int fd)
{
    uint64_t count;

    (void)!read(fd, &count, sizeof(count));
}

/* Sleeps until a time, somebody who wakes us, or, if it is watched, something that comes. */
static void sleep_until(const struct by_keeper *keeper, uint64_t until_ns, bool watch)
{
    struct pollfd fds[] = {{.fd = keeper->wake, .events = POLLIN}, {.fd = keeper->fd, .events = POLLIN}};
    uint64_t now_ns = by_clock_ns();
    uint64_t wait_ns = until_ns > now_ns ? until_ns - now_ns : 0;
    struct timespec wait;

    if (wait_ns > SLEEP_MOST_NS)
        wait_ns = SLEEP_MOST_NS;
    wait.tv_sec = (time_t)(wait_ns / 1000000000u);
    wait.tv_nsec = (long)(wait_ns % 1000000000u);
    if (ppoll(fds, watch ? 2 : 1, &wait, NULL) > 0 && fds[0].revents != 0)
        take_event(keeper->wake);
}

static void *keep(void *argument)
{
    struct by_keeper *keeper = argument;

    while (!atomic_load(&keeper->ends)) {
        uint64_t until_ns = atomic_load_explicit(&keeper->until_ns, memory_order_relaxed);
        uint64_t now_ns = by_clock_ns(), deadline_ns = UINT64_MAX;

        if (now_ns < until_ns) {
            /* An owner that slept under a long lease may be away with a short one since. */
            sleep_until(keeper,
                        until_ns - now_ns < BY_KEEPER_LEASE_NS ? until_ns : now_ns + BY_KEEPER_LEASE_NS,
                        false);
            continue;
        }
        pthread_mutex_lock(&keeper->lock);
        if (keeper->step(keeper->kept, now_ns, &deadline_ns) && !keeper->told) {
            keeper->told = true;
            raise_event(keeper->tell);
        }
        keeper->dozes = true;
        pthread_mutex_unlock(&keeper->lock);
        sleep_until(keeper, deadline_ns, true);
    }
    return NULL;
}

int by_keeper_start(struct by_keeper *keeper, by_keeper_fn *step, void *kept, int fd)
{
    sigset_t all, before;
    int error;

    keeper->step = step;
    keeper->kept = kept;
    keeper->fd = fd;
    /* Signals are the program's. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    error = pthread_create(&keeper->thread, NULL, keep, keeper);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    keeper->started = error == 0;
    return error == 0 ? 0 : by_fail(BY_EIO, "no thread for messages over UDP: %s", strerror(error));
}

void by_keeper_close(struct by_keeper *keeper)
{
    if (keeper->started) {
        atomic_store(&keeper->ends, true);
        raise_event(keeper->wake);
        pthread_join(keeper->thread, NULL);
    }
    keeper->started = false;
    if (keeper->wake >= 0)
        close(keeper->wake);
    if (keeper->tell >= 0)
        close(keeper->tell);
    keeper->wake = keeper->tell = -1;
    pthread_mutex_destroy(&keeper->lock);
}

void by_keeper_enter(struct by_keeper *keeper, uint64_t until_ns)
{
    atomic_store_explicit(&keeper->until_ns, until_ns, memory_order_relaxed);
    pthread_mutex_lock(&keeper->lock);
    if (keeper->dozes) {
        keeper->dozes = false;
        raise_event(keeper->wake);
    }
}

void by_keeper_leave(struct by_keeper *keeper)
{
    pthread_mutex_unlock(&keeper->lock);
}

void by_keeper_hear(struct by_keeper *keeper)
{
    if (keeper->told)
        take_event(keeper->tell);
    keeper->told = false;
}
