/*
 * All collectives on the same state machine, by the flags of contributions, which state whether a
 * child has data and whether it needs the value. Also trees of two levels, assembled by hand from
 * three engines.
 */
#include "tests/unit/offload/engine/rig.h"

static struct engine_rig rig;
static const struct rig_entry root = {.job = 1, .gen = 7, .root = 1, .children = 3, .window = 4};
static const struct rig_entry below = {.job = 1, .gen = 7, .root = 0, .children = 3, .window = 4};
static const float three[3][2] = {{1, 10}, {2, 20}, {4, 40}};

static int stop(void **state)
{
    (void)state;
    rig_close(&rig);
    return 0;
}

/* What each of three children contributes: data or none, and whether the value is needed below
 * it. */
struct collectives_row {
    const char *what;
    uint8_t data, acks; /* bitmaps of children */
    uint16_t count;
    float sum[2];    /* of the children with data */
    uint8_t up;      /* flags of the contribution to the parent */
    uint8_t results; /* children that get the value */
};

static const struct collectives_row rows[] = {
    {"allreduce", 7, 0, 2, {7, 70}, 0, 7},
    {"reduce to a leaf below child 1", 7, 5, 2, {7, 70}, 0, 2},
    {"reduce to a leaf elsewhere", 7, 7, 2, {7, 70}, BY_FLAG_ACKONLY, 0},
    {"broadcast from a leaf below child 2", 4, 4, 2, {4, 40}, 0, 3},
    {"broadcast from elsewhere", 0, 0, 2, {0, 0}, BY_FLAG_NODATA, 0},
    {"barrier", 0, 7, 0, {0, 0}, BY_FLAG_NODATA | BY_FLAG_ACKONLY, 0},
};

static void say(const struct rig_entry *entry, const struct collectives_row *row, unsigned child,
                uint32_t seq)
{
    uint8_t ack = row->acks >> child & 1 ? BY_FLAG_ACKONLY : 0;
    struct rig_packet packet = row->data >> child & 1
                                   ? rig_contrib(entry, child, seq, three[child], row->count)
                                   : rig_credit(entry, child, seq, row->count, 0);

    packet.header.flags |= ack;
    rig_send(&rig, &packet);
}

static void expect_result(const struct rig_entry *entry, uint32_t index, unsigned child, int data,
                          const float *values, uint16_t count, const char *what)
{
    const uint8_t *payload;
    struct by_header header = rig_action(&rig, entry, index, &payload);

    if (header.type != BY_TYPE_RESULT || header.child != child || header.count != count ||
        (header.flags & BY_FLAG_NODATA) != (data ? 0 : BY_FLAG_NODATA))
        fail_msg("%s: child %u", what, child);
    assert_int_equal(rig.tx[index].payload_bytes, data ? 4 * count : 0);
    if (data)
        assert_memory_equal(payload, values, 4u * count);
}

static void a_root_answers_each_child_as_it_asked(void **state)
{
    (void)state;
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct collectives_row *row = &rows[i];

        rig_start(&rig, &root, 1);
        for (unsigned c = 0; c < 3; c++)
            say(&root, row, c, 0);
        assert_int_equal(rig.tx_count, 3);
        for (unsigned c = 0; c < 3; c++)
            expect_result(&root, c, c, row->data != 0 && (row->results >> c & 1), row->sum, row->count,
                          row->what);
        rig_release(&rig);
        assert_int_equal(rig_bank(&rig, 0, 0, 0).refs, 0);
        for (unsigned c = 0; c < 3; c++) { /* a repair has the same contents */
            say(&root, row, c, 0);
            assert_int_equal(rig.tx_count, 1);
            expect_result(&root, 0, c, row->data != 0 && (row->results >> c & 1), row->sum, row->count,
                          row->what);
            rig_release(&rig);
        }
        rig_close(&rig);
    }
    rig_open(&rig);
}

/* 150 children: three sets, of 64, 64 and 22. */
#define MANY 150u
static const struct rig_entry many = {.job = 1, .gen = 7, .root = 1, .children = MANY, .window = 2};

