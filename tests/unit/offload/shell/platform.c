/* Implements platform.h. */
#include "tests/unit/offload/shell/platform.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "offload/base/bytes.h"
#include "offload/reduce/reduce.h"
#include "offload/table/image.h"

const struct star platform_fabric = {.hosts = HOSTS, .trees = 1, .window = 4, .payload_max = 64, .mtu = 1500};

static uint32_t platform_receive(void *context, uint16_t port)
{
    struct batch_platform *self = context;
    unsigned count = self->waiting_count[port];

    self->waiting_count[port] = 0;
    for (unsigned i = 0; i < count; i++) {
        struct batch_frame *frame = self->waiting[port][i];

        by_batch_receive(&self->batch, port, frame, frame->data, frame->bytes);
    }
    return count;
}

static uint8_t *platform_data(void *context, void *frame, uint32_t *bytes)
{
    (void)context;
    *bytes = ((struct batch_frame *)frame)->bytes;
    return ((struct batch_frame *)frame)->data;
}

static void platform_share(void *context, void *frame)
{
    struct batch_platform *self = context;

    ((struct batch_frame *)frame)->references++;
    self->alive++;
}

static void platform_drop(void *context, void **frames, uint32_t count)
{
    struct batch_platform *self = context;

    for (uint32_t i = 0; i < count; i++) {
        struct batch_frame *frame = frames[i];

        if (frame == NULL)
            continue;
        assert_in_range(frame->references, 1, 2);
        self->alive--;
        if (--frame->references == 0)
            free(frame);
    }
}

static void *platform_make(void *context, const struct by_rx *rx, uint16_t port)
{
    (void)context;
    (void)rx;
    (void)port;
    return NULL;
}

static void platform_forward(void *context, uint16_t port, void *frame)
{
    struct batch_platform *self = context;

    assert_in_range(port, 0, HOSTS - 1);
    self->forwarded++;
    self->last = *(struct batch_frame *)frame;
    platform_drop(context, &frame, 1);
}

static bool platform_reply(void *context, uint16_t port, const uint8_t *frame, uint32_t bytes)
{
    struct batch_platform *self = context;

    assert_in_range(port, 0, HOSTS - 1);
    if (self->is_full)
        return false;
    self->replies++;
    memcpy(self->last.data, frame, bytes);
    self->last.bytes = bytes;
    return true;
}

static void platform_send(void *context, const struct by_tx *tx, uint32_t count)
{
    struct batch_platform *self = context;

    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(tx[i].kind, BY_TX_SEND);
        self->sent[tx[i].port]++;
        if (tx[i].ref != BY_REF_NONE)
            by_engine_release(self->engine, tx[i].ref);
    }
}

static void platform_neighbour(void *context, const struct by_shell_neighbour *neighbour)
{
    struct batch_platform *self = context;

    self->notices++;
    self->notice = *neighbour;
}

static void platform_done(void *context)
{
    ((struct batch_platform *)context)->dones++;
}

const struct by_batch_ops platform_ops = {
    .receive = platform_receive,
    .data = platform_data,
    .share = platform_share,
    .drop = platform_drop,
    .make = platform_make,
    .forward = platform_forward,
    .reply = platform_reply,
    .send = platform_send,
    .neighbour = platform_neighbour,
    .done = platform_done,
};

struct batch_platform *platform_open(void)
{
    const struct by_engine_config config = {.slot_count_max = 16,
                                            .payload_max = 64,
                                            .image_bytes_max = 4096,
                                            .entry_count_max = 4,
                                            .relay_count_max = 4,
                                            .repair_interval_ns = 1,
                                            .isa = by_isa_best(),
                                            .meter_count_max = by_engine_meters(HOSTS, 4)};
    struct batch_platform *self = calloc(1, sizeof *self);
    size_t bytes = by_engine_size(&config);

