/*
 * bench-workers: how much faster two workers of a switch are than one, on memory ports in this
 * process, whose frames an owner hands over, or which have a queue for each worker and are steered
 * as by a card. Three steps alternate: each worker's thread puts frames with 1408 bytes of payload
 * onto the ports that it owns, or into its queues, the workers' loops run until all sums have left,
 * and each thread checks and frees what its ports or queues have sent. Only the second step is
 * timed. So hosts take no part of a core, and frames are made and freed on the core of their port,
 * as a network card's queues are. All sums are checked. Needs two cores, no root and no hugepages.
 */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <rte_lcore.h>
#include <rte_pause.h>

#include "dataplane/eal.h"
#include "dataplane/port_steer.h"
#include "dataplane/say.h"
#include "offload/base/bytes.h"
#include "tests/unit/dataplane/wires.h"

#define PORTS   4u
#define COUNT   352u
#define PAYLOAD (4u * COUNT)
/* Chunks of a phase, phases of a measurement, and rounds of measurements (count). */
#define CHUNKS     512u
#define PHASES     60u
#define PHASES_MAX 4096u
#define ROUNDS     7u
#define TREES_MAX  16u
/* Messages from one core to the other and back (count). */
#define TURNS 200000u
/* Frames that a thread takes from a ring at a time (count). */
#define BURST 32u

enum step { REST, FILL, RUN, CHECK, END };

/* What a thread does: the number of the step, and its kind in the low bits. */
#define STEP_BITS 3u

static struct wires wires;
static unsigned worker_count, tree_count;
static bool has_queues;          /* for each worker */
static _Atomic unsigned wanted;  /* the step that the second thread takes */
static _Atomic unsigned reached; /* the step that it has finished */
static _Atomic unsigned wrong;
static uint64_t results_due;                     /* results of all phases */
static uint32_t first;                           /* chunk of each tree in this phase */
static uint8_t frame_of[PORTS][TREES_MAX][2048]; /* contributions to chunk 0 */
static uint16_t frame_bytes;
static uint8_t expected[PAYLOAD];
static uint8_t seen[2][PORTS][CHUNKS]; /* results of this phase, of a worker's ports or queues */

static _Noreturn void fail(const char *what)
{
    fprintf(stderr, "bench-workers: %s failed\n", what);
    exit(3);
}

static uint64_t clock_ns(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* Runs this thread on the core with this number among those that the process may use: a scheduler
 * may leave two threads on one core for seconds. */
static void pin(unsigned number)
{
    static cpu_set_t all;
    cpu_set_t one;

    if (CPU_COUNT(&all) == 0 && pthread_getaffinity_np(pthread_self(), sizeof all, &all) != 0)
        fail("sched_getaffinity");
    CPU_ZERO(&one);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &all) && number-- == 0)
            CPU_SET(cpu, &one);
    if (CPU_COUNT(&one) == 1 && pthread_setaffinity_np(pthread_self(), sizeof one, &one) == 0)
        return;
    fprintf(stderr, "bench-workers: skipped: two workers need a core each\n");
    exit(77);
}

static struct by_shell *shell_of(unsigned worker)
{
    return worker_count > 1 ? wires.shell->workers->worker[worker].shell : wires.shell;
}

/* ---- the hosts of one port ---- */

static void make_frames(void)
{
    uint8_t packet[BY_WIRE_HEADER_BYTES + PAYLOAD];

    for (unsigned host = 0; host < PORTS; host++)
        for (uint16_t tree = 0; tree < TREES_MAX; tree++) {
            size_t bytes = star_contribution(&wires.star, host, tree, 0, COUNT, packet);

            frame_bytes = (uint16_t)star_frame(host, packet, bytes, frame_of[host][tree]);
        }
    for (unsigned k = 0; k < COUNT; k++) {
        int32_t sum = star_sum(&(struct star){.hosts = PORTS}, 0, k);

        memcpy(expected + 4 * k, &sum, sizeof sum);
    }
}

/* Whether a worker receives chunk `i` of a phase. */
static bool gets(unsigned worker, uint32_t i)
{
    uint32_t tree = (uint32_t)STAR_JOB << 16 | i / (CHUNKS / tree_count);

    return !has_queues || by_lane_worker(by_lane_port(tree, first + i % (CHUNKS / tree_count)) % BY_LANE_PORT,
                                         worker_count) == worker;
}

