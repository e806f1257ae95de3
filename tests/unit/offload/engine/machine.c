/*
 * The slot machine of one node, in the order of PROTOCOL.md: the life of a chunk at a root and
 * below one, each event in each state, the two banks, windows and wraps, element types, and
 * references.
 */
#include "tests/unit/offload/engine/rig.h"

static struct engine_rig rig;
static const struct rig_entry root = {.job = 1, .gen = 7, .root = 1, .children = 3, .window = 4};
static const struct rig_entry below = {.job = 1, .gen = 7, .root = 0, .children = 2, .window = 4};

static int start_root(void **state)
{
    (void)state;
    rig_start(&rig, &root, 1);
    return 0;
}

static int start_below(void **state)
{
    (void)state;
    rig_start(&rig, &below, 1);
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

static void contribute(const struct rig_entry *entry, unsigned child, uint32_t seq, float value)
{
    float values[2] = {value, -value};
    struct rig_packet packet = rig_contrib(entry, child, seq, values, 2);

    rig_send(&rig, &packet);
}

static void answer(const struct rig_entry *entry, uint32_t seq, float value)
{
    float values[2] = {value, -value};
    struct rig_packet packet = rig_result(entry, seq, values, 2);

    rig_send(&rig, &packet);
}

/* All children contribute 1. Releases the actions of the last step. */
static void complete(const struct rig_entry *entry, uint32_t seq)
{
    for (unsigned c = 0; c < entry->children; c++)
        contribute(entry, c, seq, 1);
    rig_release(&rig);
    if (!entry->root) {
        answer(entry, seq, 5);
        rig_release(&rig);
    }
}

static void a_root_sums_its_children_and_answers_all(void **state)
{
    const float sum[2] = {6, -6};

    (void)state;
    contribute(&root, 0, 0, 1);
    assert_int_equal(rig.tx_count, 0);
    assert_int_equal(rig_bank(&rig, 0, 0, 0).state, BY_BANK_AGG);
    assert_int_equal(rig_bank(&rig, 0, 0, 0).have, 1);
    assert_int_equal(rig_bank(&rig, 0, 0, 0).missing, 6);
    contribute(&root, 2, 0, 3);
    assert_int_equal(rig.tx_count, 0);
    contribute(&root, 1, 0, 2);
    rig_expect_results(&rig, &root, 0, sum, 2);
    assert_int_equal(rig_bank(&rig, 0, 0, 0).state, BY_BANK_DONE);
    assert_int_equal(rig_bank(&rig, 0, 0, 0).refs, 3);
    assert_int_equal(rig_bank(&rig, 0, 0, 0).missing, 0);
    rig_release(&rig);
    assert_int_equal(rig_bank(&rig, 0, 0, 0).refs, 0);
    assert_int_equal(counters()->contrib, 3);
    assert_int_equal(counters()->complete, 1);
    assert_int_equal(counters()->tx_result, 3);
    assert_int_equal(counters()->rx, 3);
}

static void a_result_carries_the_leaves_and_the_witness_of_all_children(void **state)
{
    uint32_t witness = 0;

    (void)state;
    for (unsigned c = 0; c < 3; c++) {
        const float values[1] = {1};
        struct rig_packet packet = rig_contrib(&root, c, 0, values, 1);

        packet.header.nleaf = 1;
        packet.header.witness = 0xf0000000u + c;
        witness += packet.header.witness;
        rig_send(&rig, &packet);
    }
    for (uint32_t i = 0; i < 3; i++) {
        struct by_header header = rig_action(&rig, &root, i, NULL);

        assert_int_equal(header.nleaf, 3);
        assert_int_equal(header.witness, witness);
        assert_int_equal(header.optag, 0x1234);
    }
}

static void a_node_below_the_root_sends_its_sum_up_and_passes_the_result_down(void **state)
{
    const float up[2] = {3, -3}, down[2] = {10, -10};

    (void)state;
    contribute(&below, 1, 0, 1);
    contribute(&below, 0, 0, 2);
    rig_expect_up(&rig, &below, 0, 0, up, 2);
    assert_int_equal(rig_action(&rig, &below, 0, NULL).nleaf, 2);
    assert_int_equal(rig_action(&rig, &below, 0, NULL).witness, by_leaf_tag(1, 0) + by_leaf_tag(1, 1));
    assert_int_equal(rig_bank(&rig, 0, 0, 0).state, BY_BANK_UP);
    rig_release(&rig);
    answer(&below, 0, 10);
    rig_expect_results(&rig, &below, 0, down, 2);
    assert_int_equal(rig_action(&rig, &below, 0, NULL).nleaf, 77);
    assert_int_equal(rig_action(&rig, &below, 1, NULL).witness, 0xabcd);
    assert_int_equal(rig_bank(&rig, 0, 0, 0).state, BY_BANK_DONE);
    assert_int_equal(counters()->up, 1);
    assert_int_equal(counters()->result, 1);
    assert_int_equal(counters()->complete, 0);
}

/* The sum for the parent may still be in the shell's queue when the result arrives. */
static void a_result_is_taken_while_the_sum_is_still_being_sent(void **state)
{
    const float up[2] = {2, -2}, down[2] = {8, -8};
    const uint8_t *sum;
    uint32_t ref;

    (void)state;
    contribute(&below, 0, 0, 1);
    contribute(&below, 1, 0, 1);
    rig_expect_up(&rig, &below, 0, 0, up, 2);
    sum = rig.tx[0].payload;
    ref = rig.tx[0].ref;
    answer(&below, 0, 8);
    rig_expect_results(&rig, &below, 0, down, 2);
    assert_memory_equal(sum, up, sizeof(up));
    assert_int_equal(rig_bank(&rig, 0, 0, 0).refs, 3);
    rig_release(&rig);
    by_engine_release(rig.engine, ref);
    assert_int_equal(rig_bank(&rig, 0, 0, 0).refs, 0);
}

static void a_duplicate_contribution_is_not_added(void **state)
{
    const float sum[2] = {6, -6};

    (void)state;
    contribute(&root, 0, 0, 1);
    contribute(&root, 0, 0, 100); /* the payload differs, but is ignored */
    assert_int_equal(counters()->duplicate, 1);
    assert_int_equal(rig_bank(&rig, 0, 0, 0).nleaf, 1);
    contribute(&root, 1, 0, 2);
    contribute(&root, 2, 0, 3);
    rig_expect_results(&rig, &root, 0, sum, 2);
}

static void chunks_of_a_window_are_independent_and_may_complete_in_any_order(void **state)
{
    (void)state;
    for (uint32_t seq = 0; seq < 8; seq++) /* both banks of all four slots */
        contribute(&root, 0, seq, (float)seq);
    for (uint32_t i = 8; i > 0; i--) {
        float sum[2] = {(float)(3 * (i - 1)), -(float)(3 * (i - 1))};

        contribute(&root, 1, i - 1, (float)(i - 1));
        contribute(&root, 2, i - 1, (float)(i - 1));
        rig_expect_results(&rig, &root, i - 1, sum, 2);
        rig_release(&rig);
    }
}

static void a_bank_is_claimed_again_by_the_chunk_two_windows_later(void **state)
{
    (void)state;
    for (uint32_t seq = 0; seq < 100; seq++) {
        complete(&root, seq);
        assert_int_equal(rig_bank(&rig, 0, seq & 3, seq / 4 & 1).seq, seq);
    }
    assert_int_equal(counters()->complete, 100);
    assert_int_equal(counters()->contrib, 300);
}

/* The step sent only the expected sequence number of the bank, and only to that child. */
static void expect_place(uint32_t seq, uint32_t expected, unsigned child)
{
    const uint8_t *payload;
    struct by_header header;
    struct by_err err;

    assert_int_equal(rig.tx_count, 1);
    header = rig_action(&rig, &root, 0, &payload);
    assert_int_equal(header.type, BY_TYPE_ERR);
    assert_int_equal(header.child, child);
    assert_int_equal(header.seq, seq);
    assert_int_equal(header.flags, 0);
    assert_int_equal(by_err_decode(payload, BY_ERR_BYTES, &err), 0);
    assert_int_equal(err.reason, BY_ERR_WINDOW);
    assert_int_equal(err.node, RIG_NODE);
    assert_int_equal(err.seq, seq);
    assert_int_equal(err.expected_seq, expected);
    assert_int_equal(err.other.child, child);
}

static void expect_window_error(uint32_t seq, uint32_t expected, unsigned child)
{
    rig_expect_drop_of(&rig, drop_window);
    expect_place(seq, expected, child);
}

static void contributions_of_an_earlier_or_the_starting_round_are_told_so(void **state)
{
    (void)state;
    contribute(&root, 0, (uint32_t)-8, 1); /* the answer of a bank that has not been used */
    expect_place((uint32_t)-8, (uint32_t)-8, 0);
    rig_expect_drop_of(&rig, drop_stale);
    contribute(&root, 0, (uint32_t)-16, 1);
    expect_place((uint32_t)-16, (uint32_t)-8, 0);
    rig_expect_drop_of(&rig, drop_stale);
    complete(&root, 0);
    complete(&root, 4);
    complete(&root, 8);
    contribute(&root, 1, 0, 1);
    expect_place(0, 8, 1);
    rig_expect_drop_of(&rig, drop_stale);
    assert_int_equal(rig_bank(&rig, 0, 0, 0).seq, 8);
}

static void a_contribution_beyond_the_window_is_refused_with_an_error(void **state)
{
    (void)state;
    contribute(&root, 1, 8, 1); /* 4 windows ahead of a bank that has not been used */
    expect_window_error(8, (uint32_t)-8, 1);
    contribute(&root, 1, 0x40000000, 1);
    expect_window_error(0x40000000, (uint32_t)-8, 1);
    assert_int_equal(rig_bank(&rig, 0, 0, 0).state, BY_BANK_VOID);
}

static void a_bank_that_still_sums_is_not_claimed_by_an_impatient_child(void **state)
{
    const float sum[2] = {6, -6};

    (void)state;
    contribute(&root, 0, 0, 1);
    contribute(&root, 0, 8, 9);
    expect_window_error(8, 0, 0);
    contribute(&root, 1, 0, 2);
    contribute(&root, 2, 0, 3);
    rig_expect_results(&rig, &root, 0, sum, 2);
}

/* Takes one bank through all 2^32 sequence numbers and beyond, two windows at a time. */
static void sequence_numbers_wrap(void **state)
{
    const struct rig_entry wide = {.job = 1, .gen = 7, .root = 1, .children = 1, .window = 1024};
    struct rig_packet packet = rig_credit(&wide, 0, 0, 4, BY_FLAG_ACKONLY);
    uint8_t bytes[BY_WIRE_HEADER_BYTES];
    uint64_t rounds = (UINT64_C(1) << 32) / 2048 + 3;

    (void)state;
    rig_close(&rig);
    rig_start(&rig, &wide, 1);
    for (uint64_t i = 0; i < rounds; i++) {
        const struct by_rx rx = {.data = bytes, .bytes = sizeof(bytes), .src_ip = RIG_CHILD_IP};

        packet.header.seq = (uint32_t)(2048 * i);
        by_header_encode(&packet.header, bytes);
        by_engine_step(rig.engine, rig.now_ns, &rx, 1, rig.tx, RIG_TX, &rig.tx_count);
        if (rig.tx_count != 1)
            fail_msg("seq %#x", (unsigned)packet.header.seq);
    }
    assert_int_equal(rig_bank(&rig, 0, 0, 0).seq, 2 * 2048);
    assert_true(counters()->complete == rounds);
    packet.header.seq = (uint32_t)-2048;
    rig_send(&rig, &packet);
    rig_expect_drop_of(&rig, drop_stale); /* before the wrap, not ahead of it */
    packet.header.seq = 0x80002000;
    rig_send(&rig, &packet);
    rig_expect_drop_of(&rig, drop_stale);
}

static void each_element_type_is_summed_in_its_own_way(void **state)
{
    static const struct {
        uint8_t op, dtype;
        uint16_t count;
        uint8_t a[8], b[8], want[8];
        uint16_t bytes;
    } rows[] = {
        {BY_OP_SUM, BY_DTYPE_U8, 3, {1, 200, 3}, {1, 100, 4}, {2, 44, 7}, 3},
        {BY_OP_MAX,
         BY_DTYPE_I32,
         2,
         {1, 0, 0, 0, 255, 255, 255, 255},
         {2, 0, 0, 0, 254, 255, 255, 255},
         {2, 0, 0, 0, 255, 255, 255, 255},
         8},
        {BY_OP_BXOR,
         BY_DTYPE_U64,
         1,
         {0xff, 1, 2, 3, 4, 5, 6, 7},
         {0x0f, 1, 2, 3, 4, 5, 6, 8},
         {0xf0, 0, 0, 0, 0, 0, 0, 15},
         8},
        {BY_OP_SUM,
         BY_DTYPE_F16,
         3,
         {0, 0x3c, 0, 0x40, 0, 0xc0},
         {0, 0x3c, 0, 0x3c, 0, 0x40},
         {0, 0x40, 0, 0x42, 0, 0},
         6},
        {BY_OP_SUM, BY_DTYPE_BF16, 1, {0x80, 0x3f}, {0, 0x40}, {0x40, 0x40}, 2},
        {BY_OP_MIN,
         BY_DTYPE_F64,
         1,
         {0, 0, 0, 0, 0, 0, 0xf0, 0x3f},
         {0, 0, 0, 0, 0, 0, 0, 0xc0},
         {0, 0, 0, 0, 0, 0, 0, 0xc0},
         8},
    };

    (void)state;
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        for (unsigned c = 0; c < 2; c++) {
            struct rig_packet packet = rig_contrib(&below, c, i, NULL, rows[i].count);

            packet.payload = c ? rows[i].b : rows[i].a;
            packet.bytes = rows[i].bytes;
            packet.header.op = rows[i].op;
            packet.header.dtype = rows[i].dtype;
            rig_send(&rig, &packet);
        }
        assert_int_equal(rig.tx_count, 1);
        assert_int_equal(rig_action(&rig, &below, 0, NULL).dtype, rows[i].dtype);
        assert_int_equal(rig.tx[0].payload_bytes, rows[i].bytes);
        assert_memory_equal(rig.tx[0].payload, rows[i].want, rows[i].bytes);
        rig_release(&rig);
    }
}

