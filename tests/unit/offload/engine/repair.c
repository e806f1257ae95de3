/*
 * Loss and duplication at one node: the effect of a duplicate in each state, the intervals between
 * repairs with and without a clock, WAIT and PROBE. poison.c tests disagreement.
 */
#include "tests/unit/offload/engine/rig.h"

static struct engine_rig rig;
static const struct rig_entry root = {.job = 1, .gen = 7, .root = 1, .children = 3, .window = 4};
static const struct rig_entry below = {.job = 1, .gen = 7, .root = 0, .children = 2, .window = 4};
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

/* Action `index` is a WAIT to `child`. */
static void expect_wait(const struct rig_entry *entry, uint32_t index, unsigned child, unsigned wait_state,
                        uint64_t missing)
{
    const uint8_t *payload;
    struct by_header header = rig_action(&rig, entry, index, &payload);
    struct by_wait wait;

    assert_int_equal(header.type, BY_TYPE_WAIT);
    assert_int_equal(header.child, child);
    assert_int_equal(rig.tx[index].port, child);
    assert_int_equal(by_wait_decode(payload, rig.tx[index].payload_bytes, &wait), 0);
    assert_int_equal(wait.node, RIG_NODE);
    assert_int_equal(wait.state, wait_state);
    assert_int_equal(wait.at, RIG_NODE);
    assert_true(wait.missing == missing);
}

static void a_duplicate_while_summing_learns_who_is_missing(void **state)
{
    (void)state;
    contribute(&root, 1, 0);
    contribute(&root, 1, 0);
    assert_int_equal(rig.tx_count, 2); /* the WAIT, and a question to the first missing child (place.c) */
    expect_wait(&root, 0, 1, BY_WAIT_CHILDREN, 5);
    assert_int_equal(rig_action(&rig, &root, 0, NULL).seq, 0);
    assert_int_equal(counters()->wait, 1);
    assert_int_equal(counters()->duplicate, 1);
}

static void a_child_is_told_to_wait_once_an_interval_and_others_beside_it(void **state)
{
    (void)state;
    contribute(&root, 0, 0);
    contribute(&root, 1, 0);
    contribute(&root, 1, 0);
    expect_wait(&root, 0, 1, BY_WAIT_CHILDREN, 4);
    contribute(&root, 1, 0);
    assert_int_equal(rig.tx_count, 0);
    contribute(&root, 0, 0);
    expect_wait(&root, 0, 0, BY_WAIT_CHILDREN, 4);
    rig.now_ns += RIG_INTERVAL_NS;
    contribute(&root, 1, 0);
    expect_wait(&root, 0, 1, BY_WAIT_CHILDREN, 4);
    assert_int_equal(counters()->duplicate, 4);
}

static void a_duplicate_while_waiting_for_the_parent_sends_the_same_sum_up_again(void **state)
{
    const uint8_t *payload;
    struct by_header header;

    (void)state;
    contribute_all(&below, 0);
    contribute(&below, 1, 0); /* within the interval after the sum was sent: only a WAIT */
    assert_int_equal(rig.tx_count, 1);
    expect_wait(&below, 0, 1, BY_WAIT_PARENT, 0);
    rig.now_ns += RIG_INTERVAL_NS;
    contribute(&below, 1, 0);
    assert_int_equal(rig.tx_count, 2);
    header = rig_action(&rig, &below, 0, &payload);
    assert_int_equal(header.type, BY_TYPE_CONTRIB);
    assert_int_equal(header.flags, BY_FLAG_RETX);
    assert_memory_equal(payload, two, 8);
    expect_wait(&below, 1, 1, BY_WAIT_PARENT, 0);
    contribute(&below, 0, 0);
    assert_int_equal(rig.tx_count, 1); /* the sum was sent just now */
    expect_wait(&below, 0, 0, BY_WAIT_PARENT, 0);
    assert_int_equal(counters()->repair_up, 1);
}

