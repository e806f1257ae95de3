/*
 * A switch with 1, 2, 4 and 8 workers, each a thread, on memory ports: every sum is right, also
 * under injected loss, duplication and reordering, while tables are committed, and while counters
 * are read. `make workers-tsan` runs this under ThreadSanitizer.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/dataplane/memory.h"
#include "tests/unit/dataplane/wires.h"

#define WAIT_S 20u
#ifdef __SANITIZE_THREAD__
#define CHUNKS 300u /* of a tree; ThreadSanitizer is slow */
#else
#define CHUNKS 2000u
#endif

static struct wires wires;
static bool queues, strays; /* of the switch that is opened next */

static const struct by_fault faults = {
    .prng = {5}, .loss = UINT32_MAX / 100, .duplicate = UINT32_MAX / 100, .reorder = UINT32_MAX / 50};

/* Opens a switch with four hosts, of which one sends credits. */
static void open_star(unsigned workers, uint16_t trees, uint16_t window, const struct by_fault *fault)
{
    const struct star star = {.hosts = 4, .trees = trees, .window = window, .payload_max = 256, .mtu = 1500};

    wires_open(&wires, &star, workers, queues, fault);
    wires.credits = 2;
    wires.strays = strays;
    wires.loss = fault ? 0.01 : 0;
    wires_load(&wires, STAR_GEN);
    wires_start(&wires);
}

static void close_star(void)
{
    wires_stop(&wires);
    assert_int_equal(wires.wrong, 0);
    wires_close(&wires);
}

static void run(unsigned trees, uint32_t chunks)
{
    if (!wires_run(&wires, trees, chunks, WAIT_S))
        fail_msg("no progress for %u s after %llu results", WAIT_S, (unsigned long long)wires.results);
}

static void all_sums_are_right_with_any_number_of_workers(void **state)
{
    (void)state;
    for (unsigned workers = 1; workers <= 8; workers *= 2) {
        open_star(workers, 3, 64, NULL);
        run(3, CHUNKS);
        assert_int_equal(wires.results, 3 * CHUNKS * 4);
        close_star();
    }
}

static void all_sums_are_right_under_faults(void **state)
{
    (void)state;
    for (unsigned workers = 1; workers <= 8; workers *= 2) {
        open_star(workers, 2, 128, &faults);
        run(2, CHUNKS / 2);
        close_star();
    }
}

/* An answer to ARP arrives at one worker, and all of them send to the host. */
static void all_workers_learn_mac_addresses(void **state)
{
    (void)state;
    for (unsigned workers = 1; workers <= 8; workers *= 2) {
        const struct star star = {.hosts = 4, .trees = 2, .window = 64, .payload_max = 256, .mtu = 1500};

        for (unsigned faulty = 0; faulty < 2; faulty++) {
            wires_open(&wires, &star, workers, queues, faulty ? &faults : NULL);
            wires.strays = strays;
            wires.learned = true;
            wires_load(&wires, STAR_GEN);
            wires_start(&wires);
            run(2, CHUNKS / 4);
            wires_stop(&wires);
            assert_int_equal(wires.wrong, 0);
            assert_true(by_shell_counters(wires.shell)->batch.arp_learned >= 4 * workers);
            for (unsigned i = 0; i < 4; i++)
                assert_int_equal(by_shell_silent(wires.shell, i), 0);
            wires_close(&wires);
        }
    }
}

/* A host that does not answer is named, whichever worker has its port. */
static void a_silent_neighbour_is_named_with_any_number_of_workers(void **state)
{
    const struct star star = {.hosts = 4, .trees = 1, .window = 64, .payload_max = 256, .mtu = 1500};

    (void)state;
    wires_open(&wires, &star, 4, queues, NULL);
    wires.learned = true;
    wires_load(&wires, STAR_GEN);
    for (unsigned i = 0; i < 4; i++) {
        struct by_batch *batch = &wires.shell->workers->worker[i].shell->batch;

        for (unsigned second = 0; second < 60; second++) {
            batch->now_ns += UINT64_C(1000000000);
            by_batch_round(batch);
        }
    }
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(by_shell_silent(wires.shell, i), star_host_ip(i));
    assert_int_equal(by_shell_counters(wires.shell)->batch.arp_silent, 4); /* each is reported once */
    wires_close(&wires);
}

