/*
 * Losses that a later packet of the same hop shows: what a node requests from a child or from its
 * parent, and what it answers from its banks.
 */
#include "tests/unit/offload/engine/rig.h"

static struct engine_rig rig;
static const struct rig_entry root = {.job = 1, .gen = 7, .root = 1, .children = 3, .window = 32};
static const struct rig_entry below = {.job = 1, .gen = 7, .root = 0, .children = 2, .window = 32};
static const struct rig_entry many = {.job = 1, .gen = 7, .root = 1, .children = 150, .window = 4};
static const struct rig_entry pair[2] = {
    {.job = 1, .tree = 0, .gen = 7, .root = 1, .children = 2, .window = 4, .nleaf = 3},
    {.job = 1, .tree = 1, .gen = 7, .root = 1, .children = 3, .window = 4, .nleaf = 3, .joined = 1}};
static const float one[2] = {1, 2}, two[2] = {2, 4}, nine[2] = {9, 9};

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

static int start_many(void **state)
{
    (void)state;
    rig_start(&rig, &many, 1);
    return 0;
}

static int start_pair(void **state)
{
    (void)state;
    rig_start(&rig, pair, 2);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    rig_close(&rig);
    return 0;
}

static void contribute(const struct rig_entry *entry, unsigned child, uint32_t seq, uint8_t flags)
{
    struct rig_packet packet = rig_contrib(entry, child, seq, one, 2);

    packet.header.flags |= flags;
    rig_send(&rig, &packet);
}

static void contribute_all(const struct rig_entry *entry, uint32_t seq)
{
    for (unsigned c = 0; c < entry->children; c++)
        contribute(entry, c, seq, 0);
}

static void answer(uint32_t seq, uint8_t flags)
{
    struct rig_packet packet = rig_result(&below, seq, nine, 2);

    packet.header.flags |= flags;
    rig_send(&rig, &packet);
}

/* A GAP from child `child` of `entry`, or from the parent (child < 0). */
static void give_gap(const struct rig_entry *entry, int child, uint32_t seq, uint32_t seen, uint8_t missing)
{
    struct rig_packet packet =
        child < 0 ? rig_result(entry, seq, NULL, 0) : rig_credit(entry, (unsigned)child, seq, 0, 0);
    struct by_gap gap = {.seen = seen, .missing = missing};
    uint8_t payload[BY_GAP_BYTES];

    packet.header.type = BY_TYPE_GAP;
    packet.header.flags = 0;
    by_gap_encode(&gap, payload);
    packet.payload = payload;
    packet.bytes = BY_GAP_BYTES;
    rig_send(&rig, &packet);
}

/* The last step's action `index` is a GAP with these contents. */
static void expect_gap(const struct rig_entry *entry, uint32_t index, unsigned child, uint32_t seq,
                       uint32_t seen, uint8_t missing)
{
    const uint8_t *payload;
    struct by_header header = rig_action(&rig, entry, index, &payload);
    struct by_gap gap;

    assert_int_equal(header.type, BY_TYPE_GAP);
    assert_int_equal(header.child, child);
    assert_int_equal(header.seq, seq);
    assert_int_equal(by_gap_decode(payload, BY_GAP_BYTES, &gap), 0);
    assert_int_equal(gap.seen, seen);
    assert_int_equal(gap.missing, missing);
}

static void a_lost_contribution_is_requested_from_its_child_once(void **state)
{
    (void)state;
    contribute(&root, 1, 0, 0);
    assert_int_equal(rig.tx_count, 0);
    contribute(&root, 1, 2, 0);
    assert_int_equal(rig.tx_count, 1);
    expect_gap(&root, 0, 1, 1, 2, 1);
    contribute(&root, 1, 3, 0);
    contribute(&root, 0, 0, 0); /* another child's stream */
    assert_int_equal(rig.tx_count, 0);
    contribute(&root, 1, 1, BY_FLAG_RETX);
    contribute(&root, 1, 4, 0);
    assert_int_equal(rig.tx_count, 0);
    assert_int_equal(by_engine_counters(rig.engine)->gap, 1);
}

