/* The packet loop of a switch on a platform of memory: which frames reach the engine, where its
 * outputs go, and that each frame is freed exactly once, also under injected faults. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "offload/base/bytes.h"
#include "offload/table/image.h"
#include "tests/unit/offload/shell/platform.h"

/* Lets a contribution without data wait. */
static struct batch_frame *credit(struct batch_platform *self, unsigned host, uint32_t seq)
{
    struct by_header header;
    const uint8_t *payload;
    uint8_t packet[FRAME_MAX];
    struct batch_frame *frame = inject(self, host, BY_FRAME_HEADER_BYTES + BY_WIRE_HEADER_BYTES);

    (void)star_contribution(&platform_fabric, host, 0, seq, COUNT, packet);
    assert_true(by_header_decode(packet, BY_WIRE_HEADER_BYTES + 4 * COUNT, &header, &payload) > 0);
    header.flags |= BY_FLAG_NODATA;
    header.psum = 0;
    by_header_encode(&header, packet);
    star_frame(host, packet, BY_WIRE_HEADER_BYTES, frame->data);
    return frame;
}

static void a_result_is_sent_to_each_port_and_all_frames_are_freed(void **state)
{
    struct batch_platform *self = platform_star();

    (void)state;
    for (unsigned host = 0; host < HOSTS; host++)
        contribute(self, host, 0);
    assert_int_equal(by_batch_round(&self->batch), HOSTS);
    for (unsigned host = 0; host < HOSTS; host++)
        assert_int_equal(self->sent[host], 1);
    assert_int_equal(self->alive, 0);
    assert_int_equal(self->dones, 1);
    assert_int_equal(self->batch.counters.loops, 1);
    assert_int_equal(self->batch.counters.steps, 1);
    platform_close(self);
}

/* Each step frees the frames of its packets, and no others. */
static void a_batch_is_consumed_in_steps_of_the_platforms_size(void **state)
{
    (void)state;
    for (uint32_t size = 1; size <= HOSTS; size++) {
        struct batch_platform *self = platform_star();

        self->batch.step_packets = size;
        for (unsigned host = 0; host < HOSTS; host++)
            contribute(self, host, 0);
        assert_int_equal(by_batch_round(&self->batch), HOSTS);
        for (unsigned host = 0; host < HOSTS; host++)
            assert_int_equal(self->sent[host], 1);
        assert_int_equal(self->alive, 0);
        assert_int_equal(self->batch.counters.steps, (HOSTS + size - 1) / size);
        platform_close(self);
    }
}

static void an_output_for_a_port_without_an_address_returns_its_payload(void **state)
{
    struct batch_platform *self = platform_star();
    struct by_bank_view view;

    (void)state;
    self->batch.port[2].addressed = false;
    for (unsigned host = 0; host < HOSTS; host++) {
        self->batch.port[2].addressed = host == 2; /* for its contribution alone */
        contribute(self, host, 0);
        by_batch_round(&self->batch);
    }
    assert_int_equal(self->batch.counters.tx_no_port, 1);
    assert_int_equal(self->sent[1], 1);
    assert_int_equal(self->sent[2], 0);
    assert_int_equal(by_engine_bank(self->engine, 0, 0, 0, &view), 0);
    assert_int_equal(view.refs, 0);
    platform_close(self);
}

/* The table may name more ports than the switch has. */
static void an_output_for_a_port_that_does_not_exist_is_counted(void **state)
{
    struct batch_platform *self = platform_star();

    (void)state;
    for (unsigned host = HOSTS; host-- > 0;) {
        contribute(self, host, 0);
        by_batch_round(&self->batch);
        self->batch.port_count = HOSTS - 1; /* after the contribution of the last host */
    }
    assert_int_equal(self->batch.counters.tx_no_port, 1);
    assert_int_equal(self->sent[HOSTS - 2], 1);
    assert_int_equal(self->sent[HOSTS - 1], 0);
    platform_close(self);
}