static void without_a_clock_only_the_lowest_child_causes_a_sending_upwards(void **state)
{
    (void)state;
    rig.now_ns = 0;
    contribute_all(&below, 0);
    contribute(&below, 1, 0);
    assert_int_equal(rig.tx_count, 1);
    expect_wait(&below, 0, 1, BY_WAIT_PARENT, 0);
    for (unsigned i = 0; i < 3; i++) {
        contribute(&below, 0, 0);
        assert_int_equal(rig.tx_count, 2);
        assert_int_equal(rig_action(&rig, &below, 0, NULL).type, BY_TYPE_CONTRIB);
        expect_wait(&below, 1, 0, BY_WAIT_PARENT, 0);
        rig_release(&rig);
    }
    contribute(&below, 0, 1);
    contribute(&below, 0, 1);
    contribute(&below, 0, 1);
    expect_wait(&below, 0, 0, BY_WAIT_CHILDREN, 2);
}

static void a_duplicate_of_a_complete_chunk_gets_the_result_alone(void **state)
{
    const float sum[2] = {3, 6};
    const uint8_t *payload;
    struct by_header header;

    (void)state;
    contribute_all(&root, 0);
    contribute(&root, 2, 0);
    assert_int_equal(rig.tx_count, 1);
    header = rig_action(&rig, &root, 0, &payload);
    assert_int_equal(header.type, BY_TYPE_RESULT);
    assert_int_equal(header.child, 2);
    assert_int_equal(header.flags, BY_FLAG_RETX);
    assert_int_equal(header.nleaf, 3);
    assert_memory_equal(payload, sum, 8);
    assert_int_equal(counters()->repair_result, 1);
    rig_release(&rig);
    rig_close(&rig);
    rig_start(&rig, &below, 1);
    contribute_all(&below, 0);
    answer(0);
    rig_release(&rig);
    contribute(&below, 0, 0);
    assert_int_equal(rig.tx_count, 1);
    assert_int_equal(rig_action(&rig, &below, 0, &payload).nleaf, 77);
    assert_memory_equal(payload, nine, 8);
}

static void a_second_result_is_never_multicast_again(void **state)
{
    (void)state;
    contribute_all(&below, 0);
    answer(0);
    rig_release(&rig);
    answer(0);
    rig_expect_drop_of(&rig, drop_state);
    assert_int_equal(rig.tx_count, 0);
}

static void a_result_for_a_chunk_that_is_incomplete_here_is_an_alarm(void **state)
{
    (void)state;
    contribute(&below, 0, 0);
    answer(0);
    rig_expect_drop_of(&rig, alarm_lost_state);
    assert_int_equal(rig.tx_count, 0);
    assert_int_equal(rig_bank(&rig, 0, 0, 0).state, BY_BANK_AGG);
    answer(1); /* no child has contributed to it */
    rig_expect_drop_of(&rig, alarm_lost_state);
    answer((uint32_t)-4);
    rig_expect_drop_of(&rig, drop_stale);
}

static void results_that_do_not_fit_the_chunk_are_dropped(void **state)
{
    struct rig_packet packet;

    (void)state;
    contribute_all(&below, 0);
    packet = rig_result(&below, 0, nine, 2);
    packet.header.optag++;
    rig_send(&rig, &packet);
    rig_expect_drop_of(&rig, drop_state);
    packet = rig_result(&below, 0, nine, 1);
    rig_send(&rig, &packet);
    rig_expect_drop_of(&rig, drop_count);
    packet = rig_result(&below, 0, nine, 2);
    packet.bytes = 4;
    rig_send(&rig, &packet);
    rig_expect_drop_of(&rig, drop_count);
    packet = rig_result(&below, 0, nine, 2);
    packet.header.psum = 1;
    packet.psum_as_given = 1;
    rig_send(&rig, &packet);
    rig_expect_drop_of(&rig, drop_psum);
    packet = rig_result(&below, 0, nine, 2);
    packet.header.child = 3;
    rig_send(&rig, &packet);
    rig_expect_drop_of(&rig, drop_ingress);
    assert_int_equal(rig_bank(&rig, 0, 0, 0).state, BY_BANK_UP);
    packet = rig_result(&below, 0, nine, 2);
    packet.header.child = BY_WIRE_CHILD_ALL;
    rig_send(&rig, &packet);
    rig_expect_results(&rig, &below, 0, nine, 2);
}

