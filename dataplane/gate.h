/*
 * A gate between a worker's rounds: the main worker holds another one there, and then reads and
 * changes what is the other's without a lock. A worker that sleeps is at its gate already, so it
 * need not be woken. One gate for each worker; the worker calls by_gate_rest and by_gate_rise, the
 * main worker by_gate_hold and by_gate_release.
 */
#ifndef BY_DATAPLANE_GATE_H
#define BY_DATAPLANE_GATE_H

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>

#include <rte_common.h>
#include <rte_pause.h>

/* Checks of a gate before the checking thread yields its core (count): about a round's time. Where
 * workers share cores, the other one may not be running. */
#define BY_GATE_SPINS 200u

/* RESTS: the worker is between two rounds and touches nothing. HELD: it must stay there. */
enum by_gate_state { BY_GATE_RESTS = 1, BY_GATE_HELD = 2 };

struct by_gate {
    _Atomic unsigned state;
} __rte_cache_aligned;

static inline void by_gate_pause(unsigned *spins)
{
    if (++*spins % BY_GATE_SPINS == 0)
        sched_yield();
    else
        rte_pause();
}

static inline bool by_gate_is_held(const struct by_gate *gate)
{
    return (atomic_load_explicit(&gate->state, memory_order_relaxed) & BY_GATE_HELD) != 0;
}

/* Whether the worker rests, for one that has just put work into its rings. Both sides change the
 * same word, so either this call sees that the worker rests, or the worker's last look at its
 * rings, after by_gate_rest, sees the work. */
static inline bool by_gate_rests(struct by_gate *gate)
{
    return (atomic_fetch_or_explicit(&gate->state, 0, memory_order_acq_rel) & BY_GATE_RESTS) != 0;
}

static inline void by_gate_rest(struct by_gate *gate)
{
    atomic_fetch_or_explicit(&gate->state, BY_GATE_RESTS, memory_order_acq_rel);
}

/* Begins the next round, once nothing holds the gate. */
static inline void by_gate_rise(struct by_gate *gate)
{
    unsigned spins = 0, rests = BY_GATE_RESTS;

    while (!atomic_compare_exchange_strong_explicit(&gate->state, &rests, 0, memory_order_acquire,
                                                    memory_order_relaxed)) {
        rests = BY_GATE_RESTS;
        by_gate_pause(&spins);
    }
}

/* Asks the worker to stay at its gate. */
static inline void by_gate_close(struct by_gate *gate)
{
    atomic_fetch_or_explicit(&gate->state, BY_GATE_HELD, memory_order_acq_rel);
}

/* Waits until the worker is there. */
static inline void by_gate_await(const struct by_gate *gate)
{
    unsigned spins = 0;

    while (!(atomic_load_explicit(&gate->state, memory_order_acquire) & BY_GATE_RESTS))
        by_gate_pause(&spins);
}

static inline void by_gate_open(struct by_gate *gate)
{
    atomic_fetch_and_explicit(&gate->state, ~(unsigned)BY_GATE_HELD, memory_order_release);
}

#endif