static void say_many(unsigned child, uint32_t seq)
{
    const float one[2] = {(float)child, 1};
    struct rig_packet packet = rig_contrib(&many, child, seq, one, 2);

    if (child % 3 == 0)
        packet.header.flags |= BY_FLAG_ACKONLY;
    rig_send(&rig, &packet);
}

static void an_entry_of_more_than_64_children_sums_each_once(void **state)
{
    const float sum[2] = {0.5f * (float)(MANY * (MANY - 1)), (float)MANY};

    (void)state;
    rig_start(&rig, &many, 1);
    for (uint32_t seq = 0; seq < 9; seq++) {
        for (unsigned i = 0; i + 1 < MANY; i++) {
            say_many((i * 7 + seq) % MANY, seq);
            assert_int_equal(rig.tx_count, 0);
            if (i % 16 != 5)
                continue;
            rig.now_ns += RIG_INTERVAL_NS;
            say_many((i * 7 + seq) % MANY, seq); /* a duplicate: WAIT, and a question to a missing child */
            assert_int_equal(rig.tx_count, 2);
        }
        say_many(((MANY - 1) * 7 + seq) % MANY, seq);
        assert_int_equal(rig.tx_count, MANY);
        for (unsigned c = 0; c < MANY; c++) {
            const uint8_t *payload;
            struct by_header header = rig_action(&rig, &many, c, &payload);

            assert_int_equal(header.type, BY_TYPE_RESULT);
            assert_int_equal(rig.tx[c].dst_ip, RIG_CHILD_IP + c);
            assert_int_equal(header.child, c % BY_CHILDREN_MAX);
            assert_int_equal(header.nleaf, MANY);
            assert_int_equal(rig.tx[c].payload_bytes, c % 3 == 0 ? 0 : 8);
            if (c % 3 != 0)
                assert_memory_equal(payload, sum, 8);
        }
        rig_release(&rig);
    }
    say_many(149, 8);
    assert_int_equal(rig.tx_count, 1);
    assert_int_equal(rig.tx[0].dst_ip, RIG_CHILD_IP + 149);
    rig_release(&rig);
    rig_close(&rig);
    rig_open(&rig);
}

static void a_wait_names_the_missing_children_of_one_set(void **state)
{
    const uint8_t *payload;
    struct by_header header;
    struct by_wait wait;

    (void)state;
    rig_start(&rig, &many, 1);
    for (unsigned c = 0; c < MANY; c++)
        if (c != 70 && c != 100 && c != 140)
            say_many(c, 0);
    rig.now_ns += RIG_INTERVAL_NS;
    say_many(3, 0);
    assert_int_equal(rig.tx_count, 2);
    header = rig_action(&rig, &many, 0, &payload);
    assert_int_equal(header.type, BY_TYPE_WAIT);
    assert_int_equal(by_wait_decode(payload, BY_WAIT_BYTES, &wait), 0);
    assert_int_equal(wait.set, 1);
    assert_true(wait.missing == (UINT64_C(1) << 6 | UINT64_C(1) << 36));
    header = rig_action(&rig, &many, 1, &payload);
    assert_int_equal(header.type, BY_TYPE_PROBE);
    assert_int_equal(rig.tx[1].dst_ip, RIG_CHILD_IP + 70);
    rig_close(&rig);
    rig_open(&rig);
}

/* Up: children 0 and 1, of 2 and 1 leaves. Down: children 0, 1 and 2, of 1 leaf each. */
static const struct rig_entry pair[2] = {
    {.job = 1, .tree = 0, .gen = 7, .root = 1, .children = 2, .window = 4, .nleaf = 3},
    {.job = 1, .tree = 1, .gen = 7, .root = 1, .children = 3, .window = 4, .nleaf = 3, .joined = 1}};

static struct rig_packet contrib_up(unsigned child, uint32_t seq)
{
    struct rig_packet packet = rig_contrib(&pair[0], child, seq, three[child], 2);

