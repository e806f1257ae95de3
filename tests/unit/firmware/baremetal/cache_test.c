/*
 * The drivers of the bare-metal image with devices that do not see the processor's caches: every
 * byte must arrive unchanged, whatever the cache does in between (model.h). SEED= replays a run.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "firmware/baremetal/console.h"
#include "firmware/baremetal/memory.h"
#include "firmware/baremetal/net.h"
#include "offload/base/bytes.h"
#include "offload/base/prng.h"
#include "tests/unit/firmware/baremetal/model.h"

/* Runs with consecutive seeds, each with a more or less active cache, and rounds of each
 * (count). */
#define RUNS        8u
#define ROUNDS      400u
#define FRAME_BYTES 1600u
#define BUFFERS     160u
/* Payloads that are being sent (count). */
#define PAYLOADS 32u
/* Queues of the console: control in and out, and the queues of its first line. */
enum { CONTROL_IN = 2, CONTROL_OUT = 3, LINE_IN = 4, LINE_OUT = 5 };

static struct by_prng prng;

static uint64_t seed(void)
{
    const char *text = getenv("SEED");

    return text ? strtoull(text, NULL, 10) : 20261121;
}

static void fill(uint8_t *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        bytes[i] = (uint8_t)by_prng_next(&prng);
}

/* ---- the parts of the engine and the agent that the drivers need */
static unsigned released;

void by_engine_release_all(struct by_engine *engine, uint32_t ref, uint32_t count)
{
    (void)engine;
    (void)ref;
    released += count;
}

void by_channel_init(struct by_channel *channel, struct by_guard *guard)
{
    channel->guard = guard;
    channel->have = 0;
}

uint64_t by_channel_wait_ns(const struct by_channel *channel, struct by_agent *agent)
{
    (void)channel;
    (void)agent;
    return 0;
}

/* Pieces that a client sends as soon as there is space, none of which ends a message (count). */
static unsigned flood;

/* Returns its input; nothing during a flood. */
int32_t by_channel_step(struct by_channel *channel, struct by_agent *agent, const uint8_t *data, size_t bytes,
                        size_t *used, uint8_t *out, size_t capacity)
{
    (void)channel;
    (void)agent;
    assert_true(bytes <= capacity);
    *used = bytes;
    if (flood > 0) {
        model_give(MODEL_CONSOLE, LINE_IN, data, bytes);
        flood--;
        return 0;
    }
    memcpy(out, data, bytes);
    return (int32_t)bytes;
}

void by_guard_open(struct by_guard *guard, const struct by_siphash_key *key, uint64_t boot_nonce,
                   uint16_t line)
{
    (void)guard;
    (void)key;
    (void)boot_nonce;
    (void)line;
}

/* ---- the network port */
struct port {
    struct by_metal_net *net;
    struct by_pool *pool;
    uint8_t *payload[PAYLOADS];
    unsigned sent, taken, released;
    uint8_t wanted[PAYLOADS][FRAME_BYTES];
    size_t wanted_bytes[PAYLOADS];
};

static void open_port(struct port *port)
{
    struct by_virtio device;

    memset(port, 0, sizeof *port);
    released = 0;
    port->pool = by_memory_take("pool", sizeof *port->pool);
    by_pool_open(port->pool, BUFFERS, FRAME_BYTES);
    assert_true(by_virtio_find(BY_VIRTIO_NET, 0, &device));
    port->net = by_memory_take("port", sizeof *port->net);
    by_net_open(port->net, 0, &device, port->pool, NULL);
    for (unsigned i = 0; i < PAYLOADS; i++)
        port->payload[i] = by_memory_take("payload", FRAME_BYTES);
}

/* Receives a frame from the device. */
static void receive_one(struct port *port)
{
    uint8_t frame[BY_NET_HEADER_BYTES + FRAME_BYTES] = {0};
    size_t bytes = 1 + by_prng_next(&prng) % FRAME_BYTES;
    uint16_t buffer;

    fill(frame + BY_NET_HEADER_BYTES, bytes);
    assert_true(model_give(MODEL_NET, 0, frame, BY_NET_HEADER_BYTES + bytes));
    assert_int_equal(by_net_receive(port->net, &buffer, 1), 1);
    assert_int_equal(port->pool->buffer[buffer].bytes, bytes);
    assert_memory_equal(by_pool_frame(port->pool, buffer), frame + BY_NET_HEADER_BYTES, bytes);
    if (by_prng_next(&prng) % 2) {
        fill(by_pool_frame(port->pool, buffer), bytes); /* the buffer may be overwritten */
        by_pool_drop(port->pool, buffer);
        return;
    }
    /* Relayed: sent from the buffer in which it arrived, with another address at the front. */
    fill(by_pool_frame(port->pool, buffer), bytes < 6 ? bytes : 6);
    port->wanted_bytes[port->sent % PAYLOADS] = bytes;
    memcpy(port->wanted[port->sent++ % PAYLOADS], by_pool_frame(port->pool, buffer), bytes);
    by_net_forward(port->net, buffer);
}

