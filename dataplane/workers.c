/* The rings between workers, their threads, and the gates; see workers.h. Opened and closed by the
 * main worker; the rest is called as stated there. */
#include "dataplane/workers.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_ether.h>
#include <rte_lcore.h>

#include "dataplane/say.h"
#include "dataplane/state.h"
#include "offload/base/assert.h"
#include "offload/base/bytes.h"
#include "offload/base/errors.h"

/* References given back at once (count). */
#define RETURNS 64u

/* The shell whose loop runs in this thread; set where there are several. */
static _Thread_local const struct by_shell *here;

BY_STATIC_ASSERT(BY_WORKERS_MAX <= 64, "workers are bits of a word");

bool by_workers_own(const struct by_shell *shell, unsigned index)
{
    return !shell->workers || shell->workers->owner[index] == shell->worker;
}

bool by_workers_poll(const struct by_shell *shell, unsigned index)
{
    return by_workers_own(shell, index) || shell->ports[index].rx_queues > 1;
}

/* ---- hand-over ---- */

static void take_back(struct by_shell *shell, struct rte_ring *ring)
{
    void *items[RETURNS];
    unsigned count;

    while ((count = rte_ring_sc_dequeue_burst(ring, items, RETURNS, NULL)) > 0)
        for (unsigned i = 0; i < count; i++) {
            uint64_t item = (uintptr_t)items[i];

            by_engine_release_all(shell->engine, (uint32_t)item, (uint32_t)(item >> 32));
        }
}

void by_workers_begin(struct by_shell *shell)
{
    struct by_worker *self = &shell->workers->worker[shell->worker];

    here = shell;
    for (unsigned from = 0; from <= shell->workers->count; from++)
        if (!rte_ring_empty(self->returned[from]))
            take_back(shell, self->returned[from]);
}

void by_workers_return(struct by_shell *shell, uint32_t ref, uint32_t count)
{
    struct by_workers *workers = shell->workers;
    unsigned from = here && here->workers == workers ? here->worker : workers->count;
    uint64_t item = (uint64_t)count << 32 | ref;
    int full = 0;

    if (here == shell) {
        by_engine_release_all(shell->engine, ref, count);
        return;
    }
    full = rte_ring_sp_enqueue(workers->worker[shell->worker].returned[from], (void *)(uintptr_t)item);
    BY_ASSERT(full == 0); /* the ring has a place for each segment */
}

uint32_t by_workers_take(struct by_shell *shell, unsigned from, struct rte_mbuf **frames, uint32_t count)
{
    struct rte_ring *ring = shell->workers->worker[shell->worker].handed[from];

    return rte_ring_sc_dequeue_burst(ring, (void **)frames, count, NULL);
}

static bool is_arp(const struct rte_mbuf *frame)
{
    return frame->data_len >= BY_FRAME_HEADER_BYTES &&
           by_get16(rte_pktmbuf_mtod_offset(frame, const uint8_t *, BY_FRAME_AT_TYPE)) == RTE_ETHER_TYPE_ARP;
}

bool by_workers_keep(struct by_shell *shell, uint16_t index, struct rte_mbuf *frame)
{
    struct by_worker *self = &shell->workers->worker[shell->worker];
    uint64_t own = UINT64_C(1) << shell->worker, targets, others;
    struct by_frame fields;
    struct by_rx rx = {.port = index};

    if (by_frame_parse(rte_pktmbuf_mtod(frame, const uint8_t *), frame->data_len, &fields) == 0) {
        rx.data = fields.data;
        rx.bytes = fields.bytes;
        rx.dst_ip = fields.dst_ip;
        targets = by_engine_workers(shell->engine, &rx);
    } else if (shell->batch.neighbours.count > 0 && is_arp(frame)) {
        targets = (UINT64_C(2) << (shell->workers->count - 1)) - 1; /* all of them learn */
    } else {
        targets = UINT64_C(1) << shell->workers->owner[index]; /* answers ARP, and hears LLDP */
    }
    others = targets & ~own;
    if (others == 0)
        return true;
    for (bool taken = (targets & own) != 0; others != 0; others &= others - 1, taken = true) {
        struct by_workers_burst *burst = &self->burst[__builtin_ctzll(others)];
        /* A frame for several workers is short; each gets its own, so that they share no
         * buffer. */
        struct rte_mbuf *one = taken ? rte_pktmbuf_copy(frame, shell->frame_pool, 0, UINT32_MAX) : frame;

        if (!one) {
            shell->counters.hand_full++;
            continue;
        }
        one->port = index;
        burst->frame[burst->count++] = one;
        self->touched |= others & -others;
    }
    return (targets & own) != 0;
}