static void a_result_without_a_payload_for_a_port_without_an_address_is_counted(void **state)
{
    struct batch_platform *self = platform_star();

    (void)state;
    for (unsigned host = 0; host < HOSTS; host++) {
        self->batch.port[2].addressed = host == 2;
        credit(self, host, 0);
        by_batch_round(&self->batch);
    }
    assert_int_equal(self->batch.counters.tx_no_port, 1);
    assert_int_equal(self->sent[1], 1);
    assert_int_equal(self->sent[2], 0);
    platform_close(self);
}

static void frames_that_are_not_for_this_port_are_counted_and_freed(void **state)
{
    struct batch_platform *self = platform_star();
    struct by_batch_counters *counters = &self->batch.counters;

    (void)state;
    inject(self, 0, 0);                /* nothing */
    inject(self, 0, FRAME_MAX);        /* no IPv4 */
    contribute(self, 1, 0)->data[5]++; /* another MAC address */
    for (unsigned host = 0; host < HOSTS; host++)
        by_put16(contribute(self, host, 0)->data + BY_FRAME_AT_PORT, BY_UDP_PORT + 1);
    by_batch_round(&self->batch);
    assert_int_equal(counters->rx_other, 2);
    assert_int_equal(counters->rx_not_ours, 1 + HOSTS);
    assert_int_equal(counters->steps, 0);
    assert_int_equal(self->alive, 0);
    self->batch.port[3].addressed = false;
    contribute(self, 3, 0);
    by_batch_round(&self->batch);
    assert_int_equal(counters->rx_unaddressed, 1);
    platform_close(self);
}

static void a_frame_is_compared_with_the_last_one_of_its_port_and_no_other(void **state)
{
    struct batch_platform *self = platform_learned(LEARNED);
    struct by_batch_counters *counters = &self->batch.counters;
    const struct by_engine_counters *engine = by_engine_counters(self->engine);

    (void)state;
    contribute(self, 1, 0);
    contribute(self, 1, 1);
    contribute(self, 2, 0);
    by_batch_round(&self->batch);
    assert_int_equal(engine->contrib, 3);
    /* each byte but those of the source MAC address and port is compared or checked */
    for (unsigned at = 0; at < BY_FRAME_AT_UDP_CHECKSUM; at++)
        if (at < BY_MAC_BYTES || (at >= BY_FRAME_AT_TYPE && at / 2 != BY_FRAME_AT_PORT / 2 - 1)) {
            contribute(self, 1, 2)->data[at] ^= 0x10;
            by_batch_round(&self->batch);
        }
    assert_int_equal(engine->contrib, 3);
    contribute(self, 1, 2)->data[BY_FRAME_AT_UDP_CHECKSUM] ^= 0x10; /* any checksum is valid */
    contribute(self, 1, 3)->bytes--;                                /* less than its headers state */
    by_batch_round(&self->batch);
    assert_int_equal(engine->contrib, 4);

    /* a credit is no more than a header, and less of it is nothing */
    credit(self, 1, 3);
    credit(self, 1, 3)->bytes--;
    credit(self, 1, 3)->bytes = BY_FRAME_HEADER_BYTES;
    by_batch_round(&self->batch);
    assert_int_equal(engine->contrib, 5);
    assert_int_equal(engine->duplicate, 0);
    assert_int_equal(engine->drop_format, 0);
    counters->rx_other = 0;
    inject(self, 1, FRAME_MAX); /* zeros */
    by_batch_round(&self->batch);
    assert_int_equal(counters->rx_other, 1);
    assert_int_equal(engine->drop_format, 0);

    contribute(self, 1, 3);
    by_batch_round(&self->batch);
    assert_int_equal(engine->duplicate, 1);
    self->batch.port[1].hardware_mac[5]++; /* the next table gives the port another address */
    by_batch_address(&self->batch);
    counters->rx_not_ours = 0;
    contribute(self, 1, 3);
    by_batch_round(&self->batch);
    assert_int_equal(counters->rx_not_ours, 1);
    assert_int_equal(engine->contrib, 5);
    assert_int_equal(engine->duplicate, 1);
    platform_close(self);
}