/* Sends headers with a payload chained to them. */
static void send_one(struct port *port)
{
    uint8_t *payload = port->payload[port->sent % PAYLOADS], *wanted = port->wanted[port->sent % PAYLOADS];
    uint8_t *head = by_net_head(port->net);
    size_t head_bytes = 1 + by_prng_next(&prng) % BY_NET_HEAD_BYTES, bytes = by_prng_next(&prng) % 1400;

    assert_non_null(head);
    fill(head, head_bytes);
    fill(payload, bytes);
    memcpy(wanted, head, head_bytes);
    memcpy(wanted + head_bytes, payload, bytes);
    port->wanted_bytes[port->sent++ % PAYLOADS] = head_bytes + bytes;
    port->released++;
    by_net_send(port->net, (uint32_t)head_bytes, payload, (uint32_t)bytes, 1, BY_BUFFER_NONE);
}

/* The device takes a sent frame. */
static void take_one(struct port *port)
{
    uint8_t frame[BY_NET_HEADER_BYTES + FRAME_BYTES];
    size_t bytes = model_take(MODEL_NET, 1, frame, sizeof frame), wanted;

    if (bytes == 0)
        return;
    wanted = port->wanted_bytes[port->taken % PAYLOADS];
    assert_int_equal(bytes, BY_NET_HEADER_BYTES + wanted);
    assert_memory_equal(frame + BY_NET_HEADER_BYTES, port->wanted[port->taken++ % PAYLOADS], wanted);
}

static void run_port(uint64_t at, bool is_coherent)
{
    static struct port port;

    prng.state = at;
    model_start(at, is_coherent);
    open_port(&port);
    for (unsigned i = 0; i < ROUNDS; i++) {
        unsigned what = (unsigned)by_prng_next(&prng) % 4;

        if (what == 0 && port.sent - port.taken < PAYLOADS)
            receive_one(&port);
        else if (what == 1 && port.sent - port.taken < PAYLOADS)
            send_one(&port);
        else if (what == 2)
            by_net_flush(port.net);
        else
            take_one(&port);
        by_net_reclaim(port.net);
        by_net_alert(port.net, i % 2 != 0);
        assert_int_equal(model_is_alerted(MODEL_NET, 0), i % 2);
    }
    by_net_flush(port.net);
    while (port.taken < port.sent)
        take_one(&port);
    by_net_reclaim(port.net);
    assert_true(port.sent > ROUNDS / 8);
    assert_int_equal(released, port.released);
    assert_int_equal(port.net->slot_free_count, port.net->slot_count);
}

static void frames_come_and_go_right_though_the_device_sees_no_cache(void **state)
{
    (void)state;
    print_message("SEED=%llu\n", (unsigned long long)seed());
    for (unsigned run = 0; run < RUNS; run++) {
        run_port(seed() + run, false);
        assert_true(model_cleans() > ROUNDS && model_drops() > ROUNDS);
    }
}

/* Writes `frame` with a tag to `tagged`; returns its bytes. */
static size_t tag(const uint8_t *frame, size_t bytes, uint16_t vlan, uint8_t *tagged)
{
    memcpy(tagged, frame, 12);
    by_put16(tagged + 12, 0x8100);
    by_put16(tagged + 14, vlan);
    memcpy(tagged + 16, frame + 12, bytes - 12);
    return bytes + 4;
}

/* The next frame that the device takes must be these bytes. */
static void takes(struct port *port, const uint8_t *wanted, size_t wanted_bytes)
{
    uint8_t frame[BY_NET_HEADER_BYTES + FRAME_BYTES];
    static const uint8_t zero[BY_NET_HEADER_BYTES];

    by_net_flush(port->net);
    assert_int_equal(model_take(MODEL_NET, 1, frame, sizeof frame), BY_NET_HEADER_BYTES + wanted_bytes);
    assert_memory_equal(frame, zero, sizeof zero);
    assert_memory_equal(frame + BY_NET_HEADER_BYTES, wanted, wanted_bytes);
    by_net_reclaim(port->net);
}

