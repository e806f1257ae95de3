/*
 * The shell on memory ports. A result for many children is one payload in the engine's bank, sent
 * by reference. A port that does not support chains gets copies. A relayed packet leaves in the
 * buffer in which it arrived. Other packets are counted. Nothing leaks after any failure.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <rte_ethdev.h>

#include "offload/base/bytes.h"
#include "offload/base/crc32c.h"
#include "offload/wire/datagram.h"
#include "tests/unit/dataplane/memory.h"

#define HOSTS   4u
#define COUNT   MEMORY_COUNT
#define PAYLOAD (4u * COUNT)

static const struct star star = {.hosts = HOSTS, .trees = 1, .window = 4, .payload_max = 64, .mtu = 1500};

static void a_result_for_many_children_is_one_payload(void **state)
{
    struct by_shell *shell = memory_shell(HOSTS);
    struct rte_mbuf *frames[HOSTS];
    uint8_t room[2048];

    (void)state;
    memory_load(shell, &star);
    memory_contribute(shell, &star, 0, HOSTS);
    assert_int_equal(by_shell_round(shell), HOSTS);
    for (unsigned host = 0; host < HOSTS; host++) {
        frames[host] = memory_sent(shell, host);
        assert_non_null(frames[host]);
        assert_int_equal(frames[host]->nb_segs, 2);
        memory_check_result(&star, frames[host], host, 0, room);
        assert_ptr_equal(frames[host]->next, frames[0]->next);
        assert_null(memory_sent(shell, host));
    }
    assert_in_range((uintptr_t)rte_pktmbuf_mtod(frames[0]->next, uint8_t *), (uintptr_t)shell->engine_memory,
                    (uintptr_t)shell->engine_memory + shell->engine_bytes - PAYLOAD);
    assert_int_equal(rte_mbuf_refcnt_read(frames[0]->next), HOSTS);
    for (unsigned host = 0; host < HOSTS; host++) {
        assert_int_equal(memory_references(shell, &star, 0),
                         HOSTS); /* released together with the last frame */
        rte_pktmbuf_free(frames[host]);
    }
    assert_int_equal(memory_references(shell, &star, 0), 0);
    assert_int_equal(memory_buffers(shell), 0);
    assert_int_equal(by_shell_counters(shell)->batch.tx_shared, HOSTS);
    assert_int_equal(by_shell_counters(shell)->batch.tx_copied, 0);
    by_shell_close(shell);
}

static void ports_that_take_no_chains_get_copies_beside_those_that_do(void **state)
{
    struct by_shell *shell = memory_shell(HOSTS);
    uint8_t room[2048];

    (void)state;
    memory_load(shell, &star);
    shell->ports[1].multi_segs = false;
    shell->ports[2].multi_segs = false;
    memory_contribute(shell, &star, 0, HOSTS);
    by_shell_round(shell);
    for (unsigned host = 0; host < HOSTS; host++) {
        struct rte_mbuf *frame = memory_sent(shell, host);

        assert_non_null(frame);
        assert_int_equal(frame->nb_segs, shell->ports[host].multi_segs ? 2 : 1);
        memory_check_result(&star, frame, host, 0, room);
        rte_pktmbuf_free(frame);
    }
    assert_int_equal(memory_references(shell, &star, 0), 0);
    assert_int_equal(memory_buffers(shell), 0);
    assert_int_equal(by_shell_counters(shell)->batch.tx_shared, 2);
    assert_int_equal(by_shell_counters(shell)->batch.tx_copied, 2);
    by_shell_close(shell);
}

/* With an empty pool a chunk completes and its results are lost: they are counted, nothing leaks,
 * and a duplicate retrieves them. */