static void an_arp_request_is_answered_if_there_is_a_buffer(void **state)
{
    static const uint8_t head[] = {0x08, 0x06, 0, 1, 8, 0, 6, 4, 0, 1};
    struct batch_platform *self = platform_star();
    uint8_t mac[BY_MAC_BYTES];

    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        struct batch_frame *frame = inject(self, 2, BY_FRAME_HEADER_BYTES);

        memcpy(frame->data + BY_FRAME_AT_TYPE, head, sizeof head);
        frame->data[22] = 2; /* the requester's MAC address */
        by_put32(frame->data + 28, star_host_ip(2));
        by_put32(frame->data + 38, star_port_ip(2));
        self->is_full = i == 1;
        by_batch_round(&self->batch);
    }
    star_mac(star_port_ip(2), mac);
    assert_memory_equal(self->last.data + 22, mac, sizeof mac);
    assert_int_equal(self->replies, 1);
    assert_int_equal(self->batch.counters.arp_replies, 1);
    assert_int_equal(self->batch.counters.tx_no_memory, 1);
    assert_int_equal(self->batch.counters.rx_other, 0);
    platform_close(self);
}

static void a_neighbour_is_known_for_the_time_that_it_states(void **state)
{
    struct by_lldp own = {.source = {2, 0, 0, 0, 0, 1}, .node = "host2", .port = "eth0", .ttl_s = 5};
    struct batch_platform *self = platform_open(); /* without a table */
    struct batch_frame *frame;

    (void)state;
    assert_null(by_batch_neighbour(&self->batch, 2));
    frame = inject(self, 2, 0);
    frame->bytes = (uint32_t)by_lldp_encode(&own, frame->data);
    by_batch_round(&self->batch);
    assert_non_null(by_batch_neighbour(&self->batch, 2));
    assert_string_equal(by_batch_neighbour(&self->batch, 2)->node, "host2");
    assert_string_equal(by_batch_neighbour(&self->batch, 2)->port, "eth0");
    assert_null(by_batch_neighbour(&self->batch, 1));
    assert_int_equal(self->batch.counters.rx_other, 0);
    self->batch.now_ns += UINT64_C(5000000000);
    assert_null(by_batch_neighbour(&self->batch, 2));

    own.ttl_s = 0; /* the neighbour leaves */
    self->batch.now_ns -= UINT64_C(1000000000);
    assert_non_null(by_batch_neighbour(&self->batch, 2));
    frame = inject(self, 2, 0);
    frame->bytes = (uint32_t)by_lldp_encode(&own, frame->data);
    by_batch_round(&self->batch);
    assert_null(by_batch_neighbour(&self->batch, 2));
    platform_close(self);
}

static void an_announcement_states_the_port_and_needs_a_buffer(void **state)
{
    const struct by_lldp own = {.source = {2, 0, 0, 0, 0, 1}, .node = "leaf0", .port = "p1", .ttl_s = 9};
    struct batch_platform *self = platform_open();
    struct by_lldp got;

    (void)state;
    assert_true(by_batch_announce(&self->batch, 1, &own));
    assert_true(by_lldp_parse(self->last.data, self->last.bytes, &got));
    assert_memory_equal(&got, &own, sizeof got);
    self->is_full = true;
    assert_false(by_batch_announce(&self->batch, 1, &own));
    platform_close(self);
}

static void a_relay_changes_addresses_and_the_udp_checksum_alone(void **state)
{
    struct batch_platform *self = platform_relay(0, 0);
    uint8_t mac[BY_MAC_BYTES], expected[FRAME_MAX];
    size_t bytes = star_relayed(&platform_fabric, expected);
    struct batch_frame *frame;

    (void)state;
    relayed(self);
    frame = self->waiting[0][0];
    by_put16(frame->data + BY_FRAME_AT_UDP_CHECKSUM, 0xbad);
    by_batch_round(&self->batch);
    assert_int_equal(self->forwarded, 1);
    assert_int_equal(self->batch.counters.tx_relayed, 1);
    star_mac(star_host_ip(1), mac);
    assert_memory_equal(self->last.data, mac, sizeof mac);
    star_mac(star_port_ip(1), mac);
    assert_memory_equal(self->last.data + BY_MAC_BYTES, mac, sizeof mac);
    assert_int_equal(self->last.bytes, bytes);
    assert_memory_equal(self->last.data + BY_FRAME_AT_TYPE, expected + BY_FRAME_AT_TYPE,
                        bytes - BY_FRAME_AT_TYPE);
    platform_close(self);
}

