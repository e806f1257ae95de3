/*
 * Validation of received packets: each malformed kind has its own counter and no effect, jobs and
 * trees stay separate, relays, the local port, and steps that stop when the actions might not fit.
 */
#include "tests/unit/offload/engine/rig.h"

#include "offload/base/bytes.h"
#include "offload/base/crc32c.h"
#include "offload/base/prng.h"
#include "offload/wire/datagram.h"

static struct engine_rig rig;
static const struct rig_entry trees[] = {
    {.job = 1, .tree = 0, .gen = 7, .root = 1, .children = 2, .window = 4},
    {.job = 1, .tree = 3, .gen = 7, .root = 0, .children = 2, .window = 4, .slot_base = 4},
    {.job = 9, .tree = 0, .gen = 2, .root = 1, .children = 3, .window = 2, .slot_base = 8, .payload_max = 64},
};
static const float values[2] = {1, 2};

static int start(void **state)
{
    (void)state;
    rig_start(&rig, trees, 3);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    rig_close(&rig);
    return 0;
}

static const struct by_engine_counters *counters(void)
{
    return by_engine_counters(rig.engine);
}

/* Writes a valid contribution of child 0 on tree 0. A test may change it and renew the header's
 * tag. */
static size_t sound(uint8_t *bytes)
{
    struct rig_packet packet = rig_contrib(&trees[0], 0, 0, values, 2);

    packet.header.psum = by_psum(values, 8);
    by_header_encode(&packet.header, bytes);
    memcpy(bytes + BY_WIRE_HEADER_BYTES, values, 8);
    return BY_WIRE_HEADER_BYTES + 8;
}

static void reseal(uint8_t *bytes)
{
    by_put64(bytes + 32, by_crc32c(0, bytes, 32));
}

#define AT(name) offsetof(struct by_engine_counters, name)

static void every_malformed_packet_is_counted_for_its_own_reason(void **state)
{
    static const struct {
        const char *what;
        size_t counter;
        int at; /* offset of the byte to change; -1: none */
        uint8_t value;
        int cut; /* bytes removed at the end */
        uint16_t port;
        uint32_t ip;
        int unsealed;
    } rows[] = {
        {"empty", AT(drop_format), -1, 0, 48, 0, 0, 0},
        {"short", AT(drop_format), -1, 0, 9, 0, 0, 0},
        {"header length", AT(drop_format), 0, 0x14, 0, 0, 0, 0},
        {"version", AT(drop_version), 0, 0x25, 0, 0, 0, 0},
        {"tag", AT(drop_tag), 15, 9, 0, 0, 0, 1},
        {"type 0", AT(drop_format), 1, 0, 0, 0, 0, 0},
        {"type 6", AT(drop_format), 1, 6, 0, 0, 0, 0},
        {"keyed", AT(drop_key), 2, BY_FLAG_KEYED, 0, 0, 0, 0},
        {"NODATA with data", AT(drop_format), 2, BY_FLAG_NODATA, 0, 0, 0, 0},
        {"unknown job", AT(drop_entry), 5, 2, 0, 0, 0, 0},
        {"job beyond the limit", AT(drop_entry), 4, 0xff, 0, 0, 0, 0},
        {"unknown tree", AT(drop_entry), 7, 1, 0, 0, 0, 0},
        {"older generation", AT(drop_gen), 9, 6, 0, 0, 0, 0},
        {"newer generation", AT(drop_gen), 8, 1, 0, 0, 0, 0},
        {"no such child", AT(drop_child), 3, 2, 0, 0, 0, 0},
        {"child 255", AT(drop_child), 3, 255, 0, 0, 0, 0},
        {"another child's port", AT(drop_ingress), -1, 0, 0, 1, RIG_CHILD_IP, 0},
        {"another child's address", AT(drop_ingress), -1, 0, 0, 0, RIG_CHILD_IP + 1, 0},
        {"child of another address", AT(drop_ingress), 3, 1, 0, 0, 0, 0},
        {"local port", AT(drop_ingress), -1, 0, 0, BY_PORT_LOCAL, RIG_CHILD_IP, 0},
        {"port that does not exist", AT(drop_ingress), -1, 0, 0, 999, RIG_CHILD_IP, 0},
        {"result to a root", AT(drop_ingress), 1, BY_TYPE_RESULT, 0, 0, 0, 0},
        {"wait of another size", AT(drop_count), 1, BY_TYPE_WAIT, 0, 0, 0, 0},
        {"payload cut", AT(drop_count), -1, 0, 1, 0, 0, 0},
        {"payload cut off", AT(drop_count), -1, 0, 8, 0, 0, 0},
        {"count too small", AT(drop_count), 21, 1, 0, 0, 0, 0},
        {"count beyond the payload limit", AT(drop_count), 20, 1, 0, 0, 0, 0},
        {"count 65282", AT(drop_count), 20, 0xff, 0, 0, 0, 0},
        {"psum", AT(drop_psum), 24, 0x55, 0, 0, 0, 0},
        {"payload changed", AT(drop_psum), 45, 0x55, 0, 0, 0, 0},
        {"err without its payload", AT(drop_count), 1, BY_TYPE_ERR, 0, 0, 0, 0},
        {"probe with a payload", AT(drop_count), 1, BY_TYPE_PROBE, 0, 0, 0, 0},
    };

    (void)state;
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint8_t bytes[64];
        size_t size = sound(bytes);
        uint64_t contrib = counters()->contrib;
        uint32_t ip = rows[i].ip ? rows[i].ip : RIG_CHILD_IP;
        uint8_t *exact;

        if (rows[i].at >= 0)
            bytes[rows[i].at] = rows[i].value;
        if (!rows[i].unsealed)
            reseal(bytes);
        size -= (size_t)rows[i].cut;
        exact = malloc(size + 1);
        memcpy(exact + 1, bytes, size);
        print_message("%s\n", rows[i].what);
        rig_send_bytes(&rig, exact + 1, size, rows[i].port, ip, RIG_OWN_IP);
        free(exact);
        rig_expect_drop(&rig, rows[i].counter);
        assert_int_equal(rig.tx_count, 0);
        assert_int_equal(counters()->contrib, contrib);
        assert_int_equal(rig_bank(&rig, 0, 0, 0).have, 0);
    }
    assert_int_equal(counters()->rx, sizeof(rows) / sizeof(rows[0]));
}

