/* The packet loop of a switch that uses all of its ports, also where the table names more: a step
 * of the engine that stops because its outputs are full, and ports behind the last one. The packets
 * come without frames. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "offload/base/bytes.h"
#include "offload/reduce/reduce.h"
#include "offload/shell/batch.h"
#include "offload/table/image.h"
#include "tests/unit/firmware/star.h"

#define CHUNKS    64u
#define COUNT     4u
#define FRAME_MAX 256u
#define MORE      2u /* ports of the table behind those of the switch */

static struct {
    struct by_engine *engine;
    struct by_batch batch;
    uint8_t frame[BY_PORTS_MAX][CHUNKS][FRAME_MAX];
    uint32_t first, end;         /* ports that send all chunks in the next round */
    uint32_t sent[BY_PORTS_MAX]; /* results */
    unsigned requests;
} world;

static void *memory;

static uint32_t wide_receive(void *context, uint16_t port)
{
    const struct star *star = context;

    if (port < world.first || port >= world.end)
        return 0;
    for (uint32_t seq = 0; seq < CHUNKS; seq++) {
        uint8_t packet[FRAME_MAX], *frame = world.frame[port][seq];
        size_t bytes = star_contribution(star, port, 0, seq, COUNT, packet);

        by_batch_receive(&world.batch, port, NULL, frame, (uint32_t)star_frame(port, packet, bytes, frame));
    }
    return CHUNKS;
}

static void wide_drop(void *context, void **frames, uint32_t count)
{
    (void)context;
    for (uint32_t i = 0; i < count; i++)
        assert_null(frames[i]);
}

static bool wide_reply(void *context, uint16_t port, const uint8_t *frame, uint32_t bytes)
{
    (void)context;
    (void)frame;
    assert_in_range(port, 0, BY_PORTS_MAX - 1);
    assert_int_equal(bytes, BY_FRAME_HEADER_BYTES);
    world.requests++;
    return true;
}

static void wide_send(void *context, const struct by_tx *tx, uint32_t count)
{
    (void)context;
    for (uint32_t i = 0; i < count; i++) {
        assert_in_range(tx[i].port, 0, BY_PORTS_MAX - 1);
        assert_int_equal(tx[i].header[BY_HEADER_AT_TYPE], BY_TYPE_RESULT);
        assert_int_equal(by_get32(tx[i].header + BY_HEADER_AT_SEQ), world.sent[tx[i].port]);
        world.sent[tx[i].port]++;
        by_engine_release(world.engine, tx[i].ref);
    }
}

/* The batch calls no other operation in this test. */
static const struct by_batch_ops ops = {.receive = wide_receive,
                                        .data = NULL,
                                        .share = NULL,
                                        .drop = wide_drop,
                                        .make = NULL,
                                        .forward = NULL,
                                        .reply = wide_reply,
                                        .send = wide_send,
                                        .neighbour = NULL,
                                        .done = NULL};

/* A switch with all ports and the table of a star, which states the hosts' MAC addresses unless
 * they are `learned`. */
static void wide_open(const struct star *star, bool learned)
{
    const struct by_engine_config config = {.slot_count_max = 2 * CHUNKS,
                                            .payload_max = 64,
                                            .image_bytes_max = 65536,
                                            .entry_count_max = 1,
                                            .repair_interval_ns = 1000000000,
                                            .isa = by_isa_best(),
                                            .tx_max = BY_TX_MAX};
    size_t bytes = by_engine_size(&config), image_bytes;
    uint8_t *image = star_image(star, &image_bytes);
    struct by_image_fault fault;
    struct by_image_header header;
    struct by_image_entry entry;

    by_image_entry(image, 0, &entry);
    entry.sets = (uint8_t)by_image_sets(star->hosts);
    by_image_put_entry(image, 0, &entry);
    by_image_header(image, &header);
    header.slot_count = star->window * (1 + entry.sets);
    by_image_put_header(image, &header);
    for (uint32_t i = 0; learned && i < star->hosts; i++) {
        struct by_image_port port;

        by_image_port(image, i, &port);
        memset(port.peer_mac, 0, sizeof port.peer_mac);
        by_image_put_port(image, i, &port);
    }
    by_image_seal(image);
    memset(&world, 0, sizeof world);
    memory = aligned_alloc(64, (bytes + 63) / 64 * 64);
    assert_non_null(memory);
    assert_int_equal(by_engine_init(&world.engine, memory, bytes, &config), 0);
    by_batch_open(&world.batch, &ops, (void *)(uintptr_t)star, world.engine, BY_PORTS_MAX);
    world.batch.now_ns = 1000000;
    if (by_engine_stage(world.engine, image, image_bytes, &fault) != 0)
        fail_msg("%s %u: %s", fault.section, fault.index, fault.what);
    assert_int_equal(by_engine_commit(world.engine), 0);
    by_batch_address(&world.batch);
    free(image);
}