static void a_frame_that_waits_for_its_share_leaves_when_it_is_due(void **state)
{
    struct batch_platform *self = platform_relay(BY_SHARE_ONE, 1000);
    unsigned rounds = 0;

    (void)state;
    assert_int_equal(by_batch_idle_ns(&self->batch, 5), 5);
    while (self->batch.park.count < PARK && rounds++ < 10000) {
        relayed(self);
        by_batch_round(&self->batch);
    }
    assert_int_equal(self->batch.park.count, PARK);
    assert_int_equal(self->alive, PARK);
    self->forwarded = 0;
    self->batch.now_ns += by_batch_idle_ns(&self->batch, UINT64_MAX) - 1;
    by_batch_round(&self->batch);
    assert_int_equal(self->forwarded, 0);
    assert_int_equal(by_batch_idle_ns(&self->batch, UINT64_MAX), 1);
    self->batch.now_ns++;
    by_batch_round(&self->batch);
    assert_in_range(self->forwarded, 1, PARK);
    self->batch.now_ns += UINT64_C(1000000000000);
    assert_int_equal(by_batch_idle_ns(&self->batch, 5), self->batch.park.count > 0 ? 0 : 5);
    by_batch_round(&self->batch);
    assert_int_equal(self->forwarded, PARK);
    platform_close(self);
}

static void injected_faults_free_each_frame_exactly_once(void **state)
{
    struct batch_platform *self = platform_relay(0, 0);
    const struct by_batch_counters *counters = &self->batch.counters;
    const unsigned frames = 4000;

    (void)state;
    self->batch.hold.fault =
        (struct by_fault){.prng = {1}, .loss = QUARTER, .duplicate = QUARTER, .reorder = QUARTER};
    for (unsigned i = 0; i < frames; i++) {
        relayed(self);
        if (i % FRAMES_MAX == FRAMES_MAX - 1)
            by_batch_round(&self->batch);
    }
    assert_true(self->batch.hold.count == 0 || by_batch_idle_ns(&self->batch, UINT64_MAX) == BY_HOLD_NS);
    self->batch.now_ns += BY_HOLD_NS;
    by_batch_round(&self->batch);
    assert_int_equal(self->forwarded, frames - counters->fault_dropped + counters->fault_duplicated);
    assert_in_range(counters->fault_dropped, frames / 5, frames * 3 / 10);
    assert_in_range(counters->fault_duplicated, frames / 8, frames * 3 / 10);
    assert_in_range(counters->fault_held, frames / 10, frames * 3 / 10);
    assert_int_equal(self->alive, 0);
    platform_close(self);
}

static void closing_frees_frames_that_are_held_or_wait(void **state)
{
    struct batch_platform *self = platform_relay(0, 0);
    const uint32_t frames = 3;

    (void)state;
    self->batch.hold.fault = (struct by_fault){.prng = {1}, .reorder = UINT32_MAX};
    for (uint32_t i = 0; i < frames; i++)
        relayed(self);
    by_batch_round(&self->batch);
    assert_int_equal(self->batch.hold.count, frames);
    for (uint32_t i = 0; i < frames; i++) { /* received at ports 1 to 3, and due later */
        struct batch_frame *frame = inject(self, 1 + i, 0);

        self->waiting_count[1 + i] = 0;
        assert_int_equal(by_park_put(&self->batch.park, UINT64_MAX - 1, frame, (uint16_t)(1 + i)), 1);
    }
    assert_int_equal(self->alive, 2 * frames);
    by_batch_close(&self->batch);
    assert_int_equal(self->alive, 0);
    assert_int_equal(by_batch_idle_ns(&self->batch, BY_HOLD_NS + 1), BY_HOLD_NS + 1); /* nothing is left */
    assert_int_equal(by_park_due(&self->batch.park), UINT64_MAX);
    platform_close(self); /* a second time */
}