static void a_payload_that_fails_its_sum_leaves_the_chunk_as_it_was(void **state)
{
    const float sum[2] = {2, 4};

    (void)state;
    for (uint32_t seq = 0; seq < 12; seq++) {
        for (unsigned c = 0; c < 2; c++) {
            struct rig_packet packet = rig_contrib(&trees[0], c, seq, values, 2);
            struct rig_packet bad = rig_contrib(&trees[0], c, seq, sum, 2);

            bad.psum_as_given = 1;
            rig_send(&rig, &bad); /* must not count, whether it comes first or second */
            rig_expect_drop_of(&rig, drop_psum);
            rig_send(&rig, &packet);
        }
        rig_expect_results(&rig, &trees[0], seq, sum, 2);
        rig_release(&rig);
    }
}

static void a_value_from_memory_is_added_whatever_its_psum(void **state)
{
    const float sum[2] = {3, 6};

    (void)state;
    for (uint32_t seq = 0; seq < 12; seq++) {
        for (unsigned c = 0; c < 3; c++) {
            struct rig_packet packet = rig_contrib(&trees[2], c, seq, values, 2);

            packet.psum_as_given = packet.direct = 1;
            packet.header.psum = 77;
            rig_send(&rig, &packet);
        }
        rig_expect_results(&rig, &trees[2], seq, sum, 2); /* this tree gets the correct packets */
        rig_release(&rig);
    }
}

static void a_result_needs_its_psum_wherever_it_comes_from(void **state)
{
    struct rig_packet result = rig_result(&trees[1], 0, values, 2);

    (void)state;
    for (unsigned c = 0; c < 2; c++) {
        struct rig_packet packet = rig_contrib(&trees[1], c, 0, values, 2);

        rig_send(&rig, &packet);
    }
    rig_release(&rig);
    result.psum_as_given = result.direct = 1;
    result.header.psum = 77;
    rig_send(&rig, &result);
    rig_expect_drop_of(&rig, drop_psum);
}