static void without_buffers_results_are_dropped_and_counted(void **state)
{
    struct by_shell *shell = memory_shell(HOSTS);
    struct rte_mempool *pools[] = {shell->header_pool, shell->share_pool};
    uint8_t room[2048];

    (void)state;
    memory_load(shell, &star);
    for (unsigned i = 0; i < 2; i++) {
        struct rte_mbuf *hoard[16384];
        unsigned count = 0, got = 0;

        while (count < 16384 && (hoard[count] = rte_pktmbuf_alloc(pools[i])))
            count++;
        memory_contribute(shell, &star, i, HOSTS);
        by_shell_round(shell);
        for (unsigned host = 0; host < HOSTS; host++) {
            struct rte_mbuf *frame = memory_sent(shell, host);

            got += frame != NULL;
            rte_pktmbuf_free(frame);
        }
        /* Without segments a copy in a frame's buffer replaces them. Without headers nothing can be
         * sent. */
        assert_int_equal(got, i == 0 ? 0 : HOSTS);
        for (unsigned k = 0; k < count; k++)
            rte_pktmbuf_free(hoard[k]);
        assert_int_equal(memory_references(shell, &star, i), 0);
        assert_int_equal(memory_buffers(shell), 0);
    }
    assert_int_equal(by_shell_counters(shell)->batch.tx_no_memory, HOSTS);
    memory_contribute(shell, &star, 0, HOSTS);
    by_shell_round(shell);
    for (unsigned host = 0; host < HOSTS; host++) {
        struct rte_mbuf *frame = memory_sent(shell, host);

        assert_non_null(frame);
        memory_check_result(&star, frame, host, 0, room);
        rte_pktmbuf_free(frame);
    }
    assert_int_equal(memory_buffers(shell), 0);
    by_shell_close(shell);
}

/* An image with one entry below a parent: hosts 0 and 1 are its children, the parent is where host
 * 2 would be. */
static void load_inner(struct by_shell *shell)
{
    struct by_image_header header = {
        .kind = BY_NODE_SWITCH, .slot_count = 4, .payload_max = 64, .name = "inner"};
    struct by_image_job job = {.job = STAR_JOB,
                               .gen = STAR_GEN,
                               .rank_count = 4,
                               .rank = BY_RANK_NONE,
                               .tree_count = 1,
                               .udp_port = BY_UDP_PORT};
    struct by_image_entry entry = {.job = STAR_JOB,
                                   .parent_port = 2,
                                   .parent_node = 3,
                                   .parent_ip = star_host_ip(2),
                                   .parent_udp_port = BY_UDP_PORT,
                                   .child_count = 2,
                                   .window = 4,
                                   .payload_max = 64,
                                   .nleaf = 2};
    struct by_image_fault fault = {0};
    uint8_t image[1024] = {0};

    header.count[BY_SECTION_PORT] = 3;
    header.count[BY_SECTION_JOB] = 1;
    header.count[BY_SECTION_ENTRY] = 1;
    header.count[BY_SECTION_CHILD] = 2;
    assert_true(by_image_bytes(header.count) <= sizeof image);
    by_image_put_header(image, &header);
    star_put_ports(&(struct star){.hosts = 3, .mtu = 1500}, image);
    by_image_put_job(image, 0, &job);
    by_image_put_entry(image, 0, &entry);
    for (unsigned i = 0; i < 2; i++) {
        struct by_image_child child = {.port = (uint16_t)i,
                                       .node = (uint16_t)(1 + i),
                                       .ip = star_host_ip(i),
                                       .udp_port = BY_UDP_PORT,
                                       .rank = (uint16_t)i};

        by_image_put_child(image, i, &child);
    }
    by_image_seal(image);
    assert_int_equal(by_engine_stage(by_shell_engine(shell), image, by_image_bytes(header.count), &fault), 0);
    assert_int_equal(by_shell_commit(shell), 0);
}

/* One round receives the parent's PROBE and its result. The sum goes up again and the result goes
 * down, both from one bank. */
static void a_sum_sent_again_and_its_result_keep_their_payloads_apart(void **state)
{
    struct by_shell *shell = memory_shell(3);
    struct by_header header;
    const uint8_t *payload;
    uint8_t packet[256], frame[256], room[2048];
    struct rte_mbuf *out;
    size_t bytes;

    (void)state;
    load_inner(shell);
    for (unsigned host = 0; host < 2; host++) {
        bytes = star_contribution(&star, host, 0, 0, COUNT, packet);
        memory_inject(shell, host, frame, star_frame(host, packet, bytes, frame));
    }
    by_shell_round(shell);
    rte_pktmbuf_free(memory_sent(shell, 2));
    /* The parent's value is that of host 3 alone. */
    bytes = star_contribution(&star, 3, 0, 0, COUNT, packet);
    by_header_decode(packet, bytes, &header, &payload);
    header.child = 0;
    header.type = BY_TYPE_PROBE;
    by_header_encode(&header, packet);
    memory_inject(shell, 2, frame, star_frame(2, packet, BY_WIRE_HEADER_BYTES, frame));
    header.type = BY_TYPE_RESULT;
    header.nleaf = 4;
    by_header_encode(&header, packet);
    memory_inject(shell, 2, frame, star_frame(2, packet, bytes, frame));
    by_shell_round(shell);
    assert_int_equal(by_engine_counters(by_shell_engine(shell))->repair_up, 1);
    rte_pktmbuf_free(memory_sent(shell, 2));
    for (unsigned host = 0; host < 2; host++) {
        const uint8_t *whole;

        out = memory_sent(shell, host);
        assert_non_null(out);
        whole = rte_pktmbuf_read(out, 0, out->pkt_len, room);
        assert_int_equal(by_header_decode(whole + BY_FRAME_HEADER_BYTES, out->pkt_len - BY_FRAME_HEADER_BYTES,
                                          &header, &payload),
                         PAYLOAD);
        assert_int_equal(header.type, BY_TYPE_RESULT);
        assert_memory_equal(payload, packet + BY_WIRE_HEADER_BYTES, PAYLOAD);
        rte_pktmbuf_free(out);
    }
    assert_int_equal(memory_buffers(shell), 0);
    by_shell_close(shell);
}

