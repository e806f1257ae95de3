/*
 * Tables are committed while chunks flow through a switch with several workers, on memory ports. A
 * pusher thread commits at random moments: mostly the same table again, while its chunks are open,
 * and each fourth time a table of a new generation, while the queues hold contributions of the old
 * one. Every second table gives the job a share of the ports, so that it gets its first one while
 * it runs. Values differ between generations, so a sum over two of them is wrong; every result is
 * checked, also late ones, and every chunk must complete. COMMITS in the environment sets how often
 * (`make commit-campaign`); then the time for which the workers stood still is printed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>
#include <rte_lcore.h>

#include "tests/unit/dataplane/memory.h"
#include "tests/unit/dataplane/wires.h"

#define WAIT_S  20u
#define TREES   4u
#define WINDOW  128u
#define COMMITS 80u
/* Chunks of a tree between two commits, at least (count). */
#define CHUNKS 32u
/* Of each port in every second table, which enforces shares (1000 bytes/s): 100 Gbit/s. */
#define RATE 12500000u
/* A commit begins this long after it was ordered, at most (ns). */
#define DELAY_NS 500000u

static struct wires wires;
static _Atomic unsigned ordered, done; /* commits */
static uint16_t gen_ordered;
static uint32_t rate_ordered;
static uint64_t *pause_ns;

static uint64_t clock_ns(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static void *push(void *context)
{
    const unsigned *commits = context;
    struct by_prng prng = {3};

    rte_thread_register();
    for (unsigned i = 0; i < *commits; i++) {
        uint64_t from;

        while (atomic_load_explicit(&ordered, memory_order_acquire) == i)
            sched_yield();
        for (from = clock_ns() + by_prng_next(&prng) % DELAY_NS; clock_ns() < from;)
            sched_yield();
        wires.rate = rate_ordered;
        pause_ns[i] = wires_push(&wires, gen_ordered);
        atomic_store_explicit(&done, i + 1, memory_order_release);
    }
    rte_thread_unregister();
    return NULL;
}

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

static void report(unsigned workers, unsigned commits)
{
    const struct by_engine_counters *counters = by_shell_engine_counters(wires.shell);
    uint64_t middle_ns, high_ns;

    qsort(pause_ns, commits, sizeof *pause_ns, compare);
    middle_ns = pause_ns[commits / 2];
    high_ns = pause_ns[commits * 99 / 100];
    print_message("# %u workers, %u commits: pause %.1f us median, %.1f us 99th percentile, %.1f us longest; "
                  "%llu chunks, %llu wrong, %llu late results, %llu contributions of another generation "
                  "refused, %llu repairs\n",
                  workers, commits, (double)middle_ns / 1e3, (double)high_ns / 1e3,
                  (double)pause_ns[commits - 1] / 1e3, (unsigned long long)counters->complete,
                  (unsigned long long)wires.wrong, (unsigned long long)wires.late,
                  (unsigned long long)counters->drop_gen, (unsigned long long)wires.repairs);
}

static void commit_under_load(unsigned workers, unsigned commits)
{
    const struct star star = {.hosts = 4, .trees = TREES, .window = WINDOW, .payload_max = 256, .mtu = 1500};
    uint32_t chunks = 0;
    uint16_t gen = STAR_GEN;
    pthread_t pusher;

    pause_ns = calloc(commits, sizeof *pause_ns);
    assert_non_null(pause_ns);
    atomic_store(&ordered, 0);
    atomic_store(&done, 0);
    wires_open(&wires, &star, workers, false, NULL);
    wires_load(&wires, gen);
    wires_start(&wires);
    assert_int_equal(pthread_create(&pusher, NULL, push, &commits), 0);
    for (unsigned i = 0; i < commits; i++) {
        gen_ordered = (uint16_t)(gen + (i % 4 == 3));
        rate_ordered = i % 2 * RATE;
        atomic_store_explicit(&ordered, i + 1, memory_order_release);
        while (atomic_load_explicit(&done, memory_order_acquire) == i)
            wires_step(&wires, TREES, ++chunks);
        if (gen_ordered != gen) {
            gen = gen_ordered;
            chunks = 0;
            wires_renew(&wires, gen);
        }
        chunks += CHUNKS;
        if (!wires_run(&wires, TREES, chunks, WAIT_S))
            fail_msg("no progress for %u s after commit %u", WAIT_S, i);
    }
    pthread_join(pusher, NULL);
    wires_stop(&wires);
    report(workers, commits);
    assert_int_equal(wires.wrong, 0);
    assert_true(workers == 1 || by_shell_engine_counters(wires.shell)->drop_gen > 0);
    wires_close(&wires);
    free(pause_ns);
}

static void no_chunk_is_served_by_two_tables(void **state)
{
    const char *text = getenv("COMMITS");
    unsigned commits = text ? (unsigned)strtoul(text, NULL, 10) : COMMITS;

    (void)state;
    if (commits == 0)
        fail_msg("COMMITS=%s: a number above 0 is needed", text);
    for (unsigned workers = 1; workers <= 4; workers *= 2)
        commit_under_load(workers, commits);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(no_chunk_is_served_by_two_tables)};

    return cmocka_run_group_tests(tests, memory_start, memory_stop);
}
