/*
 * bench-workers: how much faster two workers of a switch are than one, on memory ports in this
 * process. Frames with 1408 bytes of payload wait at four ports; the time is that until all sums
 * have left, one thread for each worker, without the hosts' part. All sums are checked. Needs two
 * idle cores, no root and no hugepages.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <rte_lcore.h>

#include "dataplane/eal.h"
#include "dataplane/say.h"
#include "tests/unit/dataplane/wires.h"

#define PORTS   4u
#define PAYLOAD 1408u
/* Chunks of a phase, and phases of a run (count). */
#define CHUNKS 512u
#define PHASES 60u
#define RUNS   5u

static struct wires wires;
static _Atomic unsigned phase, idle;

static uint64_t clock_ns(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* The second worker's thread: runs in odd phases, and ends at phase 0. */
static void *second(void *shell)
{
    unsigned now;

    rte_thread_register();
    while ((now = atomic_load_explicit(&phase, memory_order_acquire)) != UINT32_MAX) {
        if (now % 2 == 0) {
            atomic_store_explicit(&idle, now, memory_order_release);
            continue;
        }
        by_shell_round(shell);
    }
    rte_thread_unregister();
    return NULL;
}

/* Runs one phase; returns its time (ns). */
static uint64_t run_phase(unsigned trees, uint32_t chunks, bool two)
{
    uint64_t begin, end;

    wires_send(&wires, trees, chunks);
    begin = clock_ns();
    if (two)
        atomic_fetch_add_explicit(&phase, 1, memory_order_release);
    while (wires_pending(&wires) < CHUNKS * PORTS)
        by_shell_round(wires.shell);
    end = clock_ns();
    if (two) {
        unsigned now = atomic_fetch_add_explicit(&phase, 1, memory_order_release) + 1;

        while (atomic_load_explicit(&idle, memory_order_acquire) != now)
            ;
    }
    while (wires_receive(&wires))
        ;
    return end - begin;
}

/* Nanoseconds for each frame sent: the least of some runs. */
static double measure(unsigned trees, unsigned workers)
{
    const struct star star = {
        .hosts = PORTS, .trees = (uint16_t)trees, .window = CHUNKS, .payload_max = PAYLOAD, .mtu = 1500};
    uint64_t least = UINT64_MAX, results;
    uint32_t chunks = 0;
    pthread_t thread;

    wires_open(&wires, &star, workers, NULL);
    wires.flight = CHUNKS / trees;
    for (unsigned w = 0; w < workers; w++)
        for (unsigned i = 0; i < PORTS; i++)
            (workers > 1 ? wires.shell->workers->worker[w].shell : wires.shell)->ports[i].multi_segs = true;
    wires_load(&wires, STAR_GEN);
    atomic_store(&phase, 0);
    if (workers > 1 && pthread_create(&thread, NULL, second, wires.shell->workers->worker[1].shell) != 0)
        abort();
    for (unsigned run = 0; run < RUNS; run++) {
        uint64_t spent = 0;

        for (unsigned i = 0; i < PHASES; i++) {
            chunks += wires.flight;
            spent += run_phase(trees, chunks, workers > 1);
        }
        least = spent < least ? spent : least;
    }
    atomic_store(&phase, UINT32_MAX);
    if (workers > 1)
        pthread_join(thread, NULL);
    results = (uint64_t)RUNS * PHASES * CHUNKS * PORTS;
    if (wires.wrong > 0 || wires.results != results) {
        fprintf(stderr, "bench-workers: %llu of %llu results, %llu wrong\n",
                (unsigned long long)wires.results, (unsigned long long)results,
                (unsigned long long)wires.wrong);
        exit(1);
    }
    wires_close(&wires);
    return (double)least / (PHASES * CHUNKS * PORTS);
}

int main(void)
{
    struct by_eal_config config = {.name = "bench", .no_huge = true};

    by_say_name("bench");
    if (by_eal_start(&config) != 0)
        return 3;
    puts(
        "# workers of a switch on memory ports, 4 ports, 1408 bytes of payload: ns for each frame sent, best of 5");
    printf("# %5s %9s %9s %7s\n", "trees", "1 worker", "2 workers", "ratio");
    for (unsigned trees = 1; trees <= 16; trees *= 16) {
        double one = measure(trees, 1), two = measure(trees, 2);

        printf("  %5u %9.1f %9.1f %7.2f\n", trees, one, two, one / two);
    }
    by_eal_stop();
    return 0;
}
