/* The packet loop of a switch where something is missing or full: buffers, neighbours, a clock,
 * room in the batch; and ports of other kinds: in memory, without a VLAN, of other workers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "offload/base/bytes.h"
#include "offload/table/image.h"
#include "tests/unit/offload/shell/platform.h"

static const uint8_t mac[BY_MAC_BYTES] = {2, 0, 0, 0, 0, 9}, zero[BY_MAC_BYTES];
static struct by_batch_ops ops; /* of the platform, with the changes of a test */

static void *make_frame(void *context, const struct by_rx *rx, uint16_t port)
{
    struct batch_platform *self = context;
    struct batch_frame *frame = calloc(1, sizeof *frame);

    (void)port;
    assert_non_null(frame);
    frame->references = 1;
    frame->bytes = BY_FRAME_HEADER_BYTES + rx->bytes;
    memcpy(frame->data + BY_FRAME_HEADER_BYTES, rx->data, rx->bytes);
    self->alive++;
    return frame;
}

/* Gives a packet of the fabric's relay to the batch without its frame, as a port in memory does. */
static uint32_t receive_without_frame(void *context, uint16_t port)
{
    static uint8_t frame[FRAME_MAX];
    struct batch_platform *self = context;

    if (port != 0)
        return 0;
    by_batch_receive(&self->batch, port, NULL, frame, (uint32_t)star_relayed(&platform_fabric, frame));
    return 1;
}

static void a_burst_fits_the_batch_within_its_limits(void **state)
{
    static struct by_batch batch;

    (void)state;
    by_batch_open(&batch, &platform_ops, NULL, NULL, 0);
    assert_int_equal(batch.burst, BY_BATCH_BURST_ONE);
    by_batch_open(&batch, &platform_ops, NULL, NULL, 1);
    assert_int_equal(batch.burst, BY_BATCH_BURST_ONE);
    by_batch_open(&batch, &platform_ops, NULL, NULL, 8);
    assert_int_equal(batch.burst, BY_BATCH_ROUND / 8);
    by_batch_open(&batch, &platform_ops, NULL, NULL, BY_PORTS_MAX);
    assert_int_equal(batch.burst, BY_BATCH_BURST_MIN);
    assert_int_equal(by_batch_idle_ns(&batch, 5), 5);
}

/* What a batch held before it is opened is of no matter. */
static void a_batch_is_opened_in_used_memory(void **state)
{
    static struct by_batch batch, fresh;

    (void)state;
    memset(&batch, 0xff, sizeof batch);
    by_batch_open(&batch, &platform_ops, NULL, NULL, 8);
    by_batch_open(&fresh, &platform_ops, NULL, NULL, 8);
    assert_memory_equal(&batch, &fresh, sizeof batch);
}

/* Sources in the order in which a round polls them. */
static unsigned polled_count;
static uint16_t polled[2 * HOSTS];

static uint32_t receive_nothing(void *context, uint16_t source)
{
    (void)context;
    assert_in_range(polled_count, 0, 2 * HOSTS - 1);
    polled[polled_count++] = source;
    return 0;
}

static void the_first_port_of_a_round_changes_and_other_sources_are_polled_last(void **state)
{
    struct batch_platform *self = platform_star();

    (void)state;
    ops = platform_ops;
    ops.receive = receive_nothing;
    self->batch.ops = &ops;
    self->batch.source_count = HOSTS + 2;
    for (unsigned round = 0; round < 2 * HOSTS; round++) {
        polled_count = 0;
        assert_int_equal(by_batch_round(&self->batch), 0);
        assert_int_equal(polled_count, HOSTS + 2);
        for (unsigned i = 0; i < HOSTS; i++)
            assert_int_equal(polled[i], (round + i) % HOSTS);
        assert_int_equal(polled[HOSTS], HOSTS);
        assert_int_equal(polled[HOSTS + 1], HOSTS + 1);
    }
    platform_close(self);
}