/* Receives a frame and removes its tag. Returns its buffer. */
static uint16_t receive_tagged(struct port *port, const uint8_t *frame, size_t bytes, uint16_t vlan,
                               bool belongs)
{
    uint8_t given[BY_NET_HEADER_BYTES + FRAME_BYTES] = {0};
    uint16_t buffer;

    memcpy(given + BY_NET_HEADER_BYTES, frame, bytes);
    assert_true(model_give(MODEL_NET, 0, given, BY_NET_HEADER_BYTES + bytes));
    assert_int_equal(by_net_receive(port->net, &buffer, 1), 1);
    assert_int_equal(by_net_untag(port->net, buffer, vlan), belongs);
    return buffer;
}

static void tags_of_a_vlan_are_written_and_removed(void **state)
{
    static struct port port;
    uint8_t frame[200], tagged[204], *head;
    uint16_t buffer;

    (void)state;
    for (unsigned coherent = 0; coherent < 2; coherent++) {
        prng.state = seed();
        model_start(seed(), coherent != 0);
        open_port(&port);
        fill(frame, sizeof frame);
        by_put16(frame + 12, 0x0800);
        tag(frame, sizeof frame, 7, tagged);

        buffer = receive_tagged(&port, tagged, sizeof tagged, 7, true);
        assert_int_equal(port.pool->buffer[buffer].bytes, sizeof frame);
        assert_memory_equal(by_pool_frame(port.pool, buffer), frame, sizeof frame);
        by_net_forward(port.net, buffer); /* to a port without a VLAN */
        takes(&port, frame, sizeof frame);

        port.net->vlan = 7;
        by_net_forward(port.net, receive_tagged(&port, tagged, sizeof tagged, 7, true));
        takes(&port, tagged, sizeof tagged);
        by_net_forward(port.net, receive_tagged(&port, frame, sizeof frame, 0, true));
        takes(&port, tagged, sizeof tagged);
        by_pool_drop(port.pool, receive_tagged(&port, tagged, sizeof tagged, 8, false));
        by_pool_drop(port.pool, receive_tagged(&port, tagged, sizeof tagged, 0, false));
        by_pool_drop(port.pool, receive_tagged(&port, frame, sizeof frame, 7, false));

        head = by_net_head(port.net);
        assert_non_null(head);
        memcpy(head, frame, 60);
        memcpy(port.payload[0], frame + 60, sizeof frame - 60);
        by_net_send(port.net, 60, port.payload[0], sizeof frame - 60, 1, BY_BUFFER_NONE);
        takes(&port, tagged, sizeof tagged);
    }
}

/* Descriptors 3 and 4 are in different cache lines. */
static void run_chain(uint64_t at)
{
    struct by_virtio device;
    struct by_virtio_ring *ring;
    uint8_t *pieces, got[64];

    model_start(at, false);
    assert_true(by_virtio_find(BY_VIRTIO_NET, 0, &device));
    ring = by_memory_take("a ring", sizeof *ring);
    pieces = by_memory_take("pieces", sizeof got);
    by_virtio_ring(&device, 1, ring);
    assert_false(model_is_alerted(MODEL_NET, 1));
    memcpy(pieces, "first and second", 16);
    by_cache_clean(pieces, 16);
    ring->descriptor[3] = (struct by_ring_descriptor){
        .address = (uintptr_t)pieces, .bytes = 6, .flags = BY_RING_NEXT, .next = 4};
    ring->descriptor[4] = (struct by_ring_descriptor){.address = (uintptr_t)pieces + 6, .bytes = 10};
    by_virtio_ring_offer(ring, 3);
    by_virtio_ring_publish(ring);
    assert_int_equal(model_take(MODEL_NET, 1, got, sizeof got), 16);
    assert_memory_equal(got, "first and second", 16);
}

static void a_chain_over_several_lines_is_seen_whole(void **state)
{
    (void)state;
    for (unsigned run = 0; run < RUNS; run++)
        run_chain(seed() + run);
}

static void frames_come_and_go_right_where_it_does(void **state)
{
    (void)state;
    run_port(seed(), true);
}