    assert_non_null(self);
    self->memory = aligned_alloc(64, (bytes + 63) / 64 * 64);
    assert_non_null(self->memory);
    assert_int_equal(by_engine_init(&self->engine, self->memory, bytes, &config), 0);
    by_batch_open(&self->batch, &platform_ops, self, self->engine, HOSTS);
    by_park_open(&self->batch.park, self->parked, PARK);
    self->batch.now_ns = 1000000;
    return self;
}

void platform_load(struct batch_platform *self, const uint8_t *image, size_t bytes)
{
    struct by_image_fault fault;

    assert_int_equal(by_engine_stage(self->engine, image, bytes, &fault), 0);
    assert_int_equal(by_engine_commit(self->engine), 0);
    by_batch_address(&self->batch);
}

struct batch_platform *platform_star(void)
{
    struct batch_platform *self = platform_open();
    size_t bytes;
    uint8_t *image = star_image(&platform_fabric, &bytes);

    platform_load(self, image, bytes);
    free(image);
    return self;
}

void platform_close(struct batch_platform *self)
{
    by_batch_close(&self->batch);
    assert_int_equal(self->alive, 0);
    free(self->memory);
    free(self);
}

struct batch_frame *inject(struct batch_platform *self, unsigned port, size_t bytes)
{
    struct batch_frame *frame = calloc(1, sizeof *frame);

    assert_non_null(frame);
    assert_in_range(bytes, 0, FRAME_MAX);
    assert_in_range(self->waiting_count[port], 0, FRAMES_MAX - 1);
    frame->bytes = (uint32_t)bytes;
    frame->references = 1;
    self->alive++;
    self->waiting[port][self->waiting_count[port]++] = frame;
    return frame;
}

struct batch_frame *contribute(struct batch_platform *self, unsigned host, uint32_t seq)
{
    uint8_t packet[FRAME_MAX];
    size_t bytes = star_contribution(&platform_fabric, host, 0, seq, COUNT, packet);
    struct batch_frame *frame = inject(self, host, BY_FRAME_HEADER_BYTES + bytes);

    star_frame(host, packet, bytes, frame->data);
    return frame;
}
struct batch_platform *platform_relay(uint32_t share, uint32_t rate)
{
    struct batch_platform *self = platform_open();
    size_t bytes;
    uint8_t *image = star_relay_image(share, rate, &bytes);

    platform_load(self, image, bytes);
    free(image);
    return self;
}

void relayed(struct batch_platform *self)
{
    struct batch_frame *frame = inject(self, 0, 0);

    frame->bytes = (uint32_t)star_relayed(&platform_fabric, frame->data);
}

struct batch_platform *platform_learned(enum star_change change)
{
    struct batch_platform *self = platform_open();
    size_t bytes;
    uint8_t *image = star_image(&platform_fabric, &bytes);

    for (uint32_t i = 0; i < HOSTS; i++) {
        struct by_image_port port;

        star_mac(star_port_ip(i), self->batch.port[i].hardware_mac);
        by_image_port(image, i, &port);
        memset(port.own_mac, 0, sizeof port.own_mac);
        memset(port.peer_mac, 0, sizeof port.peer_mac);
        if (change == BRIDGED && i == 0)
            port.peer_ip = 0;
        by_image_put_port(image, i, &port);
    }
    by_image_seal(image);
    platform_load(self, image, bytes);
    free(image);
    return self;
}

void announce(struct batch_platform *self, unsigned host, const uint8_t mac[BY_MAC_BYTES])
{
    static const uint8_t head[] = {0x08, 0x06, 0, 1, 8, 0, 6, 4, 0, 2};
    struct batch_frame *frame = inject(self, host, BY_FRAME_HEADER_BYTES);

    memcpy(frame->data + BY_FRAME_AT_TYPE, head, sizeof head);
    memcpy(frame->data + 22, mac, BY_MAC_BYTES);
    by_put32(frame->data + 28, star_host_ip(host));
    by_put32(frame->data + 38, star_port_ip(host));
}