static void waits_of_all_ancestors_go_to_all_children_up_to_a_bound_for_each_sending(void **state)
{
    const struct by_wait wait = {.node = 33, .state = BY_WAIT_CHILDREN, .missing = UINT64_C(1) << 50};
    uint8_t bytes[BY_WAIT_BYTES];
    struct rig_packet packet;

    (void)state;
    by_wait_encode(&wait, bytes);
    packet = rig_wait(&below, 0, bytes);
    rig_send(&rig, &packet);
    rig_expect_drop_of(&rig, drop_state); /* nothing was sent up */
    contribute_all(&below, 0);
    for (unsigned round = 0; round < 2; round++) {
        for (unsigned c = 0; c < 2 * 15; c++) { /* maximum height of a tree: one WAIT per ancestor */
            const uint8_t *payload;
            struct by_header header;

            if (c % 2 == 0)
                rig_send(&rig, &packet);
            assert_int_equal(rig.tx_count, 2);
            header = rig_action(&rig, &below, c % 2, &payload);
            assert_int_equal(header.type, BY_TYPE_WAIT);
            assert_int_equal(header.child, c % 2);
            assert_int_equal(header.seq, 0);
            assert_memory_equal(payload, bytes, BY_WAIT_BYTES);
        }
        rig_send(&rig, &packet);
        rig_expect_drop_of(&rig, drop_state);
        rig.now_ns += RIG_INTERVAL_NS;
        contribute(&below, 0, 0);
        rig_release(&rig);
    }
    bytes[2] = 9;
    rig_send(&rig, &packet);
    rig_expect_drop_of(&rig, drop_format);
    packet.bytes = 12;
    rig_send(&rig, &packet);
    rig_expect_drop_of(&rig, drop_count);
    packet.src_ip++; /* no longer the parent, and the bit is no child's */
    rig_send(&rig, &packet);
    rig_expect_drop_of(&rig, drop_child);
}

static struct rig_packet probe(const struct rig_entry *entry, unsigned child, uint32_t seq)
{
    struct rig_packet packet = rig_credit(entry, child, seq, 2, 0);

    packet.header.type = BY_TYPE_PROBE;
    packet.header.flags = 0;
    packet.header.nleaf = 0;
    return packet;
}

/* Only child 1, which asked for `seq`, gets a packet. It reports that the bank holds chunk 0. */
static void expect_place(uint32_t seq)
{
    struct by_header header;
    const uint8_t *payload;
    struct by_err err;

    assert_int_equal(rig.tx_count, 1);
    header = rig_action(&rig, &below, 0, &payload);
    assert_int_equal(header.type, BY_TYPE_ERR);
    assert_int_equal(header.child, 1);
    assert_int_equal(header.seq, seq);
    assert_int_equal(by_err_decode(payload, BY_ERR_BYTES, &err), 0);
    assert_int_equal(err.reason, BY_ERR_WINDOW);
    assert_int_equal(err.expected_seq, 0);
}