/* The queue of a worker at a port. */
static unsigned queue_of(unsigned host, unsigned worker)
{
    return has_queues ? by_steer_queue(host, worker, worker_count) : 0;
}

/* Puts what a worker receives of a phase's frames onto a port. */
static void fill(unsigned host, unsigned worker)
{
    struct rte_ring *ring = wires_ring(host, queue_of(host, worker), true);
    struct rte_mbuf *frames[BURST];
    uint32_t chunks = CHUNKS / tree_count, count = 0;

    for (uint32_t i = 0; i < CHUNKS; i++) {
        uint8_t *data, *packet;

        if (gets(worker, i)) {
            if (!(frames[count] = rte_pktmbuf_alloc(wires.shell->frame_pool)))
                fail("a buffer");
            data = rte_pktmbuf_mtod(frames[count], uint8_t *);
            packet = data + BY_FRAME_HEADER_BYTES;
            memcpy(data, frame_of[host][i / chunks], frame_bytes);
            by_put32(packet + BY_HEADER_AT_SEQ, first + i % chunks);
            star_retag(packet);
            by_put16(data + BY_FRAME_AT_UDP,
                     by_lane_port(by_get32(packet + BY_HEADER_AT_JOB), first + i % chunks));
            frames[count]->data_len = frame_bytes;
            frames[count++]->pkt_len = frame_bytes;
        }
        if ((count == BURST || i == CHUNKS - 1) && count > 0) {
            if (rte_ring_sp_enqueue_bulk(ring, (void **)frames, count, NULL) != count)
                fail("a memory port");
            count = 0;
        }
    }
}

static bool is_right(const struct rte_mbuf *frame, uint8_t times[CHUNKS])
{
    uint8_t room[BY_PORT_FRAME_OVERHEAD + PAYLOAD];
    struct by_header header;
    const uint8_t *payload, *sum = room + BY_PORT_FRAME_OVERHEAD;
    bool chained = frame->nb_segs == 2 && frame->data_len == BY_PORT_FRAME_OVERHEAD;
    uint32_t place;

    if (frame->pkt_len != sizeof room)
        return false;
    if (chained) {
        memcpy(room, rte_pktmbuf_mtod(frame, const uint8_t *), BY_PORT_FRAME_OVERHEAD);
        sum = rte_pktmbuf_mtod(frame->next, const uint8_t *);
    } else if (rte_pktmbuf_read(frame, 0, sizeof room, room) != room) {
        memcpy(room, rte_pktmbuf_mtod(frame, const uint8_t *), sizeof room);
    }
    if (by_header_decode(room + BY_FRAME_HEADER_BYTES, BY_WIRE_HEADER_BYTES + PAYLOAD, &header, &payload) !=
            (int32_t)PAYLOAD ||
        header.type != BY_TYPE_RESULT || header.nleaf != PORTS || header.tree >= tree_count ||
        header.seq - first >= CHUNKS / tree_count || memcmp(sum, expected, PAYLOAD) != 0)
        return false;
    place = header.tree * (CHUNKS / tree_count) + (header.seq - first);
    return times[place]++ == 0;
}

static void check(unsigned host, unsigned worker)
{
    struct rte_ring *ring = wires_ring(host, queue_of(host, worker), false);
    struct rte_mbuf *frames[BURST];
    unsigned count;

    memset(seen[worker][host], 0, sizeof seen[worker][host]);
    while ((count = rte_ring_sc_dequeue_burst(ring, (void **)frames, BURST, NULL)) > 0) {
        for (unsigned i = 0; i < count; i++)
            if (!is_right(frames[i], seen[worker][host]))
                atomic_fetch_add_explicit(&wrong, 1, memory_order_relaxed);
        rte_pktmbuf_free_bulk(frames, count);
    }
}

/* ---- threads ---- */

/* Whether a worker sends by a port. */
static bool has(unsigned worker, unsigned host)
{
    return has_queues || by_steer_owner(host, worker_count) == worker;
}