void by_workers_pass(struct by_shell *shell)
{
    struct by_workers *workers = shell->workers;
    struct by_worker *self = &workers->worker[shell->worker];

    for (uint64_t left = self->touched; left != 0; left &= left - 1) {
        unsigned to = (unsigned)__builtin_ctzll(left);
        struct by_workers_burst *burst = &self->burst[to];
        unsigned done = burst->count == 0
                            ? 0
                            : rte_ring_sp_enqueue_burst(workers->worker[to].handed[shell->worker],
                                                        (void **)burst->frame, burst->count, NULL);

        if (done < burst->count) {
            rte_pktmbuf_free_bulk(burst->frame + done, burst->count - done);
            shell->counters.hand_full += burst->count - done;
        }
        shell->counters.handed += done;
        burst->count = 0;
    }
}

/* Sends the frames that one worker has for an own port; returns their number. */
static uint32_t send_from(struct by_port *port, struct rte_ring *ring)
{
    struct rte_mbuf *frames[BY_PORT_BURST];
    uint32_t sent = 0;
    unsigned count;

    while (sent < BY_HAND_FRAMES &&
           (count = rte_ring_sc_dequeue_burst(ring, (void **)frames, BY_PORT_BURST, NULL)) > 0) {
        /* The ring has written `count` of them. */
        for (unsigned i = 0; i < count; i++)
            rte_prefetch0(frames[i]); /* NOLINT(clang-analyzer-core.CallAndMessage) */
        for (unsigned i = 0; i < count; i++)
            by_port_send(port, frames[i]);
        sent += count;
    }
    return sent;
}

uint32_t by_workers_send(struct by_shell *shell)
{
    struct by_workers *workers = shell->workers;
    uint32_t sent = 0;

    for (unsigned i = 0; i < shell->port_count; i++)
        for (unsigned w = 0; w < workers->count && by_workers_own(shell, i); w++)
            if (workers->out[i][w] && !rte_ring_empty(workers->out[i][w]))
                sent += send_from(&shell->ports[i], workers->out[i][w]);
    return sent;
}

void by_workers_wake(struct by_shell *shell)
{
    struct by_workers *workers = shell->workers;
    struct by_worker *self = &workers->worker[shell->worker];

    for (; self->touched != 0; self->touched &= self->touched - 1) {
        unsigned to = (unsigned)__builtin_ctzll(self->touched);

        if (by_gate_rests(&workers->gate[to]))
            by_handoff_wake(&workers->worker[to].shell->handoff);
    }
}

/* ---- gates ---- */

bool by_workers_rest(struct by_shell *shell)
{
    struct by_workers *workers = shell->workers;
    bool work = false;

    by_gate_rest(&workers->gate[shell->worker]);
    for (unsigned w = 0; w < workers->count && !work; w++) {
        work = !rte_ring_empty(workers->worker[shell->worker].handed[w]);
        for (unsigned i = 0; i < workers->port_count && !work; i++)
            work = by_workers_own(shell, i) && workers->out[i][w] && !rte_ring_empty(workers->out[i][w]);
    }
    if (work)
        by_workers_rise(shell);
    return !work;
}

void by_workers_rise(struct by_shell *shell)
{
    by_gate_rise(&shell->workers->gate[shell->worker]);
}

void by_workers_halt(struct by_shell *shell)
{
    struct by_gate *gate = &shell->workers->gate[shell->worker];

    if (by_gate_is_held(gate)) {
        by_gate_rest(gate);
        by_gate_rise(gate);
    }
}

void by_workers_hold(struct by_workers *workers)
{
    if (workers->held)
        return;
    for (unsigned w = 1; w < workers->count; w++)
        by_gate_close(&workers->gate[w]);
    for (unsigned w = 1; w < workers->count; w++)
        by_gate_await(&workers->gate[w]);
    workers->held = true;
}