    packet.header.flags = BY_FLAG_ACKONLY;
    packet.header.nleaf = child == 0 ? 2 : 1;
    return packet;
}

static void the_root_of_a_pair_joins_the_children_of_both_trees(void **state)
{
    const float sum[2] = {3, 30};
    struct rig_packet packet;
    struct by_header header;

    (void)state;
    rig_start(&rig, pair, 2);
    for (unsigned c = 0; c < 3; c++) {
        packet = rig_credit(&pair[1], c, 0, 2, 0);
        rig_send(&rig, &packet);
        assert_int_equal(rig.tx_count, 0);
    }
    packet = contrib_up(0, 0);
    rig_send(&rig, &packet);
    assert_int_equal(rig.tx_count, 0);
    packet = contrib_up(1, 0);
    rig_send(&rig, &packet);
    assert_int_equal(rig.tx_count, 5);
    for (unsigned i = 0; i < 5; i++) {
        const struct rig_entry *tree = &pair[i < 2 ? 0 : 1];

        expect_result(tree, i, i < 2 ? i : i - 2, i >= 2, sum, 2, "pair");
        header = rig_action(&rig, tree, i, NULL);
        assert_int_equal(header.tree, tree->tree);
        assert_int_equal(header.nleaf, 6); /* each rank is a leaf of both trees */
    }
    rig_release(&rig);
    packet = rig_credit(&pair[1], 2, 0, 2, BY_FLAG_RETX);
    rig_send(&rig, &packet);
    assert_int_equal(rig.tx_count, 1);
    expect_result(&pair[1], 0, 2, 1, sum, 2, "a repair on the tree down");
    rig_release(&rig);
    packet = contrib_up(1, 0);
    rig_send(&rig, &packet);
    assert_int_equal(rig.tx_count, 1);
    expect_result(&pair[0], 0, 1, 0, NULL, 2, "a repair on the tree up");
    packet = rig_credit(&pair[1], 3, 1, 2, 0); /* the tree down has no such child */
    rig_send(&rig, &packet);
    assert_int_equal(by_engine_counters(rig.engine)->drop_child, 1);
    rig_close(&rig);
    rig_open(&rig);
}

static void a_node_below_passes_on_what_its_children_need(void **state)
{
    const float value[2] = {100, 200};

    (void)state;
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct collectives_row *row = &rows[i];
        uint8_t want = (uint8_t)(7 & ~row->acks);
        struct rig_packet packet;

        rig_start(&rig, &below, 1);
        for (unsigned c = 0; c < 3; c++)
            say(&below, row, c, 0);
        rig_expect_up(&rig, &below, 0, row->up & BY_FLAG_ACKONLY, row->data ? row->sum : NULL, row->count);
        rig_release(&rig);
        packet = rig_result(&below, 0, want ? value : NULL, row->count);
        rig_send(&rig, &packet);
        assert_int_equal(rig.tx_count, 3);
        for (unsigned c = 0; c < 3; c++)
            expect_result(&below, c, c, want >> c & 1, value, row->count, row->what);
        rig_close(&rig);
    }
    rig_open(&rig);
}

static void a_result_without_data_is_passed_on_without_data(void **state)
{
    struct rig_packet packet;

    (void)state;
    rig_start(&rig, &below, 1);
    for (unsigned c = 0; c < 3; c++)
        say(&below, &rows[4], c, 0);
    rig_release(&rig);
    packet = rig_result(&below, 0, NULL, 2);
    rig_send(&rig, &packet);
    rig_expect_results(&rig, &below, 0, NULL, 2);
    assert_int_equal(rig_action(&rig, &below, 0, NULL).nleaf, 77);
}

/* A node never sends its own partial sum in place of the result. */
static void a_result_without_data_is_not_filled_with_the_partial_sum(void **state)
{
    struct rig_packet packet;

    (void)state;
    rig_start(&rig, &below, 1);
    for (unsigned c = 0; c < 3; c++)
        say(&below, &rows[0], c, 0);
    rig_release(&rig);
    packet = rig_result(&below, 0, NULL, 2);
    rig_send(&rig, &packet);
    rig_expect_results(&rig, &below, 0, NULL, 2);
}