/* Takes a step for the ports or queues of one worker. */
static void take_step(enum step step, unsigned worker)
{
    for (unsigned host = 0; host < PORTS; host++) {
        if (has(worker, host) && step == FILL)
            fill(host, worker);
        else if (has(worker, host))
            check(host, worker);
    }
    /* Gives references back that the freed frames have held. */
    if (worker_count > 1)
        by_workers_begin(shell_of(worker));
}

/* Runs rounds of a worker until its ports have sent all results of the phase. */
static void run(unsigned worker, unsigned step)
{
    struct by_shell *shell = shell_of(worker);
    uint64_t sent;

    do {
        by_shell_round(shell);
        sent = 0;
        for (unsigned host = 0; host < PORTS; host++)
            sent += has(worker, host) ? shell->ports[host].counters.tx_packets : 0;
    } while (sent < results_due / worker_count);
    if (worker > 0)
        atomic_store_explicit(&reached, step, memory_order_release);
}

/* `argument`: the step before the thread's first one. */
static void *second(void *argument)
{
    unsigned last = *(const unsigned *)argument, now;

    pin(1);
    rte_thread_register();
    by_workers_rise(shell_of(1));
    for (;; last = now) {
        while ((now = atomic_load_explicit(&wanted, memory_order_acquire)) == last)
            rte_pause();
        if (now % (1u << STEP_BITS) == RUN) {
            run(1, now);
            while (atomic_load_explicit(&wanted, memory_order_acquire) == now)
                by_shell_round(shell_of(1));
            continue;
        }
        if (now % (1u << STEP_BITS) == END)
            break;
        take_step(now % (1u << STEP_BITS), 1);
        atomic_store_explicit(&reached, now, memory_order_release);
    }
    rte_thread_unregister();
    return NULL;
}

/* Tells the second thread its next step. */
static unsigned command(enum step step)
{
    unsigned next =
        ((atomic_load_explicit(&wanted, memory_order_relaxed) >> STEP_BITS) + 1) << STEP_BITS | step;

    atomic_store_explicit(&wanted, next, memory_order_release);
    return next;
}

static void await(unsigned step)
{
    while (worker_count > 1 && atomic_load_explicit(&reached, memory_order_acquire) != step)
        rte_pause();
}