static void a_loss_after_a_repair_is_requested_as_soon_as_the_first(void **state)
{
    (void)state;
    contribute(&root, 1, 0, 0);
    contribute(&root, 1, 2, 0);
    contribute(&root, 1, 1, BY_FLAG_RETX);
    contribute(&root, 1, 4, 0);
    assert_int_equal(rig.tx_count, 1);
    expect_gap(&root, 0, 1, 3, 4, 1);
    assert_int_equal(by_engine_counters(rig.engine)->gap, 2);
    contribute(&root, 1, 5, 0);
    contribute(&root, 1, 3, 0); /* late by three chunks, which is learned */
    for (uint32_t seq = 7; seq < 10; seq++)
        contribute(&root, 1, seq, 0);
    contribute(&root, 1, 6, 0);
    assert_int_equal(by_engine_counters(rig.engine)->gap, 2);
}

/* Chunk 1 arrives late and was sent once: up to half a window, the hop is taken to reorder. */
static void lateness_is_learned_up_to_half_a_window(void **state)
{
    (void)state;
    for (uint32_t extent = root.window / 2u; extent < root.window / 2 + 2u; extent++) {
        rig_start(&rig, &root, 1);
        contribute(&root, 1, 0, 0);
        for (uint32_t seq = 2; seq <= extent; seq++)
            contribute(&root, 1, seq, 0);
        contribute(&root, 1, 1, 0);
        contribute(&root, 1, extent + 2, 0);
        assert_int_equal(rig.tx_count, extent != root.window / 2u);
        rig_close(&rig);
    }
}

static void a_lost_chunk_of_a_new_session_is_requested_from_a_bank_of_an_old_one(void **state)
{
    const uint32_t start = 8 * root.window;

    (void)state;
    for (uint32_t seq = 0; seq < 4; seq++) {
        contribute_all(&root, seq);
        rig_release(&rig);
    }
    contribute(&root, 0, 4, 0); /* the old session ends with a chunk that lacks children */
    for (unsigned c = 0; c < root.children; c++)
        contribute(&root, c, start, BY_FLAG_START);
    contribute(&root, 1, start + 5, BY_FLAG_START);
    assert_int_equal(rig.tx_count, 1);
    expect_gap(&root, 0, 1, start + 1, start + 5, 0xf);
    contribute(&root, 1, start + 4, BY_FLAG_START | BY_FLAG_RETX);
    assert_int_equal(rig.tx_count, 0);
}

static void adjacent_losses_are_requested_together(void **state)
{
    (void)state;
    contribute(&root, 2, 0, 0);
    contribute(&root, 2, 12, 0); /* 1 to 11 are missing: a request names eight chunks */
    assert_int_equal(rig.tx_count, 1);
    expect_gap(&root, 0, 2, 1, 12, 255);
    contribute(&root, 2, 10, BY_FLAG_RETX);
    assert_int_equal(rig.tx_count, 1);
    expect_gap(&root, 0, 2, 9, 12, 5);
}

static void a_request_without_an_answer_is_repeated_after_a_while(void **state)
{
    (void)state;
    contribute(&root, 0, 0, 0);
    contribute(&root, 0, 2, 0);
    expect_gap(&root, 0, 0, 1, 2, 1);
    rig.now_ns += RIG_INTERVAL_NS;
    contribute(&root, 0, 3, 0);
    assert_int_equal(rig.tx_count, 0);
    rig.now_ns += 1;
    contribute(&root, 0, 4, 0);
    assert_int_equal(rig.tx_count, 1);
    expect_gap(&root, 0, 0, 1, 4, 1);
}

static void a_hop_that_reorders_makes_requests_patient(void **state)
{
    (void)state;
    contribute(&root, 0, 0, 0);
    contribute(&root, 0, 2, 0);
    contribute(&root, 0, 3, 0);
    contribute(&root, 0, 1, 0); /* late by three chunks, not lost */
    assert_int_equal(by_engine_counters(rig.engine)->gap, 1);
    contribute(&root, 0, 5, 0);
    contribute(&root, 0, 6, 0);
    contribute(&root, 0, 7, 0);
    contribute(&root, 0, 4, 0);
    assert_int_equal(by_engine_counters(rig.engine)->gap, 1);
}