/* The accumulators are wider than the elements that leave the node. */
static void a_half_with_one_contribution_leaves_as_it_came(void **state)
{
    static const uint8_t bytes[6] = {0, 0x3c, 0xff, 0x7b, 1, 0x80};
    struct rig_packet packet = rig_contrib(&below, 0, 0, NULL, 3);

    (void)state;
    packet.payload = bytes;
    packet.bytes = sizeof(bytes);
    packet.header.dtype = BY_DTYPE_F16;
    rig_send(&rig, &packet);
    packet = rig_credit(&below, 1, 0, 3, 0);
    packet.header.dtype = BY_DTYPE_F16;
    rig_send(&rig, &packet);
    assert_int_equal(rig.tx_count, 1);
    rig_action(&rig, &below, 0, NULL);
    assert_int_equal(rig.tx[0].payload_bytes, sizeof(bytes));
    assert_memory_equal(rig.tx[0].payload, bytes, sizeof(bytes));
}

static void the_largest_chunk_of_every_type_fits_a_bank(void **state)
{
    static const uint8_t dtypes[] = {BY_DTYPE_I8, BY_DTYPE_F16, BY_DTYPE_BF16, BY_DTYPE_F32, BY_DTYPE_F64};
    static uint8_t ones[RIG_PAYLOAD];

    (void)state;
    for (unsigned i = 0; i < sizeof(dtypes); i++)
        for (unsigned c = 0; c < 2; c++) {
            struct rig_packet packet =
                rig_contrib(&below, c, i, NULL, (uint16_t)(RIG_PAYLOAD / by_dtype_bytes(dtypes[i])));

            packet.payload = ones;
            packet.bytes = RIG_PAYLOAD;
            packet.header.dtype = dtypes[i];
            rig_send(&rig, &packet);
            assert_int_equal(rig.tx_count, c);
            rig_release(&rig);
        }
    assert_int_equal(counters()->up, sizeof(dtypes));
}