static void each_worker_does_its_part_of_one_tree(void **state)
{
    (void)state;
    open_star(4, 1, 256, NULL);
    run(1, 1024);
    wires_stop(&wires);
    for (unsigned w = 0; w < 4; w++) {
        struct by_shell *shell = wires.shell->workers->worker[w].shell;

        assert_int_equal(by_engine_counters(shell->engine)->complete, 1024 / 4);
    }
    assert_int_equal(by_shell_engine_counters(wires.shell)->complete, 1024);
    assert_true(by_shell_counters(wires.shell)->handed > 0); /* if steered, datagrams of credits */
    wires_close(&wires);
}

/* A window of 1 has two banks, thus two workers. */
static void entries_with_small_windows_are_spread(void **state)
{
    (void)state;
    for (uint16_t window = 1; window <= 4; window *= 2) {
        unsigned busy = 0;

        open_star(4, 1, window, NULL);
        run(1, 200);
        wires_stop(&wires);
        assert_int_equal(wires.wrong, 0);
        for (unsigned w = 0; w < 4; w++)
            busy += by_engine_counters(wires.shell->workers->worker[w].shell->engine)->complete > 0;
        assert_int_equal(busy, window == 1 ? 2 : 4);
        wires_close(&wires);
    }
}

/* The job begins without a share. Its first one is pushed while chunks flow; then all workers hold
 * back what exceeds it, and the counts of all are summed. */
static void a_first_share_is_enforced_by_all_workers(void **state)
{
    const struct star star = {.hosts = 4, .trees = 1, .window = 256, .payload_max = 256, .mtu = 1500};
    struct by_engine_share share, one;

    (void)state;
    for (unsigned workers = 1; workers <= 4; workers *= 2) {
        uint64_t charged = 0;

        wires_open(&wires, &star, workers, queues, NULL);
        wires.strays = strays;
        wires_load(&wires, STAR_GEN);
        wires_start(&wires);
        run(1, 256);
        wires.rate = 4000;
        wires_load(&wires, STAR_GEN);
        run(1, 768);
        wires_stop(&wires);
        assert_int_equal(wires.wrong, 0);
        assert_int_equal(by_shell_share(wires.shell, 1, &share), 0);
        for (unsigned w = 0; w < workers; w++) {
            struct by_shell *shell = workers > 1 ? wires.shell->workers->worker[w].shell : wires.shell;

            assert_int_equal(by_engine_share(shell->engine, 1, &one), 0);
            assert_true(one.rx_bytes > 0 && one.held > 0);
            charged += one.rx_bytes;
        }
        assert_true(share.rx_bytes == charged);
        assert_true(share.rx_bytes >= 4 * 512 * 256);
        wires_close(&wires);
    }
}

/* The counters of a moment, as the control channel reads them. */
static void read_counters(void *context)
{
    struct by_engine_counters *counters = context;
    struct by_dp_port_counters port;
    struct by_bank_view view;
    struct by_engine_share share;

    *counters = *by_shell_engine_counters(wires.shell);
    (void)by_shell_oldest(wires.shell, 0, &view);
    (void)by_shell_bank(wires.shell, 0, 3, 1, &view);
    (void)by_shell_share(wires.shell, 1, &share);
    by_shell_port_read(wires.shell, 1, &port);
}

static void tables_change_and_counters_are_read_while_chunks_flow(void **state)
{
    uint16_t gen = STAR_GEN;

    (void)state;
    for (unsigned workers = 2; workers <= 8; workers *= 2) {
        struct by_engine_counters before = {0}, after;
        uint32_t chunks = 0;

        open_star(workers, 2, 64, &faults);
        for (unsigned round = 0; round < 40; round++) {
            bool renewed = round % 3 == 2;

            wires.rate = round % 2 * 12500000; /* half of the tables enforce shares */
            gen = round == 0 ? STAR_GEN : (uint16_t)(gen + renewed);
            wires_load(&wires, gen); /* new, or the same table again while its chunks are open */
            chunks = renewed ? 50 : chunks + 50;
            run(2, chunks);
            wires_ask(&wires, read_counters, &after);
            assert_true(after.complete >= before.complete + 100);
            before = after;
        }
        close_star();
    }
}