static void jobs_and_trees_do_not_meet(void **state)
{
    const float up[2] = {2, 4}, three[2] = {3, 6};

    (void)state;
    for (unsigned t = 0; t < 3; t++)
        for (unsigned c = 0; c + 1 < trees[t].children; c++) {
            struct rig_packet packet = rig_contrib(&trees[t], c, 0, values, 2);

            rig_send(&rig, &packet);
            assert_int_equal(rig.tx_count, 0);
        }
    for (unsigned t = 0; t < 3; t++) {
        struct rig_packet packet = rig_contrib(&trees[t], trees[t].children - 1u, 0, values, 2);

        rig_send(&rig, &packet);
        if (t == 1)
            rig_expect_up(&rig, &trees[t], 0, 0, up, 2);
        else
            rig_expect_results(&rig, &trees[t], 0, t == 0 ? up : three, 2);
        rig_release(&rig);
    }
}

static void the_payload_limit_is_that_of_the_entry(void **state)
{
    static const float many[17];
    struct rig_packet packet = rig_contrib(&trees[2], 0, 0, many, 17);

    (void)state;
    rig_send(&rig, &packet);
    rig_expect_drop_of(&rig, drop_count);
    packet = rig_credit(&trees[2], 0, 0, 17, 0); /* a credit for an impossible chunk */
    rig_send(&rig, &packet);
    rig_expect_drop_of(&rig, drop_count);
    packet = rig_contrib(&trees[2], 0, 0, many, 16);
    rig_send(&rig, &packet);
    assert_int_equal(counters()->contrib, 1);
}

/* ---- relays ---- */

static const struct by_image_relay relays[] = {
    {1, 0, 0x0d000001, 0x0d000002, 4, 1 + 3},
    {1, 5, 0x0d000001, 0x0d000002, 5, 1 + 3},
    {1, 5, 0x0d000002, 0x0d000001, 6, 1 + 3},
    {9, 0, 0x0d000001, 0x0d000002, 7, 0}, /* from an old image, without a port of arrival */
};

static void stage_relays(void)
{
    size_t bytes;
    const uint8_t *image = rig_image(trees, 3, relays, 4, &bytes);

    assert_int_equal(by_engine_stage(rig.engine, image, bytes, NULL), 0);
    assert_int_equal(by_engine_commit(rig.engine), 0);
}

static void packets_for_others_are_relayed_by_job_tree_and_addresses(void **state)
{
    uint8_t bytes[64];
    size_t size;

    (void)state;
    stage_relays();
    for (unsigned i = 0; i < 4; i++) {
        size = sound(bytes);
        by_put16(bytes + 4, relays[i].job);
        by_put16(bytes + 6, relays[i].tree);
        by_put16(bytes + 8, 99); /* any generation */
        reseal(bytes);
        rig_send_bytes(&rig, bytes, size, 3, relays[i].src_ip, relays[i].dst_ip);
        assert_int_equal(rig.tx_count, 1);
        assert_int_equal(rig.tx[0].kind, BY_TX_RELAY);
        assert_int_equal(rig.tx[0].port, relays[i].port);
        assert_int_equal(rig.tx[0].rx_index, 0);
        assert_int_equal(rig.tx[0].ref, BY_REF_NONE);
        assert_int_equal(counters()->relay, i + 1);
    }
    /* No relay has these addresses, and a packet with a damaged header is not forwarded. */
    size = sound(bytes);
    rig_send_bytes(&rig, bytes, size, 3, 0x0d000002, 0x0d000002);
    assert_int_equal(rig.tx_count, 0);
    rig_expect_drop_of(&rig, drop_ingress);
    bytes[20] ^= 1;
    rig_send_bytes(&rig, bytes, size, 3, 0x0d000001, 0x0d000002);
    assert_int_equal(rig.tx_count, 0);
    rig_expect_drop_of(&rig, drop_tag);
}