static void congestion_seen_by_any_child_or_the_parent_reaches_all(void **state)
{
    const float one[1] = {1};
    struct rig_packet packet = rig_contrib(&below, 0, 0, one, 1);

    (void)state;
    packet.ecn = 3; /* as marked by a router */
    rig_send(&rig, &packet);
    packet = rig_contrib(&below, 1, 0, one, 1);
    packet.ecn = 2;
    rig_send(&rig, &packet);
    assert_int_equal(rig_action(&rig, &below, 0, NULL).flags, BY_FLAG_CE);
    rig_release(&rig);
    packet = rig_contrib(&below, 0, 1, one, 1);
    rig_send(&rig, &packet);
    packet = rig_contrib(&below, 1, 1, one, 1);
    rig_send(&rig, &packet);
    assert_int_equal(rig_action(&rig, &below, 0, NULL).flags, 0);
    rig_release(&rig);
    packet = rig_result(&below, 1, one, 1);
    packet.header.flags = BY_FLAG_CE; /* marked elsewhere in the tree */
    rig_send(&rig, &packet);
    assert_int_equal(rig_action(&rig, &below, 0, NULL).flags, BY_FLAG_CE);
    assert_int_equal(rig_action(&rig, &below, 1, NULL).flags, BY_FLAG_CE);
}