/* A worker that sleeps is at its gate, and wakes for frames. */
static void idle_workers_sleep_and_are_woken(void **state)
{
    struct by_engine_counters counters;

    (void)state;
    open_star(4, 1, 64, NULL);
    for (unsigned round = 1; round <= 20; round++) {
        const struct timespec nap = {.tv_nsec = 5000000};

        nanosleep(&nap, NULL);
        wires_ask(&wires, read_counters, &counters);
        run(1, 8 * round);
    }
    wires_stop(&wires);
    assert_true(by_shell_counters(wires.shell)->batch.sleeps > 0);
    wires_close(&wires);
}

/* The pulse is that of the worker that has not moved for the longest time. */
static void the_pulse_stands_still_when_one_worker_does(void **state)
{
    uint64_t pulse, next;

    (void)state;
    open_star(3, 1, 64, NULL);
    run(1, 64); /* each worker's loop has run */
    wires_stop(&wires);
    pulse = by_shell_pulse(wires.shell);
    for (unsigned i = 0; i < 3; i++) {
        for (unsigned w = 0; w < 3; w++)
            if (w != 1)
                wires.shell->workers->worker[w].shell->pulse += 4;
        pulse = i == 0 ? by_shell_pulse(wires.shell) : pulse;
        assert_int_equal(by_shell_pulse(wires.shell), pulse);
        assert_int_equal(pulse >> BY_PULSE_WORKER & (BY_WORKERS_MAX - 1), 1);
    }
    wires.shell->workers->worker[1].shell->pulse += 4;
    next = by_shell_pulse(wires.shell);
    assert_true(next >> BY_PULSE_BITS > pulse >> BY_PULSE_BITS);
    wires_close(&wires);
}

/* A frame in the queue of its lane's worker is not handed over, nor is a result. */
static void steered_frames_are_not_handed_over(void **state)
{
    const struct star star = {.hosts = 4, .trees = 3, .window = 64, .payload_max = 256, .mtu = 1500};
    struct by_dp_port_counters counters;
    uint64_t sent = 0;

    (void)state;
    for (unsigned workers = 2; workers <= 8; workers *= 2) {
        wires_open(&wires, &star, workers, true, NULL);
        wires_load(&wires, STAR_GEN);
        wires_start(&wires);
        run(3, CHUNKS / 2);
        wires_stop(&wires);
        assert_int_equal(wires.wrong, 0);
        assert_int_equal(by_shell_counters(wires.shell)->handed, 0);
        for (unsigned i = 0; i < 4; i++) {
            const struct by_port *port = by_shell_port(wires.shell, i);

            assert_int_equal(port->rx_queues, workers);
            assert_int_equal(port->tx_queues, workers);
            by_shell_port_read(wires.shell, i, &counters);
            assert_in_range(counters.rx_packets, 3 * CHUNKS / 2, UINT32_MAX);
            sent = counters.tx_packets;
            assert_in_range(sent, 3 * CHUNKS / 2, UINT32_MAX);
        }
        wires_close(&wires);
    }
}

static int with_queues(void **state)
{
    (void)state;
    queues = true;
    strays = false;
    return 0;
}

static int with_strays(void **state)
{
    (void)state;
    queues = strays = true;
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_sums_are_right_with_any_number_of_workers),
        cmocka_unit_test(all_sums_are_right_under_faults),
        cmocka_unit_test(all_workers_learn_mac_addresses),
        cmocka_unit_test(a_silent_neighbour_is_named_with_any_number_of_workers),
        cmocka_unit_test(steered_frames_are_not_handed_over),
        cmocka_unit_test(each_worker_does_its_part_of_one_tree),
        cmocka_unit_test(entries_with_small_windows_are_spread),
        cmocka_unit_test(a_first_share_is_enforced_by_all_workers),
        cmocka_unit_test(tables_change_and_counters_are_read_while_chunks_flow),
        cmocka_unit_test(idle_workers_sleep_and_are_woken),
        cmocka_unit_test(the_pulse_stands_still_when_one_worker_does),
    };

    return cmocka_run_group_tests_name("one queue", tests, memory_start, NULL) +
           cmocka_run_group_tests_name("steered", tests, with_queues, NULL) +
           cmocka_run_group_tests_name("astray", tests, with_strays, memory_stop);
}
