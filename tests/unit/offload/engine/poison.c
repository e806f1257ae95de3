/* Disagreement at one node: how an objection begins, spreads in all directions and is repeated. A
 * poisoned chunk never gets a value. */
#include "tests/unit/offload/engine/rig.h"

static struct engine_rig rig;
static const struct rig_entry root = {.job = 1, .gen = 7, .root = 1, .children = 3, .window = 4};
static const struct rig_entry below = {.job = 1, .gen = 7, .root = 0, .children = 2, .window = 4};
static const float one[2] = {1, 2}, nine[2] = {9, 9};

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

static void contribute(const struct rig_entry *entry, unsigned child, uint32_t seq)
{
    struct rig_packet packet = rig_contrib(entry, child, seq, one, 2);

    rig_send(&rig, &packet);
}

static void contribute_all(const struct rig_entry *entry, uint32_t seq)
{
    for (unsigned c = 0; c < entry->children; c++)
        contribute(entry, c, seq);
    rig_release(&rig);
}

static void answer(uint32_t seq)
{
    struct rig_packet packet = rig_result(&below, seq, nine, 2);

    rig_send(&rig, &packet);
}

static struct rig_packet probe(const struct rig_entry *entry, unsigned child, uint32_t seq)
{
    struct rig_packet packet = rig_credit(entry, child, seq, 2, 0);

    packet.header.type = BY_TYPE_PROBE;
    packet.header.flags = 0;
    packet.header.nleaf = 0;
    return packet;
}

/* The step's actions are ERRs to `children` (ascending) and, with `up`, to the parent, all with the
 * same payload. */
static struct by_err expect_objection(const struct rig_entry *entry, uint32_t seq, uint64_t children, int up)
{
    struct by_err err;
    const uint8_t *payload;
    uint32_t index = 0;

    for (unsigned c = 0; c < entry->children; c++) {
        if (!(children >> c & 1))
            continue;
        assert_int_equal(rig_action(&rig, entry, index, &payload).child, c);
        assert_int_equal(rig.tx[index++].port, c);
    }
    if (up)
        assert_int_equal(rig.tx[index++].port, RIG_PARENT_PORT);
    assert_int_equal(rig.tx_count, index);
    for (uint32_t i = 0; i < index; i++) {
        struct by_header header = rig_action(&rig, entry, i, &payload);

        assert_int_equal(header.type, BY_TYPE_ERR);
        assert_int_equal(header.flags, BY_FLAG_POISON);
        assert_int_equal(header.seq, seq);
        assert_int_equal(by_err_decode(payload, rig.tx[i].payload_bytes, &err), 0);
    }
    return err;
}

static void ranks_that_disagree_in_any_word_get_an_objection_that_names_both(void **state)
{
    (void)state;
    for (unsigned word = 0; word < 5; word++) {
        struct rig_packet packet = rig_contrib(&below, 0, 0, one, 2);
        struct by_err err;

        contribute(&below, 1, 0);
        switch (word) {
        case 0:
            packet.header.op = BY_OP_MAX;
            break;
        case 1:
            packet.header.dtype = BY_DTYPE_I32;
            break;
        case 2:
            packet.header.mode = BY_MODE_DET;
            break;
        case 3:
            packet.header.count = 1;
            packet.bytes = 4;
            break;
        default:
            packet.header.optag = 0x9999;
        }
        rig_send(&rig, &packet);
        err = expect_objection(&below, 0, 3, 1);
        assert_int_equal(err.reason, BY_ERR_MISMATCH);
        assert_int_equal(err.node, RIG_NODE);
        assert_int_equal(err.seq, 0);
        assert_int_equal(err.first.child, 1);
        assert_true(err.agree == 2);
        assert_int_equal(err.first.op, BY_OP_SUM);
        assert_int_equal(err.first.dtype, BY_DTYPE_F32);
        assert_int_equal(err.first.count, 2);
        assert_int_equal(err.first.optag, 0x1234);
        assert_int_equal(err.other.child, 0);
        assert_int_equal(err.other.op, packet.header.op);
        assert_int_equal(err.other.dtype, packet.header.dtype);
        assert_int_equal(err.other.mode, packet.header.mode);
        assert_int_equal(err.other.count, packet.header.count);
        assert_int_equal(err.other.optag, packet.header.optag);
        assert_int_equal(rig_bank(&rig, 0, 0, 0).state, BY_BANK_POISON);
        assert_int_equal(counters()->poison, 1);
        assert_int_equal(counters()->err, 3);
        rig_close(&rig);
        rig_start(&rig, &below, 1);
    }
}