static void a_bank_that_is_still_being_sent_is_not_claimed(void **state)
{
    struct by_tx kept[3];

    (void)state;
    for (unsigned c = 0; c < 3; c++)
        contribute(&root, c, 0, 1);
    memcpy(kept, rig.tx, sizeof(kept));
    complete(&root, 4);
    contribute(&root, 0, 8, 2);
    rig_expect_drop_of(&rig, drop_busy);
    assert_int_equal(rig_bank(&rig, 0, 0, 0).seq, 0);
    assert_memory_equal(kept[0].payload, ((const float[2]){3, -3}), 8);
    for (unsigned c = 0; c < 3; c++) {
        contribute(&root, 0, 8, 2);
        rig_expect_drop_of(&rig, drop_busy);
        by_engine_release(rig.engine, kept[c].ref);
    }
    contribute(&root, 0, 8, 2);
    assert_int_equal(rig_bank(&rig, 0, 0, 0).seq, 8);
    assert_int_equal(rig_bank(&rig, 0, 0, 0).have, 1);
}

/* Every release below is later than two windows. */
static void a_chunk_whose_bank_is_still_being_sent_starts_in_a_spare_buffer(void **state)
{
    struct by_tx kept[3][3];

    (void)state;
    rig_spares = 2;
    rig_start(&rig, &root, 1);
    rig_spares = 0;
    for (uint32_t round = 0; round < 3; round++) {
        for (unsigned c = 0; c < 3; c++)
            contribute(&root, c, 8 * round, (float)(1 + round));
        assert_int_equal(rig.tx_count, 3);
        memcpy(kept[round], rig.tx, sizeof(kept[round]));
        complete(&root, 8 * round + 4);
    }
    assert_int_equal(counters()->spare, 2);
    for (uint32_t round = 0; round < 3; round++) {
        const float sum = 3 * (float)(1 + round);

        assert_memory_equal(kept[round][0].payload, ((const float[2]){sum, -sum}), 8);
        for (uint32_t before = 0; before < round; before++)
            assert_int_not_equal(kept[round][0].ref, kept[before][0].ref);
    }
    contribute(&root, 0, 24, 1);
    rig_expect_drop_of(&rig, drop_busy);
    assert_int_equal(rig_bank(&rig, 0, 0, 0).refs, 3);
    for (unsigned c = 0; c < 3; c++)
        by_engine_release(rig.engine, kept[1][c].ref);
    complete(&root, 24); /* in the buffer that round 1 has released */
    assert_int_equal(counters()->spare, 3);
    for (unsigned c = 0; c < 3; c++) {
        by_engine_release(rig.engine, kept[2][c].ref);
        by_engine_release(rig.engine, kept[0][c].ref);
    }
    complete(&root, 28);
    complete(&root, 32);
    assert_int_equal(counters()->spare, 3);
    assert_int_equal(rig_bank(&rig, 0, 0, 0).refs, 0);
}