void by_workers_release(struct by_workers *workers)
{
    if (!workers->held)
        return;
    workers->held = workers->counted = false;
    for (unsigned w = 1; w < workers->count; w++)
        by_gate_open(&workers->gate[w]);
}

/* Adds structs that consist of counters. */
static void add(void *sum, const void *counters, size_t bytes)
{
    uint64_t *to = sum;
    const uint64_t *from = counters;

    for (size_t i = 0; i < bytes / sizeof *to; i++)
        to[i] += from[i];
}

void by_workers_count(struct by_workers *workers)
{
    if (workers->counted)
        return; /* the answer to one request reads many counters */
    by_workers_hold(workers);
    memset(&workers->engine, 0, sizeof workers->engine);
    memset(&workers->counters, 0, sizeof workers->counters);
    for (unsigned w = 0; w < workers->count; w++) {
        struct by_shell *shell = workers->worker[w].shell;

        shell->counters.batch = shell->batch.counters;
        add(&workers->engine, by_engine_counters(shell->engine), sizeof workers->engine);
        add(&workers->counters, &shell->counters, sizeof workers->counters);
    }
    workers->counted = true;
}

uint64_t by_workers_pulse(struct by_workers *workers)
{
    uint64_t all = (UINT64_C(2) << (workers->count - 1)) - 1;
    unsigned still;

    for (unsigned w = 0; w < workers->count; w++) {
        uint64_t pulse = atomic_load_explicit(&workers->worker[w].shell->pulse, memory_order_relaxed);

        if (pulse != workers->pulse[w])
            workers->moved |= UINT64_C(1) << w;
        workers->pulse[w] = pulse;
    }
    if (workers->moved == all) {
        workers->moved = 0;
        workers->rounds++;
    }
    still = (unsigned)__builtin_ctzll(~workers->moved);
    return workers->rounds << BY_PULSE_BITS | (uint64_t)still << BY_PULSE_WORKER |
           (workers->pulse[still] & BY_PULSE_MASK);
}

/* ---- threads ---- */

static void pin(int cpu)
{
    cpu_set_t set;

    if (cpu < 0)
        return;
    CPU_ZERO(&set);
    CPU_SET((size_t)cpu, &set);
    if (pthread_setaffinity_np(pthread_self(), sizeof set, &set) != 0)
        by_say("cannot run a worker on core %d; it runs on any", cpu);
}

static void *work(void *argument)
{
    struct by_worker *self = argument;
    struct by_shell *shell = self->shell;
    char name[16];

    snprintf(name, sizeof name, "worker%u", shell->worker);
    pthread_setname_np(pthread_self(), name);
    pin(self->cpu);
    /* Gives this thread caches of the packet pools. */
    if (rte_thread_register() != 0)
        by_say("worker %u has no cache of packet buffers: too many threads use DPDK", shell->worker);
    by_idle_here();
    by_workers_rise(shell);
    shell->workers->loop(shell, &shell->workers->worker[0].shell->stopping);
    by_gate_rest(&shell->workers->gate[shell->worker]);
    rte_thread_unregister();
    return NULL;
}

int by_workers_start(struct by_workers *workers, by_workers_loop_fn *loop)
{
    sigset_t all, before;
    int result = 0;

    workers->loop = loop;
    pin(workers->worker[0].cpu);
    here = workers->worker[0].shell;
    by_workers_rise(workers->worker[0].shell);
    /* Signals are handled by the main thread. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    for (unsigned w = 1; w < workers->count && result == 0; w++) {
        result = pthread_create(&workers->worker[w].thread, NULL, work, &workers->worker[w]);
        workers->worker[w].running = result == 0;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (result == 0)
        return 0;
    by_say("cannot start %u threads: %s; use fewer --cores", workers->count - 1, strerror(result));
    return BY_EIO;
}

void by_workers_join(struct by_workers *workers)
{
    by_workers_release(workers);
    for (unsigned w = 1; w < workers->count; w++) {
        by_handoff_wake(&workers->worker[w].shell->handoff);
        if (workers->worker[w].running)
            pthread_join(workers->worker[w].thread, NULL);
        workers->worker[w].running = false;
    }
    by_gate_rest(&workers->gate[0]);
}