static void a_packet_is_relayed_only_if_it_comes_by_the_port_of_its_relay(void **state)
{
    uint8_t bytes[64];

    (void)state;
    stage_relays();
    for (unsigned i = 0; i < 4; i++) {
        size_t size = sound(bytes);

        by_put16(bytes + 4, relays[i].job);
        by_put16(bytes + 6, relays[i].tree);
        reseal(bytes);
        for (uint16_t port = 0; port < 6; port++) {
            uint64_t relayed = counters()->relay, dropped = counters()->drop_ingress;
            int takes = port == 3 || relays[i].from == 0;

            rig_send_bytes(&rig, bytes, size, port, relays[i].src_ip, relays[i].dst_ip);
            assert_int_equal(rig.tx_count, takes);
            assert_int_equal(counters()->relay, relayed + (uint64_t)takes);
            assert_int_equal(counters()->drop_ingress, dropped + !takes);
        }
    }
}

static void packets_for_this_node_are_not_relayed(void **state)
{
    struct rig_packet packet = rig_contrib(&trees[0], 0, 0, values, 2);

    (void)state;
    stage_relays();
    rig_send(&rig, &packet);
    assert_int_equal(counters()->contrib, 1);
    packet = rig_contrib(&trees[0], 1, 0, values, 2);
    packet.dst_ip = RIG_OWN_IP + 6; /* arrives at one port, with the address of another */
    rig_send(&rig, &packet);
    assert_int_equal(counters()->contrib, 2);
    assert_int_equal(counters()->relay, 0);
}

/* ---- steps ---- */

static void a_step_stops_before_actions_might_not_fit_and_goes_on_later(void **state)
{
    enum { SEQS = 40, CHILDREN = 64, TX = BY_CHILDREN_MAX + 6, BEYOND = 8 * 66 };
    static const struct rig_entry wide = {.job = 1, .gen = 7, .root = 1, .children = CHILDREN, .window = 64};
    static uint8_t bytes[SEQS * CHILDREN][48];
    static struct by_rx rx[SEQS * CHILDREN];
    struct by_tx tx[TX + BEYOND];
    uint32_t done = 0, results = 0, steps = 0;

    (void)state;
    rig_close(&rig);
    rig_start(&rig, &wide, 1);
    for (uint32_t i = 0; i < SEQS * CHILDREN; i++) {
        /* One child after another, so that each packet of the last child completes a chunk. */
        struct rig_packet packet = rig_contrib(&wide, i / SEQS, i % SEQS, values, 2);

        packet.header.psum = by_psum(values, 8);
        by_header_encode(&packet.header, bytes[i]);
        memcpy(bytes[i] + BY_WIRE_HEADER_BYTES, values, 8);
        rx[i] = (struct by_rx){.data = bytes[i],
                               .bytes = 48,
                               .port = packet.port,
                               .src_ip = packet.src_ip,
                               .dst_ip = packet.dst_ip};
    }
    memset(&tx[TX], 0x77, sizeof(tx[TX]));
    while (done < SEQS * CHILDREN) {
        uint32_t count,
            consumed = by_engine_step(rig.engine, 1, rx + done, SEQS * CHILDREN - done, tx, TX, &count);

        assert_true(consumed > 0 && count <= TX);
        for (uint32_t i = 0; i < count; i++)
            by_engine_release(rig.engine, tx[i].ref);
        done += consumed;
        results += count;
        steps++;
    }
    assert_int_equal(results, SEQS * CHILDREN);
    assert_int_equal(steps, SEQS); /* none before the last child, then one chunk in each step */
    assert_int_equal(counters()->rx, SEQS * CHILDREN);
    assert_int_equal(((const uint8_t *)&tx[TX])[0], 0x77);
}

static void a_burst_gives_the_same_as_its_packets_one_by_one(void **state)
{
    enum { SEQS = 6 };
    uint8_t bytes[SEQS * 2][48];
    struct by_rx rx[SEQS * 2];
    uint32_t count;

    (void)state;
    for (uint32_t i = 0; i < SEQS * 2; i++) { /* two adjacent packets per chunk, the second completes it */
        struct rig_packet packet = rig_contrib(&trees[0], i % 2, i / 2, values, 2);

        packet.header.psum = by_psum(values, 8);
        by_header_encode(&packet.header, bytes[i]);
        memcpy(bytes[i] + BY_WIRE_HEADER_BYTES, values, 8);
        rx[i] = (struct by_rx){.data = bytes[i], .bytes = 48, .port = packet.port, .src_ip = packet.src_ip};
    }
    assert_int_equal(by_engine_step(rig.engine, 1, rx, SEQS * 2, rig.tx, RIG_TX, &count), SEQS * 2);
    assert_int_equal(count, SEQS * 2);
    rig.tx_count = count;
    for (uint32_t i = 0; i < count; i++) {
        struct by_header header = rig_action(&rig, &trees[0], i, NULL);

        assert_int_equal(header.seq, i / 2);
        assert_int_equal(header.child, i % 2);
        assert_memory_equal(rig.tx[i].payload, ((const float[2]){2, 4}), 8);
    }
    rig_release(&rig);
}