/* Loads a table with one relay; see star_relay_image. */
static void load_relay(struct by_shell *shell, uint32_t share, uint32_t rate)
{
    struct by_image_fault fault = {0};
    size_t bytes;
    uint8_t *image = star_relay_image(share, rate, &bytes);

    assert_int_equal(by_engine_stage(by_shell_engine(shell), image, bytes, &fault), 0);
    assert_int_equal(by_shell_commit(shell), 0);
    free(image);
}

static void a_relay_leaves_in_the_buffer_that_it_came_in(void **state)
{
    struct by_shell *shell = memory_shell(2);
    struct rte_mbuf *in, *out;
    uint8_t frame[256], mac[6];

    (void)state;
    load_relay(shell, 0, 0);
    in = memory_inject(shell, 0, frame, star_relayed(&star, frame));
    by_shell_round(shell);
    out = memory_sent(shell, 1);
    assert_ptr_equal(in, out);
    star_mac(star_host_ip(1), mac);
    assert_memory_equal(rte_pktmbuf_mtod(out, uint8_t *), mac, 6);
    star_mac(star_port_ip(1), mac);
    assert_memory_equal(rte_pktmbuf_mtod(out, uint8_t *) + 6, mac, 6);
    assert_memory_equal(rte_pktmbuf_mtod(out, uint8_t *) + 12, frame + 12, out->data_len - 12u);
    assert_int_equal(by_shell_counters(shell)->batch.tx_relayed, 1);
    rte_pktmbuf_free(out);
    assert_int_equal(memory_buffers(shell), 0);
    by_shell_close(shell);
}

/* Runs a round with a frame from host 0. Returns how many frames arrived at host 1, and frees
 * them. */
static unsigned pass(struct by_shell *shell, const uint8_t *frame, size_t bytes)
{
    struct rte_mbuf *out;
    unsigned count = 0;

    if (bytes > 0)
        memory_inject(shell, 0, frame, bytes);
    by_shell_round(shell);
    for (; (out = memory_sent(shell, 1)) != NULL; count++)
        rte_pktmbuf_free(out);
    return count;
}

static void what_waits_for_its_share_goes_on_when_it_is_due_and_what_has_no_room_is_not_charged(void **state)
{
    struct by_shell *shell = memory_shell(2);
    const struct by_engine_counters *counters = by_engine_counters(by_shell_engine(shell));
    const uint32_t room = 4, frames = 600;
    struct by_engine_share share;
    unsigned passed = 0;
    uint8_t frame[256];
    size_t bytes = star_relayed(&star, frame);

    (void)state;
    load_relay(shell, BY_SHARE_ONE, 1000);
    shell->batch.park.most = room;
    shell->batch.now_ns = 1000000000;
    for (unsigned i = 0; i < frames; i++)
        passed += pass(shell, frame, bytes);
    assert_true(passed > 300 && passed < frames - room);
    assert_int_equal(counters->hold, room);
    assert_int_equal(counters->drop_room, frames - room - passed);
    assert_int_equal(memory_buffers(shell), room);
    assert_int_equal(by_shell_counters(shell)->batch.tx_no_memory, 0);
    assert_int_equal(by_engine_share(by_shell_engine(shell), 1, &share), 0);
    assert_true(share.rx_bytes == (passed + room) * (bytes + 24) && share.dropped == counters->drop_room);
    shell->batch.now_ns += 1000000000;
    assert_int_equal(pass(shell, NULL, 0), room);
    assert_int_equal(memory_buffers(shell), 0);
    assert_int_equal(pass(shell, frame, bytes), 1);
    by_shell_close(shell);
}

