/*
 * Queues for workers: RSS, computed by DPDK's reference in software, delivers each lane to the
 * queue of its worker, whatever the addresses are; ports get as many queues as their devices have;
 * and what the other workers need in order to send by them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <rte_thash.h>

#include "dataplane/port_steer.h"
#include "dataplane/port_way.h"
#include "offload/base/prng.h"
#include "offload/wire/stripe.h"
#include "tests/unit/dataplane/memory.h"

/* The hash that a card computes of a frame. */
static uint32_t hash_of(const struct rte_eth_conf *config, struct by_prng *prng, uint16_t source_port)
{
    union rte_thash_tuple tuple = {.v4 = {.src_addr = (uint32_t)by_prng_next(prng),
                                          .dst_addr = (uint32_t)by_prng_next(prng),
                                          .sport = source_port,
                                          .dport = (uint16_t)by_prng_next(prng)}};

    return rte_softrss((uint32_t *)&tuple, RTE_THASH_V4_L4_LEN, config->rx_adv_conf.rss_conf.rss_key);
}

static void rss_delivers_each_lane_to_its_worker(void **state)
{
    const struct rte_eth_dev_info info = {.hash_key_size = 52};
    const struct by_port port = {.steer = BY_STEER_RSS};
    struct rte_eth_conf config = {0};
    struct by_prng prng = {3};
    uint8_t key[BY_STEER_KEY_BYTES];

    (void)state;
    by_port_steer_configure(&port, &info, key, &config);
    assert_int_equal(config.rxmode.mq_mode, RTE_ETH_MQ_RX_RSS);
    assert_int_equal(config.rx_adv_conf.rss_conf.rss_key_len, 52);
    for (unsigned workers = 2; workers <= BY_WORKERS_MAX; workers++)
        for (unsigned index = 0; index < 5; index++)
            for (uint32_t seq = 0; seq < 2 * BY_LANES * BY_LANE_CHUNKS; seq += BY_LANE_CHUNKS) {
                uint32_t tree = (uint32_t)by_prng_next(&prng), hash;
                uint32_t lane = by_lane(by_lane_first(tree), BY_LANES, BY_LANE_SHIFT, seq);

                hash = hash_of(&config, &prng, by_lane_port(tree, seq));
                for (unsigned places = 128; places <= 512; places *= 2) /* of the card's table */
                    assert_int_equal(by_steer_of_hash(index, hash % places, workers),
                                     by_steer_queue(index, by_lane_worker(lane, workers), workers));
                hash = hash_of(&config, &prng, by_tree_port(tree));
                assert_int_equal(by_steer_of_hash(index, hash % 128, workers), 0);
            }
}

static void each_worker_has_a_queue_of_its_own_and_the_owner_the_first(void **state)
{
    (void)state;
    for (unsigned workers = 1; workers <= BY_WORKERS_MAX; workers++)
        for (unsigned index = 0; index < 40; index++) {
            uint64_t seen = 0;

            assert_int_equal(by_steer_queue(index, by_steer_owner(index, workers), workers), 0);
            for (unsigned w = 0; w < workers; w++)
                seen |= UINT64_C(1) << by_steer_queue(index, w, workers);
            assert_int_equal(seen, (UINT64_C(2) << (workers - 1)) - 1);
        }
}

/* Opens a switch with workers on two devices. */
static struct by_shell *open_shell(const char *first, const char *second, unsigned workers, bool one_queue)
{
    const struct by_port_spec specs[] = {{BY_PORT_VDEV, first}, {BY_PORT_VDEV, second}};
    const struct by_shell_config config = {.name = "unit",
                                           .ports = specs,
                                           .port_count = 2,
                                           .driver = BY_DRIVER_AUTO,
                                           .slot_count = 256,
                                           .payload_limit = BY_PAYLOAD_MAX,
                                           .entry_count = 16,
                                           .relay_count = 16,
                                           .image_bytes_max = 1 << 16,
                                           .worker_count = workers,
                                           .one_queue = one_queue,
                                           .control_fd = -1};
    struct by_shell *shell = NULL;

    assert_int_equal(by_shell_open(&shell, &config), 0);
    return shell;
}

static void check_way(struct by_shell *shell, unsigned index, unsigned in, unsigned out, const char *text)
{
    struct by_port_way way;

    by_port_way(by_shell_port(shell, index), &way);
    assert_int_equal(way.rx_queues, in);
    assert_int_equal(way.tx_queues, out);
    assert_string_equal(way.steer, text);
}

static void a_port_has_a_queue_for_each_worker_if_its_device_has(void **state)
{
    struct by_shell *shell = open_shell("net_ring_way0", "net_null_way1", 16, false);

    (void)state;
    check_way(shell, 0, 16, 16, "queues chosen by senders");
    check_way(shell, 1, 16, 16, "queues chosen by senders");
    by_shell_close(shell);
    shell = open_shell("net_ring_way2", "net_null_way3", 17, false); /* net_ring has 16 */
    check_way(shell, 0, 1, 1, "frames handed over in bursts because of 17 workers, and 16 queues in, 16 out");
    check_way(shell, 1, 17, 17, "queues chosen by senders");
    by_shell_close(shell);
    shell = open_shell("net_ring_way4", "net_null_way5", 2, true);
    check_way(shell, 0, 1, 1, "frames handed over in bursts because of one queue");
    by_shell_close(shell);
    shell = open_shell("net_ring_way6", "net_null_way7", 1, false);
    check_way(shell, 0, 1, 1, "");
    by_shell_close(shell);
}

/* Results leave net_vhost from the memory of the engine that has summed them. */
static void each_worker_can_lend_results(void **state)
{
    char folder[] = "/tmp/steer_test_XXXXXX", devices[2][96], path[64];

    (void)state;
    assert_non_null(mkdtemp(folder));
    for (unsigned queues = 1; queues <= 2; queues++) {
        struct by_shell *shell;

        for (unsigned i = 0; i < 2; i++)
            snprintf(devices[i], sizeof devices[i], "net_vhost_s%u%u,iface=%s/%u,queues=%u", queues, i,
                     folder, i, queues);
        shell = open_shell(devices[0], devices[1], 2, false);
        for (unsigned w = 0; w < 2; w++) {
            struct by_shell *worker = shell->workers->worker[w].shell;

            for (unsigned i = 0; i < 2; i++) {
                bool sends = queues == 2 || by_workers_own(worker, i);

                assert_int_equal(worker->ports[i].copies, sends);
                assert_int_equal(by_workers_poll(worker, i), sends);
            }
            assert_true(worker->lends);
            assert_non_null(worker->lender.buffer[0]);
        }
        by_shell_close(shell);
    }
    for (unsigned i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/%u", folder, i);
        unlink(path);
    }
    rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rss_delivers_each_lane_to_its_worker),
        cmocka_unit_test(each_worker_has_a_queue_of_its_own_and_the_owner_the_first),
        cmocka_unit_test(a_port_has_a_queue_for_each_worker_if_its_device_has),
        cmocka_unit_test(each_worker_can_lend_results),
    };

    return cmocka_run_group_tests(tests, memory_start, memory_stop);
}
