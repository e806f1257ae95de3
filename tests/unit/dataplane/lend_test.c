/*
 * Ports whose drivers copy each frame before their send call returns: results leave from the
 * engine's memory, in order, also where a call takes fewer than there are.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/dataplane/memory.h"

#define HOSTS 4u

static const struct star star = {.hosts = HOSTS, .trees = 1, .window = 4, .payload_max = 64, .mtu = 1500};

/* A driver that copies each frame, of which it takes `room` in a call. */
static uint16_t room_of_call;
static const struct by_port_ops *below;
static struct rte_mempool *copies;

static uint16_t send_copies(struct by_port *port, struct rte_mbuf **frames, uint16_t count)
{
    uint16_t taken = count < room_of_call ? count : room_of_call;

    for (uint16_t i = 0; i < taken; i++) {
        struct rte_mbuf *copy = rte_pktmbuf_copy(frames[i], copies, 0, UINT32_MAX);

        assert_non_null(copy);
        assert_int_equal(below->send(port, &copy, 1), 1);
        rte_pktmbuf_free(frames[i]);
    }
    return taken;
}

/* A shell whose ports all have such a driver. */
static struct by_shell *copying_shell(void)
{
    static struct by_port_ops ops;
    const struct by_shell_config config = {
        .slot_count = 256, .entry_count = 16, .relay_count = 16, .image_bytes_max = 1 << 16};
    struct by_shell *shell = memory_shell(HOSTS);

    below = shell->ports[0].ops;
    copies = shell->frame_pool;
    ops = *below;
    ops.send = send_copies;
    for (unsigned host = 0; host < HOSTS; host++) {
        shell->ports[host].ops = &ops;
        shell->ports[host].copies = true;
        shell->ports[host].multi_segs = false;
    }
    by_shell_strip(shell);
    assert_int_equal(by_shell_equip(shell, &config), 0);
    shell->batch.engine = shell->engine;
    shell->batch.step_packets = BY_BATCH_ROUND;
    return shell;
}

static void a_port_that_copies_is_sent_results_from_the_engines_memory(void **state)
{
    struct by_shell *shell = copying_shell();
    uint8_t room[2048];

    (void)state;
    memory_load(shell, &star);
    for (unsigned calls = 0; calls < 3; calls++) {
        room_of_call = (uint16_t)(4 - calls); /* in the third call a port takes fewer than its results */
        for (uint32_t seq = 3 * calls; seq < 3 * calls + 3; seq++)
            memory_contribute(shell, &star, seq, HOSTS);
        by_shell_round(shell);
        for (uint32_t seq = 3 * calls; seq < 3 * calls + 3; seq++)
            for (unsigned host = 0; host < HOSTS; host++) {
                struct rte_mbuf *frame = memory_sent(shell, host);

                assert_non_null(frame);
                assert_int_equal(frame->nb_segs, 1);
                memory_check_result(&star, frame, host, seq, room);
                rte_pktmbuf_free(frame);
            }
        for (uint32_t seq = 3 * calls; seq < 3 * calls + 3; seq++)
            assert_int_equal(memory_references(shell, &star, seq), 0);
        assert_int_equal(memory_buffers(shell), BY_PORT_BURST); /* those that the shell keeps */
    }
    assert_int_equal(by_shell_counters(shell)->batch.tx_shared, 8 * HOSTS);
    assert_int_equal(by_shell_counters(shell)->batch.tx_copied, HOSTS);
    assert_int_equal(by_shell_port(shell, 0)->counters.tx_packets, 9);
    by_shell_close(shell);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_port_that_copies_is_sent_results_from_the_engines_memory),
    };

    return cmocka_run_group_tests(tests, memory_start, memory_stop);
}