static void a_relay_without_a_frame_is_copied_or_counted(void **state)
{
    struct batch_platform *self = platform_relay(0, 0);

    (void)state;
    ops = platform_ops;
    ops.receive = receive_without_frame;
    self->batch.ops = &ops;
    by_batch_round(&self->batch); /* the platform has no memory for a copy */
    assert_int_equal(self->forwarded, 0);
    assert_int_equal(self->batch.counters.tx_no_memory, 1);
    ops.make = make_frame;
    by_batch_round(&self->batch);
    assert_int_equal(self->forwarded, 1);
    assert_int_equal(self->batch.counters.tx_no_memory, 1);
    platform_close(self);
}

/* The job's share of the link is so small that its packets wait. */
static void a_packet_that_waits_without_a_frame_is_counted_and_parked_frames_are_freed(void **state)
{
    struct batch_platform *self = platform_relay(BY_SHARE_ONE, 1000);
    unsigned rounds = 0;

    (void)state;
    ops = platform_ops;
    ops.receive = receive_without_frame;
    self->batch.ops = &ops;
    ops.make = make_frame;
    while (self->batch.park.count < PARK - 1 && rounds++ < 10000)
        by_batch_round(&self->batch);
    assert_int_equal(self->batch.park.count, PARK - 1);
    ops.make = platform_ops.make; /* no memory for the next that waits */
    for (unsigned i = 0; i < 3; i++)
        by_batch_round(&self->batch);
    assert_int_equal(self->batch.counters.tx_no_memory, 3);
    ops.make = make_frame;
    by_batch_round(&self->batch);
    assert_int_equal(self->batch.park.count, PARK);
    assert_int_equal(self->alive, PARK);
    platform_close(self);
}

/* Frames of one round that wait, each with another sequence number, leave in their order and with
 * their own contents. What has no room among those that wait, the engine drops and counts. */
static void frames_that_wait_together_leave_in_their_order(void **state)
{
    struct batch_platform *self = platform_relay(BY_SHARE_ONE, 1000);
    unsigned rounds = 0;
    uint8_t seq = 0;

    (void)state;
    while (by_engine_counters(self->engine)->hold == 0 && rounds++ < 10000) {
        relayed(self);
        by_batch_round(&self->batch);
    }
    self->batch.now_ns += by_batch_idle_ns(&self->batch, UINT64_MAX);
    by_batch_round(&self->batch); /* none waits, and the share is used up */
    assert_int_equal(self->batch.park.count, 0);
    self->forwarded = 0;
    for (unsigned i = 0; i < PARK + 2; i++) {
        relayed(self);
        self->waiting[0][i]->data[BY_FRAME_HEADER_BYTES + BY_HEADER_AT_SEQ] = ++seq;
        star_retag(self->waiting[0][i]->data + BY_FRAME_HEADER_BYTES);
    }
    by_batch_round(&self->batch);
    assert_int_equal(self->batch.park.count, PARK);
    assert_int_equal(by_engine_counters(self->engine)->drop_room, 2);
    relayed(self); /* later, while all places are taken */
    by_batch_round(&self->batch);
    assert_int_equal(self->batch.park.count, PARK);
    assert_int_equal(by_engine_counters(self->engine)->drop_room, 3);
    assert_int_equal(self->batch.counters.tx_no_memory, 0);
    for (seq = 1; seq <= PARK; seq++) {
        self->batch.now_ns += by_batch_idle_ns(&self->batch, UINT64_MAX);
        by_batch_round(&self->batch);
        assert_int_equal(self->forwarded, seq);
        assert_int_equal(self->last.data[BY_FRAME_HEADER_BYTES + BY_HEADER_AT_SEQ], seq);
    }
    platform_close(self);
}

/* Without a clock a share has no limit. */
static void without_a_clock_no_frame_waits(void **state)
{
    struct batch_platform *self = platform_relay(BY_SHARE_ONE, 1000);
    const unsigned frames = 3000;

    (void)state;
    self->batch.timeless = true;
    for (unsigned i = 0; i < frames; i++) {
        relayed(self);
        by_batch_round(&self->batch);
    }
    assert_int_equal(self->forwarded, frames);
    platform_close(self);
}