/* Writes `count` credits of a child, from chunk `first` on, one header after another. */
static uint16_t credits(uint8_t *bytes, const struct rig_entry *entry, unsigned child, uint32_t first,
                        uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        struct rig_packet packet = rig_credit(entry, child, first + i, 2, 0);

        by_header_encode(&packet.header, bytes + (size_t)i * BY_WIRE_HEADER_BYTES);
    }
    return (uint16_t)(count * BY_WIRE_HEADER_BYTES);
}

static void a_datagram_of_credits_is_as_good_as_that_many_packets(void **state)
{
    uint8_t bytes[5 * BY_WIRE_HEADER_BYTES];
    uint16_t size = credits(bytes, &trees[0], 0, 0, 4);

    (void)state;
    rig_send_bytes(&rig, bytes, size, 0, RIG_CHILD_IP, RIG_OWN_IP);
    assert_int_equal(rig.tx_count, 0);
    assert_int_equal(counters()->contrib, 4);
    for (uint32_t seq = 0; seq < 4; seq++) {
        struct rig_packet packet = rig_contrib(&trees[0], 1, seq, values, 2);

        rig_send(&rig, &packet);
        rig_expect_results(&rig, &trees[0], seq, values, 2);
        rig_release(&rig);
    }
    /* A damaged header loses only its own credit and the right to mark the end of the datagram. */
    size = credits(bytes, &trees[0], 0, 4, 4);
    bytes[BY_WIRE_HEADER_BYTES + 20] ^= 1;
    rig_send_bytes(&rig, bytes, size, 0, RIG_CHILD_IP, RIG_OWN_IP);
    assert_int_equal(counters()->contrib, 4 + 4 + 3);
    rig_expect_drop_of(&rig, drop_tag);
    /* A datagram of credits may not contain packets of different trees. */
    size = credits(bytes, &trees[0], 0, 8, 1);
    credits(bytes + size, &trees[1], 0, 0, 1);
    rig_send_bytes(&rig, bytes, (uint16_t)(2 * size), 0, RIG_CHILD_IP, RIG_OWN_IP);
    rig_expect_drop_of(&rig, drop_format);
}

/* Writes `count` credits that relays[0] forwards. */
static uint16_t credits_for_others(uint8_t *bytes, unsigned count)
{
    uint16_t size = credits(bytes, &trees[0], 0, 0, count);

    for (unsigned i = 0; i < count; i++, bytes += BY_WIRE_HEADER_BYTES) {
        by_put16(bytes + 4, relays[0].job);
        by_put16(bytes + 6, relays[0].tree);
        reseal(bytes);
    }
    return size;
}

static void a_datagram_of_more_packets_than_the_limit_is_malformed(void **state)
{
    uint8_t bytes[(BY_DATAGRAM_PACKETS_MAX + 19) * BY_WIRE_HEADER_BYTES];

    (void)state;
    for (unsigned i = 0; i < 35; i++)
        (void)credits(bytes + i * BY_WIRE_HEADER_BYTES, &trees[0], 0, 0, 1);
    rig_send_bytes(&rig, bytes, BY_DATAGRAM_PACKETS_MAX * BY_WIRE_HEADER_BYTES, 0, RIG_CHILD_IP, RIG_OWN_IP);
    assert_int_equal(counters()->contrib, 1);
    assert_int_equal(counters()->duplicate, BY_DATAGRAM_PACKETS_MAX - 1);
    for (unsigned count = BY_DATAGRAM_PACKETS_MAX + 1; count <= 35; count++) {
        rig_send_bytes(&rig, bytes, (uint16_t)(count * BY_WIRE_HEADER_BYTES), 0, RIG_CHILD_IP, RIG_OWN_IP);
        rig_expect_drop_of(&rig, drop_format);
        assert_int_equal(rig.tx_count, 0);
    }
    assert_int_equal(counters()->duplicate, BY_DATAGRAM_PACKETS_MAX - 1);
}