static void a_chunk_of_no_elements_with_data_is_a_value_too(void **state)
{
    (void)state;
    rig_start(&rig, &root, 1);
    for (unsigned c = 0; c < 3; c++) {
        struct rig_packet packet = rig_contrib(&root, c, 0, three[c], 0);

        rig_send(&rig, &packet);
    }
    rig_expect_results(&rig, &root, 0, three[0], 0);
    assert_int_equal(rig_bank(&rig, 0, 0, 0).refs, 0);
}

/* ---- two levels ---- */

#define NODES      3
#define UDP        5000
#define NODE_IP(n) (0x0a010000u + (n)) /* each node has one port */
#define LEAF_IP(l) (0x0a020000u + (l))

/* Node 0 is the root with nodes 1 and 2 as children, which have two leaves each. */
static struct engine_rig node[NODES];
static float received[4][2];
static unsigned results[4];

static void wire_node(unsigned n)
{
    static uint8_t image[4096];
    struct by_image_header header = {.node = (uint16_t)n,
                                     .kind = BY_NODE_SWITCH,
                                     .slot_count = 4,
                                     .payload_max = 64,
                                     .name = "n",
                                     .count = {1, 1, 1, 2, 0, 0, 0, 0}};
    struct by_image_port port = {.name = "p0", .own_ip = NODE_IP(n), .mtu = 1500};
    struct by_image_job job = {1, 1, 4, BY_RANK_NONE, 1, UDP, 0};
    struct by_image_entry entry = {.job = 1,
                                   .parent_node = n ? 0 : BY_NODE_NONE,
                                   .parent_ip = NODE_IP(0),
                                   .parent_udp_port = UDP,
                                   .parent_child = (uint8_t)(n - 1),
                                   .child_count = 2,
                                   .window = 4,
                                   .payload_max = 64,
                                   .nleaf = n ? 2 : 4};
    size_t bytes = by_image_bytes(header.count);

    by_image_put_header(image, &header);
    by_image_put_port(image, 0, &port);
    by_image_put_job(image, 0, &job);
    by_image_put_entry(image, 0, &entry);
    for (unsigned c = 0; c < 2; c++) {
        struct by_image_child child = {.node = (uint16_t)(n ? 8 + 2 * n + c : 1 + c),
                                       .ip = n ? LEAF_IP(2 * (n - 1) + c) : NODE_IP(1 + c),
                                       .udp_port = UDP,
                                       .rank = BY_RANK_NONE};

        by_image_put_child(image, c, &child);
    }
    by_image_seal(image);
    rig_open(&node[n]);
    assert_int_equal(by_engine_stage(node[n].engine, image, bytes, NULL), 0);
    assert_int_equal(by_engine_commit(node[n].engine), 0);
}

static void deliver(uint32_t from_ip, const struct by_tx *tx, unsigned depth);

static void give(unsigned n, const uint8_t *data, size_t bytes, uint32_t from_ip, unsigned depth)
{
    struct by_tx tx[RIG_TX];
    uint32_t count;

    rig_send_bytes(&node[n], data, bytes, 0, from_ip, NODE_IP(n));
    count = node[n].tx_count;
    memcpy(tx, node[n].tx, sizeof(tx));
    for (uint32_t i = 0; i < count; i++) {
        deliver(NODE_IP(n), &tx[i], depth);
        if (tx[i].ref != BY_REF_NONE)
            by_engine_release(node[n].engine, tx[i].ref);
    }
}