/* Where much waits at a port, relayed packets are marked if their sender understands marks. */
static void packets_that_wait_behind_many_are_marked(void **state)
{
    static struct by_parked parked[1024];

    (void)state;
    for (uint8_t ecn = 0; ecn < 4; ecn++) {
        struct batch_platform *self = platform_relay(BY_SHARE_ONE, 1000);
        unsigned marked = 0, unmarked = 0, rounds = 0;

        by_park_open(&self->batch.park, parked, 1024);
        while (self->batch.park.count < 500 && rounds++ < 10000) {
            relayed(self);
            by_frame_mark(self->waiting[0][0]->data, ecn);
            by_batch_round(&self->batch);
        }
        assert_int_equal(self->batch.park.count, 500);
        while (self->batch.park.count > 0 && rounds++ < 20000) {
            struct by_frame fields;

            self->batch.now_ns += by_batch_idle_ns(&self->batch, UINT64_MAX);
            self->forwarded = 0;
            by_batch_round(&self->batch);
            if (self->forwarded == 0)
                continue;
            assert_int_equal(by_frame_parse(self->last.data, self->last.bytes, &fields), 0);
            assert_true(fields.ecn == ecn || (ecn != 0 && fields.ecn == 3));
            marked += fields.ecn == 3;
            unmarked += fields.ecn != 3;
        }
        assert_int_equal(marked > 0, ecn != 0);
        assert_int_equal(unmarked > 0, ecn != 3);
        platform_close(self);
    }
}

static void memory_ports_and_ports_without_a_vlan_have_no_tag(void **state)
{
    struct batch_platform *self = platform_open();
    struct star star = platform_fabric;
    size_t bytes;
    uint8_t *image = star_image(&star, &bytes);

    (void)state;
    for (uint32_t i = 0; i < HOSTS; i++) {
        struct by_image_port port;

        by_image_port(image, i, &port);
        port.vlan = 7;
        memset(port.peer_mac, 0, sizeof port.peer_mac);
        by_image_put_port(image, i, &port);
    }
    by_image_seal(image);
    self->batch.port[1].is_memory = true;
    self->batch.port[2].is_untagged = true;
    platform_load(self, image, bytes);
    free(image);
    assert_int_equal(self->batch.port[0].vlan, 7);
    assert_int_equal(self->batch.port[1].vlan, 0);
    assert_int_equal(self->batch.port[2].vlan, 0);
    /* A memory port has one peer, without an address. */
    assert_int_equal(self->batch.port[0].reach, BY_REACH_WAITS);
    assert_int_equal(self->batch.port[1].reach, BY_REACH_PEER);
    assert_memory_equal(by_batch_mac(&self->batch, 1, 1), zero, BY_MAC_BYTES);
    assert_null(by_batch_mac(&self->batch, 0, star_host_ip(0)));
    assert_int_equal(self->batch.neighbours.count, HOSTS - 1);
    platform_close(self);
}

/* A neighbour is one of the last table's; so is the place where packets of a port go. */
static void what_the_next_table_does_not_name_is_forgotten(void **state)
{
    struct batch_platform *self = platform_learned(LEARNED);
    size_t bytes;
    uint8_t *image = star_relay_image(0, 0, &bytes); /* two ports */

    (void)state;
    for (unsigned i = 0; i < BY_NEIGHBOUR_TRIES; i++) {
        announce(self, 3, mac);
        by_batch_round(&self->batch);
        self->batch.now_ns += BY_NEIGHBOUR_SLOW_NS;
    }
    for (uint16_t i = 0; i < HOSTS; i++)
        assert_int_equal(by_batch_silent(&self->batch, i) != NULL, i < 3);
    assert_non_null(by_batch_mac(&self->batch, 3, star_host_ip(3)));
    for (uint32_t i = 0; i < 2; i++) { /* the first two stay neighbours */
        struct by_image_port port;

        by_image_port(image, i, &port);
        memset(port.own_mac, 0, sizeof port.own_mac);
        memset(port.peer_mac, 0, sizeof port.peer_mac);
        by_image_put_port(image, i, &port);
    }
    by_image_seal(image);
    platform_load(self, image, bytes);
    free(image);
    for (uint16_t i = 0; i < HOSTS; i++)
        assert_int_equal(by_batch_silent(&self->batch, i) != NULL, i < 2);
    assert_null(by_batch_mac(&self->batch, 3, star_host_ip(3)));
    contribute(self, 3, 0);
    by_batch_round(&self->batch);
    assert_int_equal(self->batch.counters.rx_unaddressed, 1);
    platform_close(self);
}

