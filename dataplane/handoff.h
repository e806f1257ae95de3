/*
 * Runs work of another thread on the loop's thread: the telemetry thread sends a request, which the
 * loop executes between two steps. This is the only state that threads of the shell share. Other
 * threads call by_handoff_call, the loop's thread the rest.
 */
#ifndef BY_DATAPLANE_HANDOFF_H
#define BY_DATAPLANE_HANDOFF_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

struct by_handoff {
    pthread_mutex_t lock;
    pthread_cond_t done;
    _Atomic int pending;
    int event; /* eventfd: wakes the loop */
    void (*function)(void *context);
    void *context;
};

int by_handoff_open(struct by_handoff *handoff);
void by_handoff_close(struct by_handoff *handoff);
/* Runs function(context) on the loop's thread and waits for it; one caller at a time. False if the
 * loop did not respond within a second: the function was not run. */
bool by_handoff_call(struct by_handoff *handoff, void (*function)(void *context), void *context);
/* Wakes the loop without work. Safe in a signal handler. */
void by_handoff_wake(const struct by_handoff *handoff);
/* Forgets wake-ups, if no request is pending; for the loop. */
void by_handoff_clear(struct by_handoff *handoff);
/* Executes a pending request; for the loop. */
void by_handoff_serve(struct by_handoff *handoff);

static inline bool by_handoff_pending(const struct by_handoff *handoff)
{
    return atomic_load_explicit(&handoff->pending, memory_order_relaxed) != 0;
}

#endif