static void an_arp_request_for_the_ports_address_is_answered(void **state)
{
    static const uint8_t head[] = {0x08, 0x06, 0, 1, 8, 0, 6, 4, 0, 1};
    struct by_shell *shell = memory_shell(HOSTS);
    uint8_t request[60] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, mac[6];
    const uint8_t *reply;
    struct rte_mbuf *frame;

    (void)state;
    star_mac(star_host_ip(2), request + 6);
    memcpy(request + 12, head, sizeof head);
    star_mac(star_host_ip(2), request + 22);
    by_put32(request + 28, star_host_ip(2));
    by_put32(request + 38, star_port_ip(2));
    memory_inject(shell, 2, request, sizeof request);
    by_shell_round(shell);
    assert_null(memory_sent(shell, 2)); /* no table, so no address */
    memory_load(shell, &star);
    memory_inject(shell, 2, request, sizeof request);
    by_shell_round(shell);
    frame = memory_sent(shell, 2);
    assert_non_null(frame);
    reply = rte_pktmbuf_mtod(frame, const uint8_t *);
    star_mac(star_port_ip(2), mac);
    assert_memory_equal(reply + 22, mac, 6);
    assert_int_equal(by_get32(reply + 28), star_port_ip(2));
    assert_int_equal(by_get16(reply + 20), 2);
    rte_pktmbuf_free(frame);
    by_put32(request + 38, star_port_ip(3));
    memory_inject(shell, 2, request, sizeof request);
    by_shell_round(shell);
    assert_null(memory_sent(shell, 2));
    assert_int_equal(by_shell_counters(shell)->batch.arp_replies, 1);
    assert_int_equal(memory_buffers(shell), 0);
    by_shell_close(shell);
}

static void a_port_counts_whole_frames(void **state)
{
    struct by_shell *shell = memory_shell(HOSTS);
    struct by_dp_port_counters counters;

    (void)state;
    memory_load(shell, &star);
    memory_contribute(shell, &star, 0, HOSTS);
    by_shell_round(shell);
    for (unsigned host = 0; host < HOSTS; host++) {
        by_port_read(by_shell_port(shell, host), &counters);
        assert_int_equal(counters.rx_packets, 1);
        assert_int_equal(counters.rx_bytes, BY_PORT_FRAME_OVERHEAD + PAYLOAD);
        assert_int_equal(counters.tx_packets, 1);
        assert_int_equal(counters.tx_bytes, BY_PORT_FRAME_OVERHEAD + PAYLOAD);
        rte_pktmbuf_free(memory_sent(shell, host));
    }
    by_shell_close(shell);
}

static void before_a_table_nothing_is_answered(void **state)
{
    struct by_shell *shell = memory_shell(HOSTS);

    (void)state;
    memory_contribute(shell, &star, 0, HOSTS);
    by_shell_round(shell);
    for (unsigned host = 0; host < HOSTS; host++)
        assert_null(memory_sent(shell, host));
    assert_int_equal(by_shell_counters(shell)->batch.rx_unaddressed, HOSTS);
    assert_int_equal(memory_buffers(shell), 0);
    by_shell_close(shell);
}

static void a_wave_of_chunks_over_the_batch_is_served_in_full(void **state)
{
    struct by_shell *shell = memory_shell(HOSTS);
    uint8_t room[2048];
    unsigned results = 0;

    (void)state;
    memory_load(shell, &star);
    for (uint32_t base = 0; base < 400; base += star.window) {
        for (uint32_t seq = base; seq < base + star.window; seq++)
            memory_contribute(shell, &star, seq, HOSTS);
        by_shell_round(shell);
        for (unsigned host = 0; host < HOSTS; host++) {
            for (uint32_t seq = base; seq < base + star.window; seq++) {
                struct rte_mbuf *frame = memory_sent(shell, host);

                assert_non_null(frame);
                memory_check_result(&star, frame, host, seq, room);
                rte_pktmbuf_free(frame);
                results++;
            }
        }
    }
    assert_int_equal(results, 400 * HOSTS);
    assert_int_equal(memory_buffers(shell), 0);
    by_shell_close(shell);
}