static void a_poisoned_chunk_never_gets_a_value(void **state)
{
    struct rig_packet packet = rig_contrib(&root, 0, 0, one, 2);

    (void)state;
    contribute(&root, 1, 0);
    packet.header.op = BY_OP_MIN;
    rig_send(&rig, &packet);
    for (unsigned round = 0; round < 3; round++)
        for (unsigned c = 0; c < 3; c++) {
            contribute(&root, c, 0);
            rig_expect_drop_of(&rig, drop_poison);
            assert_int_equal(rig.tx_count, 0); /* already sent to all in this interval */
        }
    rig.now_ns += RIG_INTERVAL_NS;
    contribute(&root, 2, 0);
    expect_objection(&root, 0, 4, 0);
    contribute(&root, 2, 0);
    assert_int_equal(rig.tx_count, 0);
    contribute(&root, 1, 0);
    expect_objection(&root, 0, 2, 0);
    assert_int_equal(counters()->complete, 0);
    /* The bank serves the chunk two windows later. */
    contribute_all(&root, 8);
    assert_int_equal(counters()->complete, 1);
}

static void an_objection_is_repeated_to_the_parent_too(void **state)
{
    struct rig_packet packet = rig_contrib(&below, 0, 0, one, 2);

    (void)state;
    contribute(&below, 1, 0);
    packet.header.optag++;
    rig_send(&rig, &packet);
    rig.now_ns += RIG_INTERVAL_NS;
    contribute(&below, 1, 0);
    assert_int_equal(rig.tx_count, 2);
    assert_int_equal(rig.tx[0].port, RIG_PARENT_PORT);
    assert_int_equal(rig.tx[1].port, 1);
    answer(0);
    rig_expect_drop_of(&rig, drop_poison);
    packet = probe(&below, 0, 0);
    rig_send(&rig, &packet);
    expect_objection(&below, 0, 1, 0);
}

/* Ranks that have received the objection end. Then only the parent can request an objection that
 * was lost on its way up. */
static void a_parent_that_asks_for_a_poisoned_chunk_gets_the_objection_again(void **state)
{
    struct rig_packet packet = rig_contrib(&below, 0, 0, one, 2);
    struct rig_packet question = probe(&below, 0, 0);

    (void)state;
    question.port = RIG_PARENT_PORT;
    question.src_ip = RIG_PARENT_IP;
    question.header.child = RIG_PARENT_CHILD;
    contribute(&below, 1, 0);
    packet.header.optag++;
    rig_send(&rig, &packet);
    rig_send(&rig, &question); /* the first objection may still be in flight */
    rig_expect_drop_of(&rig, drop_state);
    for (int i = 0; i < 3; i++) {
        rig.now_ns += RIG_INTERVAL_NS;
        rig_send(&rig, &question);
        assert_int_equal(expect_objection(&below, 0, 0, 1).reason, BY_ERR_MISMATCH);
    }
}

static void what_a_node_cannot_compute_is_refused_and_poisons_the_chunk(void **state)
{
    static const struct {
        uint8_t op, dtype, mode;
    } rows[] = {
        {BY_OP_BAND, BY_DTYPE_F32, BY_MODE_FAST},
        {0, BY_DTYPE_F32, BY_MODE_FAST},
        {15, BY_DTYPE_F32, BY_MODE_FAST},
        {BY_OP_SUM, 0, BY_MODE_FAST},
        {BY_OP_SUM, 15, BY_MODE_FAST},
        {BY_OP_PROD, BY_DTYPE_F32, BY_MODE_EXACT},
        {BY_OP_SUM, BY_DTYPE_F32, 0},
        {BY_OP_SUM, BY_DTYPE_F32, 255},
    };

    (void)state;
    for (uint32_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint32_t seq = i % 4 + 8 * (i / 4);
        struct rig_packet packet = rig_contrib(&below, 1, seq, one, 2);
        struct by_err err;

        packet.header.op = rows[i].op;
        packet.header.dtype = rows[i].dtype;
        packet.header.mode = rows[i].mode;
        rig_send(&rig, &packet);
        err = expect_objection(&below, seq, 3, 1);
        assert_int_equal(err.reason, BY_ERR_UNSUPPORTED);
        assert_int_equal(err.other.op, rows[i].op);
        assert_int_equal(err.other.dtype, rows[i].dtype);
        assert_int_equal(err.other.mode, rows[i].mode);
        assert_int_equal(err.other.child, 1);
        assert_int_equal(rig_bank(&rig, 0, i % 4, 0).state, BY_BANK_POISON);
    }
}