static void a_datagram_for_others_is_relayed_once_and_whole(void **state)
{
    uint8_t bytes[4 * BY_WIRE_HEADER_BYTES];
    uint16_t size = credits_for_others(bytes, 4);

    (void)state;
    stage_relays();
    rig_send_bytes(&rig, bytes, size, 3, relays[0].src_ip, relays[0].dst_ip);
    assert_int_equal(rig.tx_count, 1);
    assert_int_equal(rig.tx[0].kind, BY_TX_RELAY);
    assert_int_equal(counters()->relay, 1);
}

/* Valid packets after a damaged one are neither relayed nor taken as packets for this node. */
static void a_datagram_for_others_goes_by_its_first_packet(void **state)
{
    uint8_t bytes[3 * BY_WIRE_HEADER_BYTES];

    (void)state;
    stage_relays();
    for (unsigned bad = 0; bad < 3; bad++) {
        uint64_t relay = counters()->relay, tag = counters()->drop_tag, entry = counters()->drop_entry;
        uint16_t size = credits_for_others(bytes, 3);

        bytes[bad * BY_WIRE_HEADER_BYTES + 12] ^= 1; /* in the sequence number */
        rig_send_bytes(&rig, bytes, size, 3, relays[0].src_ip, relays[0].dst_ip);
        assert_int_equal(rig.tx_count, bad > 0);
        assert_int_equal(counters()->relay, relay + (bad > 0));
        assert_int_equal(counters()->drop_tag, tag + (bad == 0));
        assert_int_equal(counters()->drop_entry, entry + (bad == 0)); /* the others, counted once */
    }
}

static void a_step_that_stops_within_a_datagram_goes_on_there(void **state)
{
    enum { CHILDREN = 64, SEQS = 10, TX = BY_CHILDREN_MAX + 6 };
    static const struct rig_entry wide = {.job = 1, .gen = 7, .root = 1, .children = CHILDREN, .window = 64};
    static uint8_t bytes[CHILDREN][SEQS * BY_WIRE_HEADER_BYTES];
    struct by_rx rx[CHILDREN];
    struct by_tx tx[TX];
    uint32_t done = 0, results = 0, steps = 0;

    (void)state;
    rig_close(&rig);
    rig_start(&rig, &wide, 1);
    for (uint32_t child = 0; child < CHILDREN; child++) {
        struct rig_packet packet = rig_credit(&wide, child, 0, 2, 0);

        rx[child] = (struct by_rx){.data = bytes[child],
                                   .bytes = credits(bytes[child], &wide, child, 0, SEQS),
                                   .port = packet.port,
                                   .src_ip = packet.src_ip,
                                   .dst_ip = packet.dst_ip};
    }
    for (; done < CHILDREN && steps < 2 * SEQS; steps++) {
        uint32_t count, used = by_engine_step(rig.engine, 1, rx + done, CHILDREN - done, tx, TX, &count);

        assert_true(used > 0 || count > 0);
        done += used;
        results += count;
    }
    assert_int_equal(done, CHILDREN);
    assert_int_equal(results, SEQS * CHILDREN);
    assert_int_equal(counters()->contrib, SEQS * CHILDREN);
    assert_int_equal(counters()->rx, SEQS * CHILDREN);
}