static void contribute_all(struct batch_platform *self, uint32_t seq)
{
    for (unsigned host = 0; host < HOSTS; host++)
        contribute(self, host, seq);
    by_batch_round(&self->batch);
}

static void a_neighbour_is_asked_for_its_mac_address_and_gets_packets_when_it_has_answered(void **state)
{
    struct batch_platform *self = platform_learned(LEARNED);
    struct by_batch_counters *counters = &self->batch.counters;
    struct by_bank_view view;
    uint8_t mac[BY_MAC_BYTES], want[BY_FRAME_HEADER_BYTES];

    (void)state;
    by_batch_round(&self->batch);
    assert_int_equal(self->replies, HOSTS);
    assert_int_equal(counters->arp_requests, HOSTS);
    star_mac(star_port_ip(3), mac);
    by_arp_request(mac, star_port_ip(3), NULL, star_host_ip(3), want);
    assert_memory_equal(self->last.data, want, sizeof want);
    contribute_all(self, 0);
    assert_int_equal(counters->tx_no_neighbour, HOSTS);
    assert_int_equal(by_engine_bank(self->engine, 0, 0, 0, &view), 0);
    assert_int_equal(view.refs, 0);
    announce(self, 2, (const uint8_t[]){2, 0, 0, 0, 0, 9});
    by_batch_round(&self->batch);
    assert_int_equal(counters->arp_learned, 1);
    assert_int_equal(self->batch.moves, 1);
    assert_memory_equal(by_batch_mac(&self->batch, 2, 1), "\x02\0\0\0\0\x09", BY_MAC_BYTES);
    assert_null(by_batch_mac(&self->batch, 1, 1));
    contribute_all(self, 1);
    assert_int_equal(self->sent[2], 1);
    assert_int_equal(counters->tx_no_neighbour, 2 * HOSTS - 1);
    platform_close(self);
}

static void a_neighbour_that_moves_is_followed_and_others_are_not_believed(void **state)
{
    struct batch_platform *self = platform_learned(LEARNED);

    (void)state;
    announce(self, 2, (const uint8_t[]){2, 0, 0, 0, 0, 9});
    announce(self, 2, (const uint8_t[]){2, 0, 0, 0, 0, 9});
    announce(self, 2, (const uint8_t[]){2, 0, 0, 0, 0, 8});
    announce(self, 2, (const uint8_t[]){3, 0, 0, 0, 0, 7}); /* a group */
    announce(self, 2, (const uint8_t[]){0, 0, 0, 0, 0, 0});
    announce(self, 2, (const uint8_t[]){2, 0, 0, 0, 0, 6});
    by_put32(self->waiting[2][5]->data + 28, star_host_ip(1)); /* another port's neighbour */
    by_batch_round(&self->batch);
    assert_int_equal(self->batch.moves, 2);
    assert_memory_equal(by_batch_mac(&self->batch, 2, 1), "\x02\0\0\0\0\x08", BY_MAC_BYTES);
    assert_null(by_batch_mac(&self->batch, 1, 1));
    platform_close(self);
}