static struct rig_packet foreign_err(uint32_t seq, int from_child, uint8_t reason,
                                     uint8_t bytes[BY_ERR_BYTES])
{
    const struct by_err err = {
        .node = 44, .reason = reason, .seq = seq, .first = {.count = 3}, .other = {.count = 4}};
    struct rig_packet packet = from_child >= 0 ? rig_contrib(&below, (unsigned)from_child, seq, one, 2)
                                               : rig_result(&below, seq, one, 2);

    by_err_encode(&err, bytes);
    packet.header.type = BY_TYPE_ERR;
    packet.header.flags = BY_FLAG_POISON;
    packet.payload = bytes;
    packet.bytes = BY_ERR_BYTES;
    return packet;
}

static void an_objection_of_the_parent_poisons_and_goes_to_all_children(void **state)
{
    uint8_t bytes[BY_ERR_BYTES];
    struct rig_packet packet = foreign_err(0, -1, BY_ERR_MISMATCH, bytes);

    (void)state;
    contribute_all(&below, 0);
    rig_send(&rig, &packet);
    assert_int_equal(expect_objection(&below, 0, 3, 0).node, 44);
    assert_int_equal(rig_bank(&rig, 0, 0, 0).state, BY_BANK_POISON);
    rig_send(&rig, &packet);
    rig_expect_drop_of(&rig, drop_poison);
    assert_int_equal(rig.tx_count, 0);
    rig.now_ns += RIG_INTERVAL_NS;
    contribute(&below, 0, 0); /* the bank keeps the first objection */
    assert_int_equal(rig.tx_count, 2);
    packet = foreign_err(1, -1, BY_ERR_UNSUPPORTED, bytes); /* a chunk without contributions */
    rig_send(&rig, &packet);
    expect_objection(&below, 1, 3, 0);
    assert_int_equal(rig_bank(&rig, 0, 1, 0).seq, 1);
    contribute(&below, 0, 1);
    rig_expect_drop_of(&rig, drop_poison);
}

/* Until the parent has answered, only the bank's own chunk matters: objections to later chunks do
 * not replace it. */
static void an_objection_to_a_later_chunk_leaves_a_bank_that_waits_for_the_parent(void **state)
{
    uint8_t bytes[BY_ERR_BYTES];

    (void)state;
    contribute_all(&below, 0);
    for (int child = -1; child < 2; child++) {
        struct rig_packet packet = foreign_err(2u * below.window, child, BY_ERR_MISMATCH, bytes);

        rig_send(&rig, &packet);
        rig_expect_drop_of(&rig, drop_window);
        assert_int_equal(rig.tx_count, 0);
        assert_int_equal(rig_bank(&rig, 0, 0, 0).state, BY_BANK_UP);
        assert_int_equal(rig_bank(&rig, 0, 0, 0).seq, 0);
    }
    answer(0);
    rig_expect_results(&rig, &below, 0, nine, 2);
    rig_release(&rig);
}

static void a_result_from_the_parents_address_by_another_port_is_dropped(void **state)
{
    (void)state;
    contribute_all(&below, 0);
    for (uint16_t port = 0; port < RIG_PORTS; port++) {
        struct rig_packet packet = rig_result(&below, 0, nine, 2);

        packet.port = port;
        rig_send(&rig, &packet);
        if (port == RIG_PARENT_PORT)
            continue;
        rig_expect_drop_of(&rig, drop_ingress);
        assert_int_equal(rig_bank(&rig, 0, 0, 0).state, BY_BANK_UP);
    }
    rig_expect_results(&rig, &below, 0, nine, 2); /* the last port in the loop is the parent's */
    rig_release(&rig);
}

static void an_objection_of_a_child_goes_up_and_to_its_sisters(void **state)
{
    uint8_t bytes[BY_ERR_BYTES];
    struct rig_packet packet = foreign_err(0, 1, BY_ERR_MISMATCH, bytes);

    (void)state;
    contribute(&below, 0, 0);
    rig_send(&rig, &packet);
    assert_int_equal(expect_objection(&below, 0, 1, 1).first.count, 3);
    assert_int_equal(rig_bank(&rig, 0, 0, 0).state, BY_BANK_POISON);
}