/* The source of a broadcast gets acknowledgements, which share a frame; the others get data. */
static void acknowledgements_of_one_tree_share_a_frame(void **state)
{
    struct by_shell *shell = memory_shell(HOSTS);
    unsigned seen = 0, frames = 0;
    struct rte_mbuf *frame;
    struct by_frame fields;

    (void)state;
    memory_load(shell, &star);
    for (uint32_t seq = 0; seq < star.window; seq++)
        for (unsigned host = 0; host < HOSTS; host++) {
            uint8_t packet[256], whole[256];
            size_t bytes = star_contribution(&star, host, 0, seq, COUNT, packet);

            if (host == 0) {
                packet[2] |= BY_FLAG_ACKONLY;
                by_put64(packet + 32, by_crc32c(0, packet, 32));
            }
            memory_inject(shell, host, whole, star_frame(host, packet, bytes, whole));
        }
    by_shell_round(shell);
    while ((frame = memory_sent(shell, 0)) != NULL) {
        assert_int_equal(frame->nb_segs, 1);
        assert_int_equal(by_frame_parse(rte_pktmbuf_mtod(frame, uint8_t *), frame->pkt_len, &fields), 0);
        for (uint16_t left = fields.bytes, bytes; left > 0; left -= bytes, fields.data += bytes) {
            struct by_header header;
            const uint8_t *payload;

            bytes = by_datagram_first(fields.data, left);
            assert_int_equal(by_header_decode(fields.data, bytes, &header, &payload), 0);
            assert_int_equal(header.seq, seen);
            seen++;
        }
        rte_pktmbuf_free(frame);
        frames++;
    }
    assert_int_equal(seen, star.window);
    assert_int_equal(frames, 1);
    for (unsigned host = 1; host < HOSTS; host++)
        for (uint32_t seq = 0; seq < star.window; seq++) {
            uint8_t room[2048];

            frame = memory_sent(shell, host);
            assert_non_null(frame);
            memory_check_result(&star, frame, host, seq, room);
            rte_pktmbuf_free(frame);
        }
    assert_int_equal(memory_buffers(shell), 0);
    by_shell_close(shell);
}

/* The source of every other chunk gets all sums before the acknowledgements, which would otherwise
 * interrupt the GSO batch. */
static void acknowledgements_go_behind_the_results_of_a_round(void **state)
{
    struct by_shell *shell = memory_shell(HOSTS);
    struct rte_mbuf *frame;
    struct by_frame fields;
    struct by_header header;
    const uint8_t *payload;

    (void)state;
    memory_load(shell, &star);
    for (uint32_t seq = 0; seq < star.window; seq++)
        for (unsigned host = 0; host < HOSTS; host++) {
            uint8_t packet[256], whole[256];
            size_t bytes = star_contribution(&star, host, 0, seq, COUNT, packet);

            if (host == 0 && seq % 2 == 0) {
                packet[2] |= BY_FLAG_ACKONLY;
                by_put64(packet + 32, by_crc32c(0, packet, 32));
            }
            memory_inject(shell, host, whole, star_frame(host, packet, bytes, whole));
        }
    by_shell_round(shell);
    for (uint32_t seq = 1; seq < star.window; seq += 2) {
        uint8_t room[2048];

        frame = memory_sent(shell, 0);
        assert_non_null(frame);
        memory_check_result(&star, frame, 0, seq, room);
        rte_pktmbuf_free(frame);
    }
    frame = memory_sent(shell, 0);
    assert_non_null(frame);
    assert_int_equal(by_frame_parse(rte_pktmbuf_mtod(frame, uint8_t *), frame->pkt_len, &fields), 0);
    assert_int_equal(
        by_header_decode(fields.data, by_datagram_first(fields.data, fields.bytes), &header, &payload), 0);
    assert_int_equal(header.seq, 0);
    rte_pktmbuf_free(frame);
    assert_null(memory_sent(shell, 0));
    for (unsigned host = 1; host < HOSTS; host++)
        while ((frame = memory_sent(shell, host)) != NULL)
            rte_pktmbuf_free(frame);
    assert_int_equal(memory_buffers(shell), 0);
    by_shell_close(shell);
}

/* A driver releases packets only when it needs their descriptors: here, never. Chunks start in
 * spare buffers; when the driver holds as many payloads as there are spare buffers, results are
 * copied. No chunk is refused, and no payload changes. */