static void a_neighbour_that_does_not_answer_is_reported_once(void **state)
{
    struct batch_platform *self = platform_learned(LEARNED);
    uint64_t start_ns = self->batch.now_ns;
    unsigned rounds = 0;

    (void)state;
    for (unsigned host = 1; host < HOSTS; host++)
        announce(self, host, (const uint8_t[]){2, 0, 0, 0, 0, 9});
    by_batch_round(&self->batch);
    while (self->notices == 0 && rounds++ < 100) {
        self->batch.now_ns += by_batch_idle_ns(&self->batch, UINT64_MAX);
        by_batch_round(&self->batch);
    }
    assert_int_equal(rounds, BY_NEIGHBOUR_TRIES - 1);
    assert_in_range(self->batch.now_ns - start_ns, BY_NEIGHBOUR_SLOW_NS, 4 * BY_NEIGHBOUR_SLOW_NS);
    assert_int_equal(self->notice.ip, star_host_ip(0));
    assert_true(self->notice.silent);
    assert_non_null(by_batch_silent(&self->batch, 0));
    assert_null(by_batch_silent(&self->batch, 1));
    self->batch.now_ns += by_batch_idle_ns(&self->batch, UINT64_MAX);
    by_batch_round(&self->batch);
    assert_int_equal(self->notices, 1);
    announce(self, 0, (const uint8_t[]){2, 0, 0, 0, 0, 8});
    by_batch_round(&self->batch);
    assert_int_equal(self->notices, 2);
    assert_false(self->notice.silent);
    assert_null(by_batch_silent(&self->batch, 0));
    assert_int_equal(self->batch.counters.arp_silent, 1);
    platform_close(self);
}

static void a_known_neighbour_is_asked_again_and_keeps_its_address_in_the_next_table(void **state)
{
    struct batch_platform *self = platform_learned(LEARNED);

    (void)state;
    by_batch_round(&self->batch);
    for (unsigned host = 0; host < HOSTS; host++)
        announce(self, host, (const uint8_t[]){2, 0, 0, 0, 0, 9});
    by_batch_round(&self->batch);
    assert_int_equal(by_batch_idle_ns(&self->batch, UINT64_MAX), BY_NEIGHBOUR_AGAIN_NS);
    self->batch.now_ns += BY_NEIGHBOUR_AGAIN_NS;
    by_batch_round(&self->batch);
    assert_int_equal(self->batch.counters.arp_requests, 2 * HOSTS);
    assert_memory_equal(self->last.data, "\x02\0\0\0\0\x09", BY_MAC_BYTES); /* it alone */
    by_batch_address(&self->batch);
    assert_memory_equal(by_batch_mac(&self->batch, 3, 1), "\x02\0\0\0\0\x09", BY_MAC_BYTES);
    assert_int_equal(self->batch.neighbours.count, HOSTS);
    platform_close(self);
}

/* An address is stated if any of its bytes is not zero. */
static void ports_have_the_addresses_that_the_table_states(void **state)
{
    (void)state;
    for (uint32_t at = 0; at < BY_MAC_BYTES; at++) {
        struct batch_platform *self = platform_open();
        size_t bytes;
        uint8_t *image = star_image(&platform_fabric, &bytes), mac[BY_MAC_BYTES] = {0};

        mac[at] = 2;
        for (uint32_t i = 0; i < HOSTS; i++) {
            struct by_image_port port;

            memset(self->batch.port[i].hardware_mac, 4, BY_MAC_BYTES);
            by_image_port(image, i, &port);
            memcpy(port.own_mac, mac, sizeof mac);
            memcpy(port.peer_mac, mac, sizeof mac);
            by_image_put_port(image, i, &port);
        }
        by_image_seal(image);
        platform_load(self, image, bytes);
        free(image);
        assert_int_equal(self->batch.neighbours.count, 0);
        for (uint16_t i = 0; i < HOSTS; i++) {
            assert_memory_equal(self->batch.port[i].mac, mac, sizeof mac);
            assert_int_equal(self->batch.port[i].reach, BY_REACH_PEER);
            assert_memory_equal(by_batch_mac(&self->batch, i, 1), mac, sizeof mac);
        }
        platform_close(self);
    }
}

static void behind_a_bridge_each_receiver_is_a_neighbour(void **state)
{
    struct batch_platform *self = platform_learned(BRIDGED);

    (void)state;
    by_batch_round(&self->batch);
    assert_int_equal(self->batch.counters.arp_requests, HOSTS);
    announce(self, 0, (const uint8_t[]){2, 0, 0, 0, 0, 9});
    by_batch_round(&self->batch);
    assert_memory_equal(by_batch_mac(&self->batch, 0, star_host_ip(0)), "\x02\0\0\0\0\x09", BY_MAC_BYTES);
    assert_null(by_batch_mac(&self->batch, 0, star_host_ip(1)));
    contribute_all(self, 0);
    assert_int_equal(self->sent[0], 1);
    assert_int_equal(self->batch.counters.tx_no_neighbour, HOSTS - 1);
    platform_close(self);
}