static void an_endpoint_of_this_host_is_a_child_by_the_local_port(void **state)
{
    static uint8_t image[2048];
    struct by_image_header header = {.node = 4,
                                     .kind = BY_NODE_HOST,
                                     .slot_count = 2,
                                     .payload_max = 64,
                                     .name = "h",
                                     .count = {1, 1, 1, 2, 1, 0, 0, 0}};
    struct by_image_port port = {.name = "eth0", .own_ip = RIG_OWN_IP, .mtu = 1500};
    struct by_image_job job = {1, 1, 2, 0, 1, 5000, 0};
    struct by_image_entry entry = {
        .job = 1, .parent_node = BY_NODE_NONE, .child_count = 2, .window = 2, .payload_max = 64, .nleaf = 2};
    struct by_image_child child[2] = {{BY_PORT_LOCAL, 4, 0x01020304, 99, 0}, {0, 5, RIG_CHILD_IP, 6000, 1}};
    struct by_image_leaf leaf = {.job = 1,
                                 .parent_port = BY_PORT_LOCAL,
                                 .parent_node = 4,
                                 .window = 2,
                                 .payload_max = 64,
                                 .collectives = 1 << BY_COLLECTIVE_ALLREDUCE,
                                 .owner = BY_RANK_NONE,
                                 .share = 1,
                                 .modes = 0x0e,
                                 .ops = 0xfe,
                                 .dtypes = 0x7fe};
    const struct rig_entry like = {.job = 1, .gen = 1, .root = 1, .children = 2, .window = 2};
    struct rig_packet packet = rig_contrib(&like, 0, 0, values, 2);

    (void)state;
    by_image_put_header(image, &header);
    by_image_put_port(image, 0, &port);
    by_image_put_job(image, 0, &job);
    by_image_put_entry(image, 0, &entry);
    by_image_put_child(image, 0, &child[0]);
    by_image_put_child(image, 1, &child[1]);
    by_image_put_leaf(image, 0, &leaf);
    by_image_seal(image);
    assert_int_equal(by_engine_stage(rig.engine, image, by_image_bytes(header.count), NULL), 0);
    assert_int_equal(by_engine_commit(rig.engine), 0);
    rig_send(&rig, &packet); /* the source of child 0, but not from the local port */
    rig_expect_drop_of(&rig, drop_ingress);
    packet.port = BY_PORT_LOCAL;
    packet.src_ip = 0x55555555; /* not checked */
    rig_send(&rig, &packet);
    assert_int_equal(counters()->contrib, 1);
    packet = rig_contrib(&like, 1, 0, values, 2);
    packet.port = 0;
    packet.src_ip = RIG_CHILD_IP;
    rig_send(&rig, &packet);
    assert_int_equal(rig.tx_count, 2);
    assert_int_equal(rig.tx[0].port, BY_PORT_LOCAL);
    assert_int_equal(rig.tx[1].port, 0);
    assert_int_equal(rig.tx[1].dst_ip, RIG_CHILD_IP);
    rig_release(&rig);
}

/* Returns a packet of mostly valid fields around chunk `near`, from the correct port and
 * address. */
static void random_packet(struct by_prng *prng, const struct rig_entry *entry, uint32_t near, uint8_t *bytes,
                          struct by_rx *rx)
{
    uint64_t r = by_prng_next(prng);
    uint16_t size = r & 0x1f ? 16 : (uint16_t)(4 * (r >> 5 & 7));
    struct by_header header = {.type = (uint8_t)(r >> 8 & 1 ? BY_TYPE_CONTRIB : 1 + by_prng_below(prng, 5)),
                               .flags = (uint8_t)(r >> 9 & r >> 16 & 0x5f),
                               .child = (uint8_t)by_prng_below(prng, entry->children),
                               .op = (uint8_t)(r >> 24 & 0x3f ? BY_OP_SUM : r >> 30 & 15),
                               .dtype = BY_DTYPE_F32,
                               .mode = BY_MODE_FAST,
                               .job = entry->job,
                               .tree = entry->tree,
                               .gen = entry->gen,
                               .count = size / 4,
                               .nleaf = 1,
                               .seq = near + (r >> 34 & 1 ? 0 : (uint32_t)(r >> 35 & 15) - 8)};