static void each_port_may_be_one_of_memory(void **state)
{
    (void)state;
    for (uint16_t port = 0; port < HOSTS; port++) {
        struct batch_platform *self = platform_learned(LEARNED);

        self->batch.port[port].is_memory = true;
        by_batch_address(&self->batch);
        assert_int_equal(self->batch.neighbours.count, HOSTS - 1);
        for (uint16_t i = 0; i < HOSTS; i++)
            assert_int_equal(self->batch.port[i].reach, i == port ? BY_REACH_PEER : BY_REACH_WAITS);
        assert_null(by_neighbours_find(&self->batch.neighbours, port, star_host_ip(port)));
        platform_close(self);
    }
}

/* Without the platform's operation for notices, without memory for a request, and at a port that
 * has lost its address. */
static void a_request_that_cannot_be_sent_is_tried_again(void **state)
{
    struct batch_platform *self = platform_learned(LEARNED);

    (void)state;
    ops = platform_ops;
    ops.neighbour = NULL;
    self->batch.ops = &ops;
    self->is_full = true;
    self->batch.port[3].addressed = false;
    by_batch_round(&self->batch);
    assert_int_equal(self->batch.counters.tx_no_memory, HOSTS - 1);
    assert_int_equal(self->batch.counters.arp_requests, 0);
    self->is_full = false;
    self->batch.port[3].addressed = true;
    for (unsigned i = 0; i < 300; i++) {
        self->batch.now_ns = self->batch.neighbours.due_ns;
        by_batch_round(&self->batch);
    }
    assert_int_equal(self->batch.counters.arp_silent, HOSTS);
    assert_int_equal(self->notices, 0);
    announce(self, 0, mac); /* one of the silent answers */
    by_batch_round(&self->batch);
    assert_null(by_batch_silent(&self->batch, 0));
    assert_non_null(by_batch_silent(&self->batch, 1));
    platform_close(self);
}

static void a_round_sends_a_burst_of_requests_and_the_next_one_the_rest(void **state)
{
    struct batch_platform *self = platform_learned(BRIDGED);
    struct by_neighbours *neighbours = &self->batch.neighbours;
    const uint32_t count = BY_NEIGHBOUR_BURST + 4;

    (void)state;
    for (uint32_t i = 0; i < count; i++)
        neighbours->at[i] = (struct by_shell_neighbour){.ip = 1000 + i, .listed = true};
    neighbours->count = count;
    neighbours->due_ns = 0;
    by_batch_round(&self->batch);
    assert_int_equal(self->batch.counters.arp_requests, BY_NEIGHBOUR_BURST);
    by_batch_round(&self->batch);
    assert_int_equal(self->batch.counters.arp_requests, count);
    platform_close(self);
}

/* A known neighbour that has not answered three requests alone is asked as a stranger is. */
static void who_is_silent_at_its_address_is_asked_at_any(void **state)
{
    static const uint8_t all[BY_MAC_BYTES] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
    struct batch_platform *self = platform_learned(LEARNED);

    (void)state;
    by_batch_round(&self->batch);
    for (unsigned host = 0; host < HOSTS; host++)
        announce(self, host, mac);
    by_batch_round(&self->batch);
    for (unsigned i = 0; i < 4; i++) {
        self->batch.now_ns = self->batch.neighbours.due_ns;
        by_batch_round(&self->batch);
        assert_memory_equal(self->last.data, i < 2 ? mac : all, BY_MAC_BYTES);
    }
    platform_close(self);
}

