/*
 * The workers of a switch with several cores: threads that each run a loop with an engine, a batch
 * and counters of its own (offload/wire/stripe.h assigns chunks to them). The first worker is the
 * shell's own thread; it serves the control channel, and holds the others at their gates while it
 * reads or changes what is theirs. Each port has an owner, and devices with enough queues one of
 * them for each worker (port_steer.h). Frames for another worker, frames for another worker's port,
 * and references to payloads that another worker has sent go through rings.
 * Neighbours: shell.c opens, loop.c runs, replicate.c returns references. A switch with one worker
 * has none of this: by_shell.workers is NULL.
 */
#ifndef BY_DATAPLANE_WORKERS_H
#define BY_DATAPLANE_WORKERS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <rte_ring.h>

#include "dataplane/gate.h"
#include "dataplane/shell.h"
#include "offload/wire/stripe.h"

/* Frames of one port that wait for a worker, or for the port (count, a power of two): what it
 * receives while the worker is not running. */
#define BY_HAND_FRAMES 1024u

/* Frames of one burst for another worker. */
struct by_workers_burst {
    uint16_t count;
    struct rte_mbuf *frame[BY_BATCH_BURST];
};

/* What one worker writes. */
struct by_worker {
    struct by_shell *shell;
    /* references that other workers give back: ref | count << 32; the last ring is for a thread
     * that is no worker */
    struct rte_ring *returned[BY_WORKERS_MAX + 1];
    struct rte_ring *handed[BY_WORKERS_MAX]; /* frames that other workers have received for this one */
    uint64_t touched; /* workers with new work in their rings since the last wake, as bits */
    struct by_workers_burst burst[BY_WORKERS_MAX];
    pthread_t thread;
    bool running;
    int cpu; /* it is pinned to, or -1 */
};

/* Runs rounds until *stopping. */
typedef void by_workers_loop_fn(struct by_shell *shell, const _Atomic int *stopping);

struct by_workers {
    by_workers_loop_fn *loop; /* of each thread */
    unsigned count;
    unsigned port_count;
    bool held, counted;
    struct by_gate gate[BY_WORKERS_MAX];
    struct by_worker worker[BY_WORKERS_MAX];
    uint8_t owner[BY_PORTS_MAX];
    /* frames for a port, from its other workers; NULL where these have transmit queues */
    struct rte_ring *out[BY_PORTS_MAX][BY_WORKERS_MAX];
    /* what the main worker has summed while it holds the others */
    struct by_engine_counters engine;
    struct by_shell_counters counters;
    /* for by_workers_pulse: the last pulse of each worker, those that have moved since, as bits,
     * and how often all had */
    uint64_t pulse[BY_WORKERS_MAX], moved, rounds;
};

/* Opens the other workers of an open shell whose ports have started, and gives some of the ports to
 * them. Reports errors: BY_ENOMEM, BY_ELIMIT or BY_EIO. */
int by_workers_open(struct by_shell *shell, const struct by_shell_config *config);
/* Closes the other workers and their ports. No thread may be running. NULL is allowed. */
void by_workers_close(struct by_workers *workers);
/* Starts the threads of the other workers. 0 or BY_EIO, reported. */
int by_workers_start(struct by_workers *workers, by_workers_loop_fn *loop);
/* Waits for their end; by_shell_stop was called. */
void by_workers_join(struct by_workers *workers);

/* For the loop of each worker. Takes back references; before a round. */
void by_workers_begin(struct by_shell *shell);
/* Takes frames that worker `from` has received; returns their number. `port` of each is set. */
uint32_t by_workers_take(struct by_shell *shell, unsigned from, struct rte_mbuf **frames, uint32_t count);
/* Whether a received frame is (also) for this worker; queues it for the others. */
bool by_workers_keep(struct by_shell *shell, uint16_t index, struct rte_mbuf *frame);
/* Hands over what by_workers_keep has queued. */
void by_workers_pass(struct by_shell *shell);
/* Sends frames of other workers by the own ports; returns their number. */
uint32_t by_workers_send(struct by_shell *shell);
/* Wakes the workers that got work in this round and rest. */
void by_workers_wake(struct by_shell *shell);
/* Goes to the gate before a sleep; false if there is work after all. */
bool by_workers_rest(struct by_shell *shell);
void by_workers_rise(struct by_shell *shell);
/* Stays at the gate while it is held. */
void by_workers_halt(struct by_shell *shell);

/* For the main worker. Holds the others at their gates; nothing if it does already. */
void by_workers_hold(struct by_workers *workers);
/* Lets them go on, if they are held. */
void by_workers_release(struct by_workers *workers);
/* Holds, and sums the counters into workers->engine and workers->counters. */
void by_workers_count(struct by_workers *workers);

/* Gives `count` references to payload `ref` of `shell`'s engine back, from any worker's thread. */
void by_workers_return(struct by_shell *shell, uint32_t ref, uint32_t count);
/* Whether `shell` owns port `index`: closes it, and answers ARP there. */
bool by_workers_own(const struct by_shell *shell, unsigned index);
/* Whether `shell` polls port `index`: owns it, or has a receive queue. */
bool by_workers_poll(const struct by_shell *shell, unsigned index);
/* As by_shell_pulse, of the worker that has not moved for the longest time. */
uint64_t by_workers_pulse(struct by_workers *workers);

/* port_hand.c: makes `port` stand for `from`, which another worker owns; its frames go to `out`. */
void by_port_hand_open(struct by_port *port, const struct by_port *from, struct rte_ring *out);

#endif