static void sixty_four_children_fill_the_bitmap(void **state)
{
    const struct rig_entry wide = {.job = 3, .gen = 1, .root = 1, .children = 64, .window = 1};
    const float one[2] = {1, -1}, sum[2] = {64, -64};

    (void)state;
    rig_close(&rig);
    rig_start(&rig, &wide, 1);
    for (unsigned c = 0; c < 64; c++) {
        struct rig_packet packet = rig_contrib(&wide, c, 0, one, 2);

        assert_int_equal(rig.tx_count, 0);
        rig_send(&rig, &packet);
    }
    rig_expect_results(&rig, &wide, 0, sum, 2);
}

static void the_oldest_incomplete_chunk_is_found(void **state)
{
    struct by_bank_view view;

    (void)state;
    assert_int_equal(by_engine_oldest(rig.engine, 0, &view), BY_ENOENT);
    assert_int_equal(by_engine_oldest(rig.engine, 1, &view), BY_ENOENT);
    contribute(&root, 1, 6, 1);
    contribute(&root, 1, 2, 1);
    contribute(&root, 0, 2, 1);
    complete(&root, 1);
    contribute(&root, 1, 9, 1); /* a later chunk in an earlier slot */
    assert_int_equal(by_engine_oldest(rig.engine, 0, &view), 0);
    assert_int_equal(view.seq, 2);
    assert_int_equal(view.missing, 4);
    assert_int_equal(view.state, BY_BANK_AGG);
    assert_string_equal(by_bank_state_name(view.state), "agg");
    assert_string_equal(by_bank_state_name(77), "?");
    assert_int_equal(by_engine_bank(rig.engine, 0, 4, 0, &view), BY_ENOENT);
    assert_int_equal(by_engine_bank(rig.engine, 0, 0, 2, &view), BY_ENOENT);
    assert_int_equal(by_engine_bank(rig.engine, 1, 0, 0, &view), BY_ENOENT);
}

