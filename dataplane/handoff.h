/*
 * Work that another thread wants done on the loop's thread: the telemetry thread asks, the loop
 * answers between two steps. The only sharing in the shell. by_handoff_call is for other threads,
 * the rest for the loop's.
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
/* Runs function(context) on the loop's thread and waits for it; one caller at a time. False when
 * the loop did not answer within a second: it was not run. */
bool by_handoff_call(struct by_handoff *handoff, void (*function)(void *context), void *context);
/* Wakes the loop without work. Safe in a signal handler. */
void by_handoff_wake(const struct by_handoff *handoff);
/* The loop's side: does what is asked. */
void by_handoff_serve(struct by_handoff *handoff);

static inline bool by_handoff_pending(const struct by_handoff *handoff)
{
    return atomic_load_explicit(&handoff->pending, memory_order_relaxed) != 0;
}

#endif