/* ---- the console */
static void tell(uint32_t port, uint8_t event)
{
    const uint8_t message[8] = {(uint8_t)port, 0, 0, 0, event, 0, 1, 0};

    assert_true(model_give(MODEL_CONSOLE, CONTROL_IN, message, sizeof message));
}

static void expect(const char *bytes)
{
    uint8_t message[8];

    assert_int_equal(model_take(MODEL_CONSOLE, CONTROL_OUT, message, sizeof message), sizeof message);
    assert_memory_equal(message, bytes, sizeof message);
}

static const uint8_t begin[] = {0, 0, 0, 1, 0x08, 0x01}; /* the beginning of a request */

/* Opens a console whose lines have clients. */
static struct by_console *open_console(uint64_t at)
{
    struct by_console *console;

    prng.state = at;
    model_start(at, false);
    console = by_memory_take("console", sizeof *console);
    assert_true(by_console_open(console, NULL, NULL));
    assert_int_equal(console->line_count, BY_CONSOLE_LINES);
    expect("\xff\xff\xff\xff\0\0\1\0");
    for (uint32_t port = 1; port <= BY_CONSOLE_LINES; port++) {
        tell(port, 1);
        by_console_serve(console);
        expect((const char[]){(char)port, 0, 0, 0, 3, 0, 1, 0});
        expect((const char[]){(char)port, 0, 0, 0, 6, 0, 1, 0});
        tell(port, 6);
        by_console_serve(console);
    }
    return console;
}

static void run_console(uint64_t at)
{
    struct by_console *console = open_console(at);
    uint8_t data[BY_LINE_IN_BYTES], back[BY_LINE_IN_BYTES];

    for (unsigned i = 0; i < ROUNDS; i++) {
        unsigned line = (unsigned)by_prng_next(&prng) % BY_CONSOLE_LINES;
        size_t bytes = 6 + by_prng_next(&prng) % (sizeof data - 6);

        fill(data, bytes);
        memcpy(data, begin, sizeof begin);
        assert_true(model_give(MODEL_CONSOLE, LINE_IN + 2 * line, data, bytes));
        by_console_serve(console);
        assert_int_equal(model_take(MODEL_CONSOLE, LINE_OUT + 2 * line, back, sizeof back), bytes);
        assert_memory_equal(back, data, bytes);
        by_console_serve(console);
        by_console_alert(console, i % 2 != 0);
    }
}

static void control_messages_and_bytes_of_lines_come_and_go_right(void **state)
{
    (void)state;
    print_message("SEED=%llu\n", (unsigned long long)seed());
    for (unsigned run = 0; run < RUNS; run++)
        run_console(seed() + run);
}

static void a_client_that_never_stops_holds_nobody_up(void **state)
{
    struct by_console *console = open_console(seed());
    unsigned rounds = 0;

    (void)state;
    flood = 1000;
    assert_true(model_give(MODEL_CONSOLE, LINE_IN, begin, sizeof begin));
    for (; flood > 0; rounds++) {
        unsigned before = flood;

        assert_true(by_console_alert(console, true)); /* no sleep: more input is waiting */
        by_console_serve(console);
        assert_in_range(before - flood, 1, BY_LINE_IN);
    }
    assert_true(rounds >= 1000 / BY_LINE_IN);
}

static void empty_pieces_cost_no_buffers(void **state)
{
    struct by_console *console = open_console(seed());
    uint8_t back[sizeof begin];

    (void)state;
    for (unsigned i = 0; i < 3 * BY_LINE_IN; i++) {
        assert_true(model_give(MODEL_CONSOLE, LINE_IN, begin, 0));
        by_console_serve(console);
    }
    assert_true(model_give(MODEL_CONSOLE, LINE_IN, begin, sizeof begin));
    by_console_serve(console);
    assert_int_equal(model_take(MODEL_CONSOLE, LINE_OUT, back, sizeof back), sizeof begin);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frames_come_and_go_right_though_the_device_sees_no_cache),
        cmocka_unit_test(tags_of_a_vlan_are_written_and_removed),
        cmocka_unit_test(a_chain_over_several_lines_is_seen_whole),
        cmocka_unit_test(frames_come_and_go_right_where_it_does),
        cmocka_unit_test(control_messages_and_bytes_of_lines_come_and_go_right),
        cmocka_unit_test(a_client_that_never_stops_holds_nobody_up),
        cmocka_unit_test(empty_pieces_cost_no_buffers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