/* Runs one phase; returns its time (ns). */
static uint64_t run_phase(void)
{
    unsigned step = command(FILL);
    uint64_t begin, end;

    take_step(FILL, 0);
    await(step);
    results_due += CHUNKS * PORTS;
    begin = clock_ns();
    step = command(RUN);
    run(0, step);
    while (worker_count > 1 && atomic_load_explicit(&reached, memory_order_acquire) != step)
        by_shell_round(wires.shell);
    end = clock_ns();
    step = command(CHECK);
    take_step(CHECK, 0);
    await(step);
    return end - begin;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median(double *values, unsigned count)
{
    qsort(values, count, sizeof *values, compare);
    return values[count / 2];
}

static double least(const double *values, unsigned count)
{
    double value = values[0];

    for (unsigned i = 1; i < count; i++)
        value = values[i] < value ? values[i] : value;
    return value;
}

/* ---- the cores ---- */

static _Atomic unsigned turn;

static void *answer_turns(void *unused)
{
    (void)unused;
    pin(1);
    for (unsigned i = 0; i < TURNS; i++) {
        while (atomic_load_explicit(&turn, memory_order_acquire) != 2 * i + 1)
            ;
        atomic_store_explicit(&turn, 2 * i + 2, memory_order_release);
    }
    return NULL;
}

/* The time in which one core sees what the other has written (ns): some 40 where they share a
 * cache, and some 200 where they do not. A hypervisor may move a virtual machine from one case to
 * the other. */
static double line_ns(void)
{
    const unsigned turns = TURNS - TURNS / 10; /* that are measured */
    uint64_t begin;
    pthread_t thread;

    atomic_store(&turn, 0);
    if (pthread_create(&thread, NULL, answer_turns, NULL) != 0)
        fail("a thread");
    begin = clock_ns();
    for (unsigned i = 0; i < TURNS; i++) {
        if (i == TURNS / 10)
            begin = clock_ns(); /* the other thread runs on its core */
        atomic_store_explicit(&turn, 2 * i + 1, memory_order_release);
        while (atomic_load_explicit(&turn, memory_order_acquire) != 2 * i + 2)
            ;
    }
    begin = clock_ns() - begin;
    pthread_join(thread, NULL);
    return (double)begin / (2.0 * turns);
}

/* Nanoseconds for each frame sent: the median of the phases, few of which lose a core to another
 * program. */
static double measure(unsigned trees, unsigned workers, unsigned phases)
{
    static double spent[PHASES_MAX];
    const struct star star = {
        .hosts = PORTS, .trees = (uint16_t)trees, .window = CHUNKS, .payload_max = PAYLOAD, .mtu = 1500};
    unsigned before = atomic_load(&wanted); /* of the measurement before, if the thread starts late */
    pthread_t thread;

    worker_count = workers;
    tree_count = trees;
    first = 0;
    results_due = 0;
    wires_open(&wires, &star, workers, has_queues, NULL);
    make_frames();
    for (unsigned w = 0; w < workers; w++)
        for (unsigned i = 0; i < PORTS; i++)
            shell_of(w)->ports[i].multi_segs = true;
    wires_load(&wires, STAR_GEN);
    if (workers > 1) {
        by_workers_release(wires.shell->workers);
        by_workers_rise(wires.shell);
        if (pthread_create(&thread, NULL, second, &before) != 0)
            fail("a thread");
    }
    for (unsigned i = 0; i < phases; i++) {
        spent[i] = (double)run_phase() / (CHUNKS * PORTS);
        first += CHUNKS / trees;
    }
    command(END);
    if (workers > 1)
        pthread_join(thread, NULL);
    if (wrong > 0)
        fail("a sum");
    wires_close(&wires);
    return median(spent, phases);
}

int main(int argc, char **argv)
{
    struct by_eal_config config = {.name = "bench", .no_huge = true};

    by_say_name("bench");
    if (by_eal_start(&config) != 0)
        return 3;
    pin(0);
    if (argc == 4 || argc == 5) { /* TREES WORKERS PHASES [queues]: only this, for a profiler */
        unsigned trees = (unsigned)atoi(argv[1]), workers = (unsigned)atoi(argv[2]),
                 phases = (unsigned)atoi(argv[3]);

        if (trees == 0 || trees > TREES_MAX || CHUNKS % trees != 0 || workers == 0 || workers > 2 ||
            phases == 0 || phases > PHASES_MAX)
            fail("reading its arguments");
        has_queues = argc == 5;
        printf("%.1f\n", measure(trees, workers, phases));
        by_eal_stop();
        return 0;
    }
    printf("# a line of memory passes from core to core in %.0f ns\n", line_ns());
    puts("# workers of a switch on memory ports, 4 ports, 1408 bytes of payload: ns for each frame sent, "
         "best of 7 rounds; their ratios");
    printf("# %5s %9s %9s %9s %7s %14s %7s %14s\n", "trees", "1 worker", "2, handed", "2, queues", "handed",
           "in the rounds", "queues", "in the rounds");
    for (unsigned trees = 1; trees <= TREES_MAX; trees *= 16) {
        double one[ROUNDS], handed[ROUNDS], queues[ROUNDS], ratio[2][ROUNDS];

        for (unsigned i = 0; i < ROUNDS; i++) {
            has_queues = false;
            one[i] = measure(trees, 1, PHASES);
            handed[i] = measure(trees, 2, PHASES);
            has_queues = true;
            queues[i] = measure(trees, 2, PHASES);
            ratio[0][i] = one[i] / handed[i];
            ratio[1][i] = one[i] / queues[i];
        }
        qsort(ratio[0], ROUNDS, sizeof ratio[0][0], compare);
        qsort(ratio[1], ROUNDS, sizeof ratio[1][0], compare);
        printf("  %5u %9.1f %9.1f %9.1f %7.2f %6.2f to %.2f %7.2f %6.2f to %.2f\n", trees, least(one, ROUNDS),
               least(handed, ROUNDS), least(queues, ROUNDS), least(one, ROUNDS) / least(handed, ROUNDS),
               ratio[0][0], ratio[0][ROUNDS - 1], least(one, ROUNDS) / least(queues, ROUNDS), ratio[1][0],
               ratio[1][ROUNDS - 1]);
    }
    by_eal_stop();
    return 0;
}