    rx->port = header.child;
    rx->src_ip = RIG_CHILD_IP + header.child;
    if (header.type == BY_TYPE_ERR && r >> 40 & 0x1f)
        header.type = BY_TYPE_CONTRIB; /* otherwise most chunks would be poisoned */
    if (!entry->root && (header.type == BY_TYPE_RESULT || header.type == BY_TYPE_WAIT)) {
        rx->port = RIG_PARENT_PORT;
        rx->src_ip = RIG_PARENT_IP;
        header.child = RIG_PARENT_CHILD;
    }
    if (header.flags & BY_FLAG_NODATA)
        size = 0;
    if (header.type == BY_TYPE_ERR) {
        const struct by_err err = {.node = 1, .reason = (uint8_t)(1 + (r >> 45 & 3)), .seq = header.seq};

        size = BY_ERR_BYTES;
        header.flags &= BY_FLAG_POISON;
        by_err_encode(&err, bytes + BY_WIRE_HEADER_BYTES);
    } else {
        for (unsigned i = 0; i < size; i++)
            bytes[BY_WIRE_HEADER_BYTES + i] = (uint8_t)(r >> i % 48);
    }
    header.psum = by_psum(bytes + BY_WIRE_HEADER_BYTES, size);
    by_header_encode(&header, bytes);
    rx->data = bytes;
    rx->bytes = (uint16_t)(BY_WIRE_HEADER_BYTES + size);
    rx->ecn = (uint8_t)(r >> 62);
}

/* No crash (sanitizers), no lost reference, no actions beyond what the children need. The packets
 * reach all states. */
static void random_packets_leave_the_engine_whole(void **state)
{
    static uint8_t bytes[BY_WIRE_HEADER_BYTES + 64];
    struct by_prng prng = {.state = 20240607};
    uint32_t near[3] = {0};

    (void)state;
    for (unsigned round = 0; round < 300000; round++) {
        unsigned t = (unsigned)by_prng_below(&prng, 3);
        struct by_bank_view view;
        struct by_rx rx = {0};

        /* The oldest incomplete chunk, or the next one without contributions. */
        view = rig_bank(&rig, t, near[t] & (trees[t].window - 1u), near[t] / trees[t].window & 1);
        if (view.seq == near[t] && (view.state == BY_BANK_DONE || view.state == BY_BANK_POISON))
            near[t]++;
        random_packet(&prng, &trees[t], near[t], bytes, &rx);
        rig.now_ns += by_prng_below(&prng, RIG_INTERVAL_NS / 4);
        assert_int_equal(by_engine_step(rig.engine, rig.now_ns, &rx, 1, rig.tx, RIG_TX, &rig.tx_count), 1);
        assert_true(rig.tx_count <= trees[t].children + 1u);
        for (uint32_t i = 0; i < rig.tx_count; i++)
            rig_action(&rig, &trees[t], i, NULL);
        rig_release(&rig);
    }
    for (uint32_t t = 0; t < 3; t++)
        for (uint32_t s = 0; s < trees[t].window; s++)
            for (unsigned b = 0; b < 2; b++)
                assert_int_equal(rig_bank(&rig, t, s, b).refs, 0);
    print_message("complete %llu result %llu poison %llu duplicate %llu\n",
                  (unsigned long long)counters()->complete, (unsigned long long)counters()->result,
                  (unsigned long long)counters()->poison, (unsigned long long)counters()->duplicate);
    assert_true(counters()->complete > 100 && counters()->result > 100 && counters()->poison > 100);
    assert_true(counters()->repair_up > 100 && counters()->repair_result > 100 && counters()->wait > 100);
}

#define T(f) cmocka_unit_test_setup_teardown(f, start, stop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(every_malformed_packet_is_counted_for_its_own_reason),
        T(a_payload_that_fails_its_sum_leaves_the_chunk_as_it_was),
        T(a_value_from_memory_is_added_whatever_its_psum),
        T(a_result_needs_its_psum_wherever_it_comes_from),
        T(jobs_and_trees_do_not_meet),
        T(the_payload_limit_is_that_of_the_entry),
        T(packets_for_others_are_relayed_by_job_tree_and_addresses),
        T(a_packet_is_relayed_only_if_it_comes_by_the_port_of_its_relay),
        T(packets_for_this_node_are_not_relayed),
        T(a_step_stops_before_actions_might_not_fit_and_goes_on_later),
        T(a_burst_gives_the_same_as_its_packets_one_by_one),
        T(a_datagram_of_credits_is_as_good_as_that_many_packets),
        T(a_datagram_of_more_packets_than_the_limit_is_malformed),
        T(a_datagram_for_others_is_relayed_once_and_whole),
        T(a_datagram_for_others_goes_by_its_first_packet),
        T(a_step_that_stops_within_a_datagram_goes_on_there),
        T(an_endpoint_of_this_host_is_a_child_by_the_local_port),
        T(random_packets_leave_the_engine_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