/* Host 0 is behind a bridge and asks for host 1, to which the switch relays. */
static void behind_a_bridge_the_switch_answers_for_those_it_relays_to(void **state)
{
    static const uint8_t head[] = {0x08, 0x06, 0, 1, 8, 0, 6, 4, 0, 1};
    struct batch_platform *self = platform_open();
    size_t bytes;
    uint8_t *image = star_relay_image(0, 0, &bytes), own[BY_MAC_BYTES];
    struct by_image_relay relay;
    struct by_image_port port;

    (void)state;
    by_image_port(image, 0, &port);
    memset(port.peer_mac, 0, sizeof port.peer_mac);
    port.peer_ip = 0;
    by_image_put_port(image, 0, &port);
    by_image_relay(image, 0, &relay);
    relay.from = 1;
    by_image_put_relay(image, 0, &relay);
    by_image_seal(image);
    platform_load(self, image, bytes);
    free(image);
    for (unsigned i = 0; i < 2; i++) {
        struct batch_frame *frame = inject(self, i, BY_FRAME_HEADER_BYTES);

        memcpy(frame->data + BY_FRAME_AT_TYPE, head, sizeof head);
        frame->data[22] = 2;
        by_put32(frame->data + 28, star_host_ip(i));
        by_put32(frame->data + 38, star_host_ip(1));
    }
    by_batch_round(&self->batch);
    assert_int_equal(self->batch.counters.arp_replies, 1);
    star_mac(star_port_ip(0), own);
    assert_memory_equal(self->last.data + 22, own, sizeof own);
    assert_int_equal(by_get32(self->last.data + 28), star_host_ip(1));
    platform_close(self);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_result_is_sent_to_each_port_and_all_frames_are_freed),
        cmocka_unit_test(a_batch_is_consumed_in_steps_of_the_platforms_size),
        cmocka_unit_test(an_output_for_a_port_without_an_address_returns_its_payload),
        cmocka_unit_test(an_output_for_a_port_that_does_not_exist_is_counted),
        cmocka_unit_test(a_result_without_a_payload_for_a_port_without_an_address_is_counted),
        cmocka_unit_test(frames_that_are_not_for_this_port_are_counted_and_freed),
        cmocka_unit_test(a_frame_is_compared_with_the_last_one_of_its_port_and_no_other),
        cmocka_unit_test(an_arp_request_is_answered_if_there_is_a_buffer),
        cmocka_unit_test(a_neighbour_is_known_for_the_time_that_it_states),
        cmocka_unit_test(an_announcement_states_the_port_and_needs_a_buffer),
        cmocka_unit_test(a_relay_changes_addresses_and_the_udp_checksum_alone),
        cmocka_unit_test(a_frame_that_waits_for_its_share_leaves_when_it_is_due),
        cmocka_unit_test(injected_faults_free_each_frame_exactly_once),
        cmocka_unit_test(closing_frees_frames_that_are_held_or_wait),
        cmocka_unit_test(a_neighbour_is_asked_for_its_mac_address_and_gets_packets_when_it_has_answered),
        cmocka_unit_test(a_neighbour_that_moves_is_followed_and_others_are_not_believed),
        cmocka_unit_test(a_neighbour_that_does_not_answer_is_reported_once),
        cmocka_unit_test(a_known_neighbour_is_asked_again_and_keeps_its_address_in_the_next_table),
        cmocka_unit_test(ports_have_the_addresses_that_the_table_states),
        cmocka_unit_test(behind_a_bridge_each_receiver_is_a_neighbour),
        cmocka_unit_test(behind_a_bridge_the_switch_answers_for_those_it_relays_to),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