static void what_is_no_request_for_a_port_is_not_answered(void **state)
{
    struct batch_platform *self = platform_learned(BRIDGED);
    struct batch_frame *frame;

    (void)state;
    frame = inject(self, 0, BY_FRAME_HEADER_BYTES); /* ARP of another protocol, at a bridge */
    by_put16(frame->data + BY_FRAME_AT_TYPE, 0x0806);
    by_batch_round(&self->batch);
    assert_int_equal(self->batch.counters.arp_replies, 0);
    assert_int_equal(self->batch.counters.rx_other, 0);
    self->batch.port[2].addressed = false;
    announce(self, 2, mac);
    by_batch_round(&self->batch);
    assert_int_equal(self->batch.counters.arp_replies, 0);
    platform_close(self);
}

/* The worker of such a port asks and answers there; this one learns what it hears. */
static void ports_of_other_workers_are_polled_last_and_answered_by_them(void **state)
{
    static const uint8_t head[] = {0x08, 0x06, 0, 1, 8, 0, 6, 4, 0, 1};
    struct batch_platform *self = platform_learned(LEARNED);
    struct batch_frame *frame;

    (void)state;
    self->batch.late = 1u << 2;
    by_batch_address(&self->batch);
    frame = inject(self, 2, BY_FRAME_HEADER_BYTES);
    memcpy(frame->data + BY_FRAME_AT_TYPE, head, sizeof head);
    memcpy(frame->data + 22, mac, sizeof mac);
    by_put32(frame->data + 28, star_host_ip(2));
    by_put32(frame->data + 38, star_port_ip(2));
    assert_int_equal(by_batch_round(&self->batch), 1);
    assert_int_equal(self->batch.counters.arp_replies, 0);
    assert_int_equal(self->batch.counters.arp_learned, 1);
    assert_memory_equal(by_batch_mac(&self->batch, 2, star_host_ip(2)), mac, sizeof mac);
    platform_close(self);
}

/* Each packet reaches the engine, although more arrive in a round than a batch holds. */
static uint32_t receive_many(void *context, uint16_t port)
{
    static uint8_t frame[FRAME_MAX];
    struct batch_platform *self = context;
    size_t bytes = star_relayed(&platform_fabric, frame);

    (void)port;
    for (unsigned i = 0; i < BY_BATCH_MAX; i++)
        by_batch_receive(&self->batch, 0, NULL, frame, (uint32_t)bytes);
    return BY_BATCH_MAX;
}

static void a_full_batch_is_stepped_before_the_next_port(void **state)
{
    struct batch_platform *self = platform_relay(0, 0);
    uint64_t before;

    (void)state;
    ops = platform_ops;
    ops.receive = receive_many;
    ops.done = NULL;
    self->batch.ops = &ops;
    self->batch.timeless = true;
    before = by_engine_counters(self->engine)->rx;
    assert_int_equal(by_batch_round(&self->batch), HOSTS * BY_BATCH_MAX);
    assert_int_equal(by_engine_counters(self->engine)->rx - before, HOSTS * BY_BATCH_MAX);
    assert_int_equal(self->batch.count, 0);
    assert_int_equal(self->dones, 0);
    platform_close(self);
}

