/*
 * One request at a time from another thread to the loop. The caller publishes a function under the
 * lock, signals an eventfd (the loop may be asleep), and waits on a condition variable. A caller
 * that times out withdraws its request under the same lock, so that it cannot run late.
 */
#include "dataplane/handoff.h"

#include <errno.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "offload/base/errors.h"

/* Timeout for the loop (seconds): a step takes microseconds. */
#define WAIT_SECONDS 1

int by_handoff_open(struct by_handoff *handoff)
{
    pthread_condattr_t attributes;

    *handoff = (struct by_handoff){0};
    handoff->event = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (handoff->event < 0)
        return BY_EIO;
    pthread_mutex_init(&handoff->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&handoff->done, &attributes);
    pthread_condattr_destroy(&attributes);
    return 0;
}

void by_handoff_close(struct by_handoff *handoff)
{
    close(handoff->event);
    pthread_cond_destroy(&handoff->done);
    pthread_mutex_destroy(&handoff->lock);
}

void by_handoff_wake(const struct by_handoff *handoff)
{
    uint64_t one = 1;

    if (write(handoff->event, &one, sizeof one) < 0)
        return; /* a full counter is readable */
}

bool by_handoff_call(struct by_handoff *handoff, void (*function)(void *context), void *context)
{
    struct timespec until;
    bool served;

    pthread_mutex_lock(&handoff->lock);
    handoff->function = function;
    handoff->context = context;
    atomic_store(&handoff->pending, 1);
    by_handoff_wake(handoff);
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += WAIT_SECONDS;
    while (atomic_load(&handoff->pending))
        if (pthread_cond_timedwait(&handoff->done, &handoff->lock, &until) == ETIMEDOUT)
            break;
    served = !atomic_load(&handoff->pending);
    atomic_store(&handoff->pending, 0);
    pthread_mutex_unlock(&handoff->lock);
    return served;
}

void by_handoff_clear(struct by_handoff *handoff)
{
    uint64_t rings;

    if (!by_handoff_pending(handoff) && read(handoff->event, &rings, sizeof rings) < 0)
        return; /* nothing to forget */
}

void by_handoff_serve(struct by_handoff *handoff)
{
    uint64_t rings;

    if (read(handoff->event, &rings, sizeof rings) < 0 && errno != EAGAIN)
        return;
    pthread_mutex_lock(&handoff->lock);
    if (atomic_load(&handoff->pending)) {
        handoff->function(handoff->context);
        atomic_store(&handoff->pending, 0);
        pthread_cond_signal(&handoff->done);
    }
    pthread_mutex_unlock(&handoff->lock);
}
