/* Implements memory.h. Frames that the switch sends on a ring port return to that port, so a test
 * takes them out after each round. */
#include "tests/unit/dataplane/memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <rte_ethdev.h>

#include "dataplane/eal.h"
#include "dataplane/say.h"

int memory_start(void **state)
{
    struct by_eal_config config = {.name = "unit", .no_huge = true};

    (void)state;
    by_say_name("unit");
    return by_eal_start(&config);
}

int memory_stop(void **state)
{
    (void)state;
    by_eal_stop();
    return 0;
}

struct by_shell *memory_shell(unsigned ports)
{
    static unsigned generation;
    static char names[BY_PORTS_MAX][32];
    struct by_port_spec specs[BY_PORTS_MAX];
    struct by_shell_config config = {.name = "unit",
                                     .ports = specs,
                                     .port_count = ports,
                                     .driver = BY_DRIVER_AUTO,
                                     .slot_count = 256,
                                     .payload_limit = BY_PAYLOAD_MAX,
                                     .entry_count = 16,
                                     .relay_count = 16,
                                     .image_bytes_max = 1 << 16,
                                     .control_fd = -1};
    struct by_shell *shell = NULL;

    generation++;
    for (unsigned i = 0; i < ports; i++) {
        snprintf(names[i], sizeof names[i], "net_ring_%u_%u", generation, i);
        specs[i] = (struct by_port_spec){.kind = BY_PORT_VDEV, .text = names[i]};
    }
    assert_int_equal(by_shell_open(&shell, &config), 0);
    return shell;
}

void memory_load(struct by_shell *shell, const struct star *star)
{
    struct by_image_fault fault = {0};
    size_t bytes;
    uint8_t *image = star_image(star, &bytes);

    assert_int_equal(by_engine_stage(by_shell_engine(shell), image, bytes, &fault), 0);
    assert_int_equal(by_shell_commit(shell), 0);
    free(image);
}

struct rte_mbuf *memory_inject(struct by_shell *shell, unsigned port, const uint8_t *frame, size_t bytes)
{
    struct rte_mbuf *mbuf = rte_pktmbuf_alloc(shell->frame_pool);

    assert_non_null(mbuf);
    memcpy(rte_pktmbuf_append(mbuf, (uint16_t)bytes), frame, bytes);
    assert_int_equal(rte_eth_tx_burst(by_shell_port(shell, port)->id, 0, &mbuf, 1), 1);
    return mbuf;
}

struct rte_mbuf *memory_sent(struct by_shell *shell, unsigned port)
{
    struct rte_mbuf *mbuf;

    return rte_eth_rx_burst(by_shell_port(shell, port)->id, 0, &mbuf, 1) == 1 ? mbuf : NULL;
}

void memory_contribute(struct by_shell *shell, const struct star *star, uint32_t seq, unsigned skip)
{
    for (unsigned host = 0; host < star->hosts; host++) {
        uint8_t packet[256], frame[256];
        size_t bytes = star_contribution(star, host, 0, seq, MEMORY_COUNT, packet);

        if (host != skip)
            memory_inject(shell, host, frame, star_frame(host, packet, bytes, frame));
    }
}

const uint8_t *memory_check_result(const struct star *star, struct rte_mbuf *frame, unsigned host,
                                   uint32_t seq, uint8_t room[2048])
{
    struct by_frame fields;
    struct by_header header;
    const uint8_t *payload;
    const uint8_t *whole = rte_pktmbuf_read(frame, 0, frame->pkt_len, room);

    assert_int_equal(by_frame_parse(whole, frame->pkt_len, &fields), 0);
    assert_int_equal(fields.dst_ip, star_host_ip(host));
    assert_int_equal(fields.src_ip, star_port_ip(host));
    assert_int_equal(by_header_decode(fields.data, fields.bytes, &header, &payload), 4 * MEMORY_COUNT);
    assert_int_equal(header.type, BY_TYPE_RESULT);
    assert_int_equal(header.child, host);
    assert_int_equal(header.seq, seq);
    for (unsigned k = 0; k < MEMORY_COUNT; k++) {
        int32_t value;

        memcpy(&value, payload + 4 * k, 4);
        assert_int_equal(value, star_sum(star, seq, k));
    }
    return payload;
}

unsigned memory_references(struct by_shell *shell, const struct star *star, uint32_t seq)
{
    struct by_bank_view view;

    assert_int_equal(
        by_engine_bank(by_shell_engine(shell), 0, seq % star->window, seq / star->window & 1, &view), 0);
    return view.refs;
}

unsigned memory_buffers(const struct by_shell *shell)
{
    return rte_mempool_in_use_count(shell->frame_pool) + rte_mempool_in_use_count(shell->header_pool) +
           rte_mempool_in_use_count(shell->share_pool);
}