static void packets_that_the_driver_keeps_cost_copies_but_no_chunk(void **state)
{
    const uint32_t chunks = 2200;
    struct by_shell *shell = memory_shell(HOSTS);
    struct rte_mbuf **kept = calloc((size_t)chunks * HOSTS, sizeof(struct rte_mbuf *));
    const uint32_t spares = shell->share_pool->size;
    uint8_t room[2048];

    (void)state;
    assert_non_null(kept);
    assert_true(spares < chunks);
    memory_load(shell, &star);
    for (uint32_t seq = 0; seq < chunks; seq++) {
        memory_contribute(shell, &star, seq, HOSTS);
        by_shell_round(shell);
        for (unsigned host = 0; host < HOSTS; host++) {
            kept[seq * HOSTS + host] = memory_sent(shell, host);
            assert_non_null(kept[seq * HOSTS + host]);
        }
    }
    assert_int_equal(by_engine_counters(by_shell_engine(shell))->drop_busy, 0);
    assert_in_range(by_engine_counters(by_shell_engine(shell))->spare, 1, spares);
    assert_int_equal(by_shell_counters(shell)->batch.tx_shared, spares * HOSTS);
    assert_int_equal(by_shell_counters(shell)->batch.tx_copied, (chunks - spares) * HOSTS);
    for (uint32_t i = 0; i < chunks * HOSTS; i++) {
        memory_check_result(&star, kept[i], i % HOSTS, i / HOSTS, room);
        rte_pktmbuf_free(kept[i]);
    }
    assert_int_equal(memory_buffers(shell), 0);
    memory_contribute(shell, &star, chunks, HOSTS);
    by_shell_round(shell);
    for (unsigned host = 0; host < HOSTS; host++) {
        struct rte_mbuf *frame = memory_sent(shell, host);

        assert_non_null(frame);
        assert_int_equal(frame->nb_segs, 2);
        rte_pktmbuf_free(frame);
    }
    free(kept);
    by_shell_close(shell);
}

/* Some NICs split a jumbo frame over several buffers. */
static void a_frame_in_several_buffers_is_received_whole(void **state)
{
    struct by_shell *shell = memory_shell(HOSTS);
    uint8_t packet[256], frame[256], room[2048];
    size_t bytes = star_contribution(&star, 0, 0, 0, COUNT, packet);
    struct rte_mbuf *part[2], *out;
    size_t whole = star_frame(0, packet, bytes, frame), first = whole / 2 + 1;

    (void)state;
    memory_load(shell, &star);
    memory_contribute(shell, &star, 0, 0);
    assert_int_equal(rte_pktmbuf_alloc_bulk(shell->frame_pool, part, 2), 0);
    memcpy(rte_pktmbuf_append(part[0], (uint16_t)first), frame, first);
    memcpy(rte_pktmbuf_append(part[1], (uint16_t)(whole - first)), frame + first, whole - first);
    assert_int_equal(rte_pktmbuf_chain(part[0], part[1]), 0);
    assert_int_equal(rte_eth_tx_burst(by_shell_port(shell, 0)->id, 0, part, 1), 1);
    by_shell_round(shell);
    for (unsigned host = 0; host < HOSTS; host++) {
        out = memory_sent(shell, host);
        assert_non_null(out);
        memory_check_result(&star, out, host, 0, room);
        rte_pktmbuf_free(out);
    }
    assert_int_equal(memory_buffers(shell), 0);
    by_shell_close(shell);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_result_for_many_children_is_one_payload),
        cmocka_unit_test(ports_that_take_no_chains_get_copies_beside_those_that_do),
        cmocka_unit_test(without_buffers_results_are_dropped_and_counted),
        cmocka_unit_test(packets_that_the_driver_keeps_cost_copies_but_no_chunk),
        cmocka_unit_test(a_frame_in_several_buffers_is_received_whole),
        cmocka_unit_test(a_sum_sent_again_and_its_result_keep_their_payloads_apart),
        cmocka_unit_test(acknowledgements_of_one_tree_share_a_frame),
        cmocka_unit_test(acknowledgements_go_behind_the_results_of_a_round),
        cmocka_unit_test(a_relay_leaves_in_the_buffer_that_it_came_in),
        cmocka_unit_test(what_waits_for_its_share_goes_on_when_it_is_due_and_what_has_no_room_is_not_charged),
        cmocka_unit_test(an_arp_request_for_the_ports_address_is_answered),
        cmocka_unit_test(a_port_counts_whole_frames),
        cmocka_unit_test(before_a_table_nothing_is_answered),
        cmocka_unit_test(a_wave_of_chunks_over_the_batch_is_served_in_full),
    };

    return cmocka_run_group_tests(tests, memory_start, memory_stop);
}