static void a_probe_learns_how_its_chunk_stands(void **state)
{
    struct rig_packet packet = probe(&below, 1, 0);

    (void)state;
    rig_send(&rig, &packet);
    expect_wait(&below, 0, 1, BY_WAIT_CHILDREN, 3); /* no child has contributed */
    contribute(&below, 0, 0);
    rig_send(&rig, &packet);
    expect_wait(&below, 0, 1, BY_WAIT_CHILDREN, 2);
    assert_int_equal(rig_bank(&rig, 0, 0, 0).have, 1);
    contribute(&below, 1, 0);
    rig_release(&rig);
    rig_send(&rig, &packet);
    expect_wait(&below, 0, 1, BY_WAIT_PARENT, 0);
    answer(0);
    rig_release(&rig);
    rig_send(&rig, &packet);
    assert_int_equal(rig.tx_count, 1);
    assert_int_equal(rig_action(&rig, &below, 0, NULL).type, BY_TYPE_RESULT);
    rig_release(&rig);
    packet = probe(&below, 1, (uint32_t)-8);
    rig_send(&rig, &packet);
    rig_expect_drop_of(&rig, drop_stale);
    expect_place((uint32_t)-8);
    packet = probe(&below, 1, 64);
    rig_send(&rig, &packet);
    rig_expect_drop_of(&rig, drop_window);
    expect_place(64);
    packet = probe(&below, 2, 0);
    rig_send(&rig, &packet);
    rig_expect_drop_of(&rig, drop_child);
    packet = probe(&below, 1, 0);
    packet.payload = one;
    packet.bytes = 8;
    rig_send(&rig, &packet);
    rig_expect_drop_of(&rig, drop_count);
}

/* Returns the flags of the packet sent after both children have contributed, the second one with
 * `flags`. */
static uint8_t flags_up(uint8_t flags)
{
    struct rig_packet packet = rig_contrib(&below, 1, 0, one, 2);

    contribute(&below, 0, 0);
    packet.header.flags |= flags;
    rig_send(&rig, &packet);
    assert_int_equal(rig.tx_count, 1);
    return rig_action(&rig, &below, 0, NULL).flags;
}

static void what_came_by_a_repair_says_so_on_its_way_up_and_down(void **state)
{
    struct rig_packet packet = rig_result(&below, 0, nine, 2);

    (void)state;
    assert_int_equal(flags_up(BY_FLAG_RETX), BY_FLAG_RETX);
    rig_release(&rig);
    rig_send(&rig, &packet);
    assert_int_equal(rig.tx_count, 2);
    for (unsigned c = 0; c < 2; c++)
        assert_int_equal(rig_action(&rig, &below, c, NULL).flags, BY_FLAG_RETX);
}

static void what_needed_no_repair_here_says_so_unless_it_did_above(void **state)
{
    struct rig_packet packet = rig_result(&below, 0, nine, 2);

    (void)state;
    assert_int_equal(flags_up(0), 0);
    rig_release(&rig);
    packet.header.flags |= BY_FLAG_RETX;
    rig_send(&rig, &packet);
    assert_int_equal(rig.tx_count, 2);
    assert_int_equal(rig_action(&rig, &below, 0, NULL).flags, BY_FLAG_RETX);
    rig_release(&rig);
    contribute_all(&below, 1);
    packet = rig_result(&below, 1, nine, 2);
    rig_send(&rig, &packet);
    assert_int_equal(rig.tx_count, 2);
    assert_int_equal(rig_action(&rig, &below, 1, NULL).flags, 0);
}

#define ROOT(f)  cmocka_unit_test_setup_teardown(f, start_root, stop)
#define BELOW(f) cmocka_unit_test_setup_teardown(f, start_below, stop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ROOT(a_duplicate_while_summing_learns_who_is_missing),
        ROOT(a_child_is_told_to_wait_once_an_interval_and_others_beside_it),
        BELOW(a_duplicate_while_waiting_for_the_parent_sends_the_same_sum_up_again),
        BELOW(without_a_clock_only_the_lowest_child_causes_a_sending_upwards),
        ROOT(a_duplicate_of_a_complete_chunk_gets_the_result_alone),
        BELOW(a_second_result_is_never_multicast_again),
        BELOW(a_result_for_a_chunk_that_is_incomplete_here_is_an_alarm),
        BELOW(results_that_do_not_fit_the_chunk_are_dropped),
        BELOW(waits_of_all_ancestors_go_to_all_children_up_to_a_bound_for_each_sending),
        BELOW(what_came_by_a_repair_says_so_on_its_way_up_and_down),
        BELOW(what_needed_no_repair_here_says_so_unless_it_did_above),
        BELOW(a_probe_learns_how_its_chunk_stands),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