static void a_lost_result_is_requested_from_the_parent(void **state)
{
    (void)state;
    for (uint32_t seq = 0; seq < 4; seq++)
        contribute_all(&below, seq);
    answer(0, 0);
    assert_int_equal(rig.tx_count, 2);
    answer(2, 0);
    assert_int_equal(rig.tx_count, 3);
    expect_gap(&below, 2, 5, 1, 2, 1);
    answer(1, BY_FLAG_RETX);
    assert_int_equal(rig.tx_count, 2);
}

static void a_sum_that_the_parent_lacks_is_sent_again_if_it_was_sent_before_what_arrived(void **state)
{
    const uint8_t *payload;

    (void)state;
    contribute_all(&below, 0);
    rig.now_ns += 100;
    contribute_all(&below, 1);
    contribute(&below, 0, 2, 0);
    rig.now_ns += 100;
    give_gap(&below, -1, 0, 1, 5); /* chunk 2 is not complete here */
    assert_int_equal(rig.tx_count, 1);
    assert_int_equal(rig_action(&rig, &below, 0, &payload).type, BY_TYPE_CONTRIB);
    assert_int_equal(rig_action(&rig, &below, 0, &payload).seq, 0);
    assert_int_equal(rig_action(&rig, &below, 0, &payload).flags, BY_FLAG_RETX);
    assert_memory_equal(payload, two, sizeof(two));
    rig.now_ns += 100;
    give_gap(&below, -1, 0, 1, 1); /* the repair has left after chunk 1 */
    assert_int_equal(rig.tx_count, 0);
    assert_int_equal(by_engine_counters(rig.engine)->repair_up, 1);
}

static void a_result_that_a_child_lacks_is_sent_again_to_that_child(void **state)
{
    const uint8_t *payload;

    (void)state;
    contribute_all(&root, 0);
    rig.now_ns += 100;
    contribute_all(&root, 1);
    give_gap(&root, 2, 0, 1, 3);
    assert_int_equal(rig.tx_count, 2);
    assert_int_equal(rig_action(&rig, &root, 0, &payload).type, BY_TYPE_RESULT);
    assert_int_equal(rig_action(&rig, &root, 0, &payload).child, 2);
    give_gap(&root, 2, 1, 0, 1); /* chunk 1 was sent after chunk 0 */
    assert_int_equal(rig.tx_count, 0);
}

static void a_result_whose_memory_has_changed_is_not_sent_again(void **state)
{
    (void)state;
    contribute_all(&root, 0);
    ((uint8_t *)(uintptr_t)rig.tx[0].payload)[1] ^= 1;
    contribute_all(&root, 1);
    give_gap(&root, 2, 0, 1, 1);
    assert_int_equal(rig.tx_count, 0);
    contribute(&root, 2, 0, BY_FLAG_RETX); /* the timer of a host finds it */
    assert_int_equal(by_engine_counters(rig.engine)->alarm_memory, 1);
}

static void a_request_of_another_shape_or_origin_is_dropped(void **state)
{
    static const uint8_t nothing[BY_GAP_BYTES];
    struct rig_packet packet = rig_credit(&root, 1, 0, 0, 0);

    (void)state;
    packet.payload = nothing;
    contribute_all(&root, 0);
    packet.header.type = BY_TYPE_GAP;
    packet.header.flags = 0;
    packet.bytes = BY_GAP_BYTES - 1;
    rig_send(&rig, &packet);
    rig_expect_drop_of(&rig, drop_count);
    packet.bytes = BY_GAP_BYTES; /* names no chunk */
    rig_send(&rig, &packet);
    rig_expect_drop_of(&rig, drop_format);
    packet.header.child = 9;
    rig_send(&rig, &packet);
    rig_expect_drop_of(&rig, drop_child);
}