/* A host that misses one of its ranks objects to a chunk that it has not sent; others may have. */
static void a_host_that_misses_a_rank_ends_its_next_chunk(void **state)
{
    uint8_t bytes[BY_ERR_BYTES];
    struct rig_packet packet = foreign_err(0, 1, BY_ERR_RANK, bytes);

    (void)state;
    contribute(&below, 0, 0);
    rig_send(&rig, &packet);
    assert_int_equal(expect_objection(&below, 0, 1, 1).reason, BY_ERR_RANK);
    assert_int_equal(rig_bank(&rig, 0, 0, 0).state, BY_BANK_POISON);
}

static void objections_out_of_place_are_dropped(void **state)
{
    uint8_t bytes[BY_ERR_BYTES];
    struct rig_packet packet = foreign_err((uint32_t)-8, 1, BY_ERR_MISMATCH, bytes);

    (void)state;
    rig_send(&rig, &packet);
    rig_expect_drop_of(&rig, drop_stale);
    packet = foreign_err(0x100, 1, BY_ERR_MISMATCH, bytes);
    rig_send(&rig, &packet);
    rig_expect_drop_of(&rig, drop_window);
    packet = foreign_err(0, 1, BY_ERR_MISMATCH, bytes);
    packet.src_ip++;
    rig_send(&rig, &packet);
    rig_expect_drop_of(&rig, drop_ingress);
    packet.src_ip--;
    packet.header.psum = 5;
    packet.psum_as_given = 1;
    rig_send(&rig, &packet);
    rig_expect_drop_of(&rig, drop_psum);
    packet.bytes = 36;
    rig_send(&rig, &packet);
    rig_expect_drop_of(&rig, drop_count);
    packet = foreign_err(0, 1, 99, bytes);
    rig_send(&rig, &packet);
    rig_expect_drop_of(&rig, drop_format);
    contribute(&below, 0, 0);
    packet = foreign_err(8, 1, BY_ERR_MISMATCH, bytes); /* two windows ahead; the bank still sums */
    rig_send(&rig, &packet);
    rig_expect_drop_of(&rig, drop_window);
    assert_int_equal(rig_bank(&rig, 0, 0, 0).state, BY_BANK_AGG);
}

static void a_parent_that_lost_its_place_is_reported_to_the_leaves_and_voids_nothing(void **state)
{
    static const uint8_t reasons[] = {BY_ERR_WINDOW, BY_ERR_NO_ENTRY};
    uint8_t bytes[BY_ERR_BYTES];

    (void)state;
    for (uint32_t i = 0; i < 2; i++) {
        struct rig_packet packet = foreign_err(i, -1, reasons[i], bytes);

        packet.header.flags = 0;
        rig_send(&rig, &packet);
        rig_expect_drop_of(&rig, drop_state);
        contribute_all(&below, i);
        rig_send(&rig, &packet);
        assert_int_equal(rig.tx_count, 2);
        assert_int_equal(rig_action(&rig, &below, 1, NULL).type, BY_TYPE_ERR);
        assert_int_equal(rig_action(&rig, &below, 1, NULL).flags, 0);
        assert_int_equal(rig_bank(&rig, 0, i, 0).state, BY_BANK_UP);
        rig_send(&rig, &packet);
        rig_expect_drop_of(&rig, drop_state);
        answer(i);
        rig_expect_results(&rig, &below, i, nine, 2);
        rig_release(&rig);
        packet = foreign_err(i, 0, reasons[i], bytes);
        rig_send(&rig, &packet);
        rig_expect_drop_of(&rig, drop_state);
    }
}

#define ROOT(f)  cmocka_unit_test_setup_teardown(f, start_root, stop)
#define BELOW(f) cmocka_unit_test_setup_teardown(f, start_below, stop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        BELOW(ranks_that_disagree_in_any_word_get_an_objection_that_names_both),
        ROOT(a_poisoned_chunk_never_gets_a_value),
        BELOW(an_objection_is_repeated_to_the_parent_too),
        BELOW(a_parent_that_asks_for_a_poisoned_chunk_gets_the_objection_again),
        BELOW(what_a_node_cannot_compute_is_refused_and_poisons_the_chunk),
        BELOW(an_objection_of_the_parent_poisons_and_goes_to_all_children),
        BELOW(a_result_from_the_parents_address_by_another_port_is_dropped),
        BELOW(an_objection_to_a_later_chunk_leaves_a_bank_that_waits_for_the_parent),
        BELOW(a_host_that_misses_a_rank_ends_its_next_chunk),
        BELOW(an_objection_of_a_child_goes_up_and_to_its_sisters),
        BELOW(objections_out_of_place_are_dropped),
        BELOW(a_parent_that_lost_its_place_is_reported_to_the_leaves_and_voids_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