static void wide_close(void)
{
    by_batch_close(&world.batch);
    free(memory);
}

/* The contributions of the last host complete more chunks than the outputs of a step hold. */
static void no_packet_is_lost_where_the_outputs_of_a_step_are_full(void **state)
{
    const struct star star = {
        .hosts = BY_PORTS_MAX, .trees = 1, .window = CHUNKS, .payload_max = 64, .mtu = 1500};

    (void)state;
    wide_open(&star, false);
    world.batch.step_packets = CHUNKS;
    world.end = BY_PORTS_MAX - 1;
    assert_int_equal(by_batch_round(&world.batch), CHUNKS * (BY_PORTS_MAX - 1));
    world.first = world.end++;
    assert_int_equal(by_batch_round(&world.batch), CHUNKS);
    for (uint32_t port = 0; port < BY_PORTS_MAX; port++)
        assert_int_equal(world.sent[port], CHUNKS);
    assert_int_equal(by_engine_counters(world.engine)->contrib, CHUNKS * BY_PORTS_MAX);
    assert_int_equal(world.batch.counters.tx_no_port, 0);
    wide_close();
}

static void ports_behind_the_last_are_neither_used_nor_asked(void **state)
{
    const struct star star = {
        .hosts = BY_PORTS_MAX + MORE, .trees = 1, .window = CHUNKS, .payload_max = 64, .mtu = 1500};
    struct by_lldp told = {.source = {2, 0, 0, 0, 0, 1}, .node = "host0", .port = "eth0", .ttl_s = 5};
    uint8_t *frame = world.frame[0][0];
    unsigned rounds = 0;

    (void)state;
    wide_open(&star, true);
    assert_int_equal(world.batch.neighbours.count, BY_PORTS_MAX + MORE);
    by_batch_receive(&world.batch, 0, NULL, frame, (uint32_t)by_lldp_encode(&told, frame));
    by_batch_address(&world.batch); /* what the first port has heard remains */
    assert_non_null(by_batch_neighbour(&world.batch, 0));
    assert_memory_equal(by_batch_neighbour(&world.batch, 0), &told, sizeof told);
    while (world.batch.neighbours.due_ns <= world.batch.now_ns && rounds++ < 100)
        by_batch_round(&world.batch);
    assert_int_equal(world.requests, BY_PORTS_MAX);
    assert_int_equal(world.batch.counters.arp_requests, BY_PORTS_MAX);
    assert_int_equal(world.batch.counters.tx_no_memory, 0);
    wide_close();
}

/* A packet for a receiver at another UDP port is relayed unless it is for one of the own ports. */
static void all_ports_are_searched_for_the_receiver_of_a_packet(void **state)
{
    const struct star star = {
        .hosts = BY_PORTS_MAX, .trees = 1, .window = CHUNKS, .payload_max = 64, .mtu = 1500};

    (void)state;
    wide_open(&star, false);
    for (uint32_t i = 0; i <= BY_PORTS_MAX; i++) {
        struct by_frame fields = {.src_ip = star_host_ip(0),
                                  .dst_ip = star_port_ip(i),
                                  .src_port = BY_UDP_PORT,
                                  .dst_port = STAR_RELAYED_PORT,
                                  .bytes = BY_WIRE_HEADER_BYTES};
        uint8_t *frame = world.frame[0][0];

        star_mac(star_port_ip(0), fields.dst_mac);
        by_frame_build(&fields, frame);
        by_batch_receive(&world.batch, 0, NULL, frame, BY_FRAME_HEADER_BYTES + BY_WIRE_HEADER_BYTES);
    }
    assert_int_equal(world.batch.counters.rx_not_ours, BY_PORTS_MAX);
    assert_int_equal(world.batch.count, 1); /* the last one, for the engine */
    wide_close();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_packet_is_lost_where_the_outputs_of_a_step_are_full),
        cmocka_unit_test(ports_behind_the_last_are_neither_used_nor_asked),
        cmocka_unit_test(all_ports_are_searched_for_the_receiver_of_a_packet),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