static void each_of_more_than_64_children_has_a_stream(void **state)
{
    (void)state;
    contribute(&many, 36, 1, 0);
    expect_gap(&many, 0, 36, 0, 1, 1);
    contribute(&many, 36, 0, BY_FLAG_RETX);
    contribute(&many, 100, 1, 0); /* has bit 36 in its set */
    assert_int_equal(rig.tx_count, 1);
    expect_gap(&many, 0, 36, 0, 1, 1);
    assert_int_equal(rig.tx[0].dst_ip, RIG_CHILD_IP + 100);
    contribute(&many, 100, 0, BY_FLAG_RETX);
    assert_int_equal(rig.tx_count, 0);
    for (uint32_t seq = 0; seq < 2; seq++)
        for (unsigned c = 0; c < many.children; c++)
            if (c != 36 && c != 100)
                contribute(&many, c, seq, 0);
    give_gap(&many, 100, 0, 1, 1);
    assert_int_equal(rig.tx_count, 1);
    assert_int_equal(rig_action(&rig, &many, 0, NULL).type, BY_TYPE_RESULT);
    assert_int_equal(rig.tx[0].dst_ip, RIG_CHILD_IP + 100);
}

static void children_of_a_pair_have_a_stream_in_their_tree(void **state)
{
    struct rig_packet packet;

    (void)state;
    packet = rig_credit(&pair[1], 1, 1, 2, 0);
    rig_send(&rig, &packet);
    expect_gap(&pair[1], 0, 1, 0, 1, 1);
    packet = rig_credit(&pair[1], 1, 0, 2, BY_FLAG_RETX);
    rig_send(&rig, &packet);
    assert_int_equal(rig.tx_count, 0);
    contribute(&pair[0], 1, 1, 0);
    expect_gap(&pair[0], 0, 1, 0, 1, 1);
}

/* A table that keeps an entry keeps its streams too. */
static void a_stream_begins_anew_in_a_new_table(void **state)
{
    const uint8_t *image;
    size_t bytes;

    (void)state;
    contribute(&root, 1, 0, 0);
    contribute(&root, 1, 2, 0);
    image = rig_image(&root, 1, NULL, 0, &bytes);
    assert_int_equal(by_engine_stage(rig.engine, image, bytes, NULL), 0);
    assert_int_equal(by_engine_commit(rig.engine), 0);
    contribute(&root, 1, 3, 0);
    expect_gap(&root, 0, 1, 1, 3, 1); /* once more */
    contribute(&root, 1, 5, 0);
    expect_gap(&root, 0, 1, 4, 5, 1);
}

#define ROOT(name)  cmocka_unit_test_setup_teardown(name, start_root, stop)
#define BELOW(name) cmocka_unit_test_setup_teardown(name, start_below, stop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ROOT(a_lost_contribution_is_requested_from_its_child_once),
        ROOT(a_loss_after_a_repair_is_requested_as_soon_as_the_first),
        cmocka_unit_test(lateness_is_learned_up_to_half_a_window),
        ROOT(a_lost_chunk_of_a_new_session_is_requested_from_a_bank_of_an_old_one),
        ROOT(adjacent_losses_are_requested_together),
        ROOT(a_request_without_an_answer_is_repeated_after_a_while),
        ROOT(a_hop_that_reorders_makes_requests_patient),
        BELOW(a_lost_result_is_requested_from_the_parent),
        BELOW(a_sum_that_the_parent_lacks_is_sent_again_if_it_was_sent_before_what_arrived),
        ROOT(a_result_that_a_child_lacks_is_sent_again_to_that_child),
        ROOT(a_result_whose_memory_has_changed_is_not_sent_again),
        ROOT(a_request_of_another_shape_or_origin_is_dropped),
        cmocka_unit_test_setup_teardown(each_of_more_than_64_children_has_a_stream, start_many, stop),
        cmocka_unit_test_setup_teardown(children_of_a_pair_have_a_stream_in_their_tree, start_pair, stop),
        ROOT(a_stream_begins_anew_in_a_new_table),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