static void deliver(uint32_t from_ip, const struct by_tx *tx, unsigned depth)
{
    uint8_t data[256];
    const uint8_t *payload;
    struct by_header header;

    assert_true(depth < 8);
    memcpy(data, tx->header, BY_WIRE_HEADER_BYTES);
    memcpy(data + BY_WIRE_HEADER_BYTES, tx->payload ? tx->payload : tx->small, tx->payload_bytes);
    if (tx->dst_ip >= LEAF_IP(0)) {
        unsigned leaf = tx->dst_ip - LEAF_IP(0);

        assert_int_equal(by_header_decode(data, BY_WIRE_HEADER_BYTES + tx->payload_bytes, &header, &payload),
                         tx->payload_bytes);
        if (header.type != BY_TYPE_RESULT)
            return;
        assert_int_equal(header.nleaf, 4);
        assert_int_equal(header.child, leaf % 2);
        memcpy(received[leaf], payload, sizeof(received[leaf]));
        results[leaf]++;
    } else {
        give(tx->dst_ip - NODE_IP(0), data, BY_WIRE_HEADER_BYTES + tx->payload_bytes, from_ip, depth + 1);
    }
}

static void leaf_sends(unsigned leaf, uint32_t seq, float value)
{
    struct by_header header = {.type = BY_TYPE_CONTRIB,
                               .child = leaf % 2,
                               .op = BY_OP_SUM,
                               .dtype = BY_DTYPE_F32,
                               .mode = BY_MODE_FAST,
                               .job = 1,
                               .gen = 1,
                               .count = 2,
                               .nleaf = 1,
                               .seq = seq,
                               .witness = by_leaf_tag(1, (uint16_t)leaf)};
    float values[2] = {value, 2 * value};
    uint8_t data[BY_WIRE_HEADER_BYTES + sizeof(values)];

    header.psum = by_psum(values, sizeof(values));
    by_header_encode(&header, data);
    memcpy(data + BY_WIRE_HEADER_BYTES, values, sizeof(values));
    give(1 + leaf / 2, data, sizeof(data), LEAF_IP(leaf), 0);
}

static void two_levels_sum_all_leaves_and_repair_what_is_lost(void **state)
{
    (void)state;
    memset(results, 0, sizeof(results));
    for (unsigned n = 0; n < NODES; n++)
        wire_node(n);
    for (uint32_t seq = 0; seq < 40; seq++) {
        for (unsigned leaf = 0; leaf < 4; leaf++)
            leaf_sends((leaf + seq) % 4, seq, (float)(leaf + seq));
        for (unsigned leaf = 0; leaf < 4; leaf++) {
            assert_int_equal(results[leaf], seq + 1);
            assert_true(received[leaf][0] == (float)(4 * seq + 6));
            assert_true(received[leaf][1] == (float)(8 * seq + 12));
        }
    }
    /* A leaf that has lost the result sends the same bytes again; only that leaf gets the
     * result. */
    leaf_sends(3, 39, 1);
    assert_int_equal(results[3], 41);
    assert_int_equal(results[2], 40);
    assert_int_equal(by_engine_counters(node[0].engine)->rx, 80);
    for (unsigned n = 0; n < NODES; n++) {
        assert_int_equal(rig_bank(&node[n], 0, 3, 1).refs, 0);
        rig_close(&node[n]);
    }
    rig_open(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(a_root_answers_each_child_as_it_asked, stop),
        cmocka_unit_test_teardown(the_root_of_a_pair_joins_the_children_of_both_trees, stop),
        cmocka_unit_test_teardown(an_entry_of_more_than_64_children_sums_each_once, stop),
        cmocka_unit_test_teardown(a_wait_names_the_missing_children_of_one_set, stop),
        cmocka_unit_test_teardown(a_node_below_passes_on_what_its_children_need, stop),
        cmocka_unit_test_teardown(a_result_without_data_is_passed_on_without_data, stop),
        cmocka_unit_test_teardown(a_result_without_data_is_not_filled_with_the_partial_sum, stop),
        cmocka_unit_test_teardown(a_chunk_of_no_elements_with_data_is_a_value_too, stop),
        cmocka_unit_test_teardown(two_levels_sum_all_leaves_and_repair_what_is_lost, stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