static void packets_that_are_no_contributions_keep_their_places(void **state)
{
    struct batch_platform *self = platform_star();
    struct by_bank_view view;

    (void)state;
    for (unsigned host = 0; host < HOSTS; host++) {
        struct batch_frame *frame = contribute(self, host, 0);

        if (host == 1) { /* shorter than a header */
            by_put16(frame->data + BY_FRAME_AT_PORT + 2, 8 + 10);
            by_put16(frame->data + 16, 20 + 8 + 10);
            by_put16(frame->data + 24, 0);
        } else if (host == 2) { /* a probe, with a wrong tag */
            frame->data[BY_FRAME_HEADER_BYTES + BY_HEADER_AT_TYPE] = BY_TYPE_PROBE;
        }
    }
    by_batch_round(&self->batch);
    assert_int_equal(by_engine_counters(self->engine)->contrib, HOSTS - 2);
    assert_int_equal(by_engine_bank(self->engine, 0, 0, 0, &view), 0);
    assert_int_equal(view.missing, 0x6);
    contribute(self, 1, 0);
    contribute(self, 2, 0);
    by_batch_round(&self->batch);
    assert_int_equal(self->sent[0], 1);
    platform_close(self);
}

static void a_relay_to_an_unknown_receiver_is_dropped_and_counted(void **state)
{
    struct batch_platform *self = platform_open();
    size_t bytes;
    uint8_t *image = star_relay_image(0, 0, &bytes);
    struct by_image_port port;

    (void)state;
    by_image_port(image, 1, &port); /* the receiver is behind a bridge */
    memset(port.peer_mac, 0, sizeof port.peer_mac);
    port.peer_ip = 0;
    by_image_put_port(image, 1, &port);
    by_image_seal(image);
    platform_load(self, image, bytes);
    free(image);
    relayed(self);
    by_batch_round(&self->batch);
    assert_int_equal(self->batch.counters.tx_no_neighbour, 1);
    announce(self, 1, mac); /* from host 1 */
    by_batch_round(&self->batch);
    relayed(self);
    by_batch_round(&self->batch);
    assert_int_equal(self->forwarded, 1);
    assert_memory_equal(self->last.data, mac, sizeof mac);
    platform_close(self);
}

static void frames_held_longer_than_the_loop_would_sleep_do_not_wake_it(void **state)
{
    struct batch_platform *self = platform_relay(0, 0);

    (void)state;
    self->batch.hold.fault = (struct by_fault){.prng = {1}, .reorder = UINT32_MAX};
    relayed(self);
    by_batch_round(&self->batch);
    assert_int_equal(by_batch_idle_ns(&self->batch, BY_HOLD_NS + 1), BY_HOLD_NS);
    assert_int_equal(by_batch_idle_ns(&self->batch, BY_HOLD_NS - 1), BY_HOLD_NS - 1);
    platform_close(self);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_burst_fits_the_batch_within_its_limits),
        cmocka_unit_test(a_batch_is_opened_in_used_memory),
        cmocka_unit_test(the_first_port_of_a_round_changes_and_other_sources_are_polled_last),
        cmocka_unit_test(a_relay_without_a_frame_is_copied_or_counted),
        cmocka_unit_test(a_packet_that_waits_without_a_frame_is_counted_and_parked_frames_are_freed),
        cmocka_unit_test(frames_that_wait_together_leave_in_their_order),
        cmocka_unit_test(without_a_clock_no_frame_waits),
        cmocka_unit_test(packets_that_wait_behind_many_are_marked),
        cmocka_unit_test(what_the_next_table_does_not_name_is_forgotten),
        cmocka_unit_test(each_port_may_be_one_of_memory),
        cmocka_unit_test(memory_ports_and_ports_without_a_vlan_have_no_tag),
        cmocka_unit_test(a_request_that_cannot_be_sent_is_tried_again),
        cmocka_unit_test(a_round_sends_a_burst_of_requests_and_the_next_one_the_rest),
        cmocka_unit_test(who_is_silent_at_its_address_is_asked_at_any),
        cmocka_unit_test(what_is_no_request_for_a_port_is_not_answered),
        cmocka_unit_test(ports_of_other_workers_are_polled_last_and_answered_by_them),
        cmocka_unit_test(a_full_batch_is_stepped_before_the_next_port),
        cmocka_unit_test(packets_that_are_no_contributions_keep_their_places),
        cmocka_unit_test(a_relay_to_an_unknown_receiver_is_dropped_and_counted),
        cmocka_unit_test(frames_held_longer_than_the_loop_would_sleep_do_not_wake_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