/* A shell that replicates results without reading them gets the same packet for all children. An
 * answer to one child names that child. */
static void results_for_several_children_are_one_packet_where_the_shell_wants_that(void **state)
{
    const float sum[2] = {3, -3};
    const uint8_t *payload;

    (void)state;
    rig_alike = 1;
    rig_start(&rig, &root, 1);
    rig_alike = 0;
    for (unsigned c = 0; c < root.children; c++)
        contribute(&root, c, 0, 1);
    assert_int_equal(rig.tx_count, root.children);
    for (unsigned c = 0; c < root.children; c++) {
        assert_int_equal(rig_action(&rig, &root, c, &payload).child, BY_WIRE_CHILD_ALL);
        assert_memory_equal(rig.tx[c].header, rig.tx[0].header, BY_WIRE_HEADER_BYTES);
        assert_memory_equal(payload, sum, sizeof(sum));
        assert_int_equal(rig.tx[c].port, c);
    }
    rig_release(&rig);
    contribute(&root, 1, 0, 1);
    assert_int_equal(rig.tx_count, 1);
    assert_int_equal(rig_action(&rig, &root, 0, &payload).child, 1);
    rig_release(&rig);
}

#define ROOT(f)  cmocka_unit_test_setup_teardown(f, start_root, stop)
#define BELOW(f) cmocka_unit_test_setup_teardown(f, start_below, stop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ROOT(a_root_sums_its_children_and_answers_all),
        ROOT(a_result_carries_the_leaves_and_the_witness_of_all_children),
        BELOW(a_node_below_the_root_sends_its_sum_up_and_passes_the_result_down),
        BELOW(a_result_is_taken_while_the_sum_is_still_being_sent),
        ROOT(a_duplicate_contribution_is_not_added),
        ROOT(chunks_of_a_window_are_independent_and_may_complete_in_any_order),
        ROOT(a_bank_is_claimed_again_by_the_chunk_two_windows_later),
        ROOT(contributions_of_an_earlier_or_the_starting_round_are_told_so),
        ROOT(a_contribution_beyond_the_window_is_refused_with_an_error),
        ROOT(a_bank_that_still_sums_is_not_claimed_by_an_impatient_child),
        ROOT(sequence_numbers_wrap),
        BELOW(each_element_type_is_summed_in_its_own_way),
        BELOW(a_half_with_one_contribution_leaves_as_it_came),
        BELOW(the_largest_chunk_of_every_type_fits_a_bank),
        BELOW(congestion_seen_by_any_child_or_the_parent_reaches_all),
        ROOT(a_bank_that_is_still_being_sent_is_not_claimed),
        cmocka_unit_test_teardown(a_chunk_whose_bank_is_still_being_sent_starts_in_a_spare_buffer, stop),
        ROOT(sixty_four_children_fill_the_bitmap),
        ROOT(the_oldest_incomplete_chunk_is_found),
        cmocka_unit_test_teardown(results_for_several_children_are_one_packet_where_the_shell_wants_that,
                                  stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
