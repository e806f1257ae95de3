/*
 * Entries of more than 64 children, whose bitmaps are in further banks (sets.c): sums, duplicates,
 * queries for a missing child, credits, and bits that flip in a further bank. And when a bank is
 * free for a chunk.
 */
#include "tests/unit/offload/engine/rig.h"

#include "offload/engine/state.h"

#define CHILDREN 150 /* three sets */

static struct engine_rig rig;
static const struct rig_entry root = {.job = 1, .gen = 7, .root = 1, .children = CHILDREN, .window = 4};
static const struct rig_entry below = {.job = 1, .gen = 7, .root = 0, .children = CHILDREN, .window = 4};
static const struct rig_entry narrow = {.job = 1, .gen = 7, .root = 0, .children = 2, .window = 4};
static const float one[2] = {1, 2};

static const struct by_engine_counters *counters(void)
{
    return by_engine_counters(rig.engine);
}

static void contribute(const struct rig_entry *entry, unsigned child, uint32_t seq, uint8_t flags)
{
    struct rig_packet packet = rig_contrib(entry, child, seq, one, 2);

    packet.header.flags |= flags;
    rig_send(&rig, &packet);
}

static void children_of_all_sets_are_summed_once(void **state)
{
    const float sum[2] = {CHILDREN, 2 * CHILDREN};

    (void)state;
    rig_start(&rig, &root, 1);
    for (unsigned c = 0; c < CHILDREN; c++) {
        contribute(&root, c, 0, 0);
        if (c == 70 || c == 140)
            contribute(&root, c, 0, 0);
        assert_int_equal(rig.tx_count > 2, c + 1 == CHILDREN);
    }
    assert_int_equal(counters()->duplicate, 2);
    assert_int_equal(rig.tx_count, CHILDREN);
    for (unsigned c = 0; c < CHILDREN; c++) {
        const uint8_t *payload;
        struct by_header header = rig_action(&rig, &root, c, &payload);

        assert_int_equal(rig.tx[c].dst_ip, RIG_CHILD_IP + c);
        assert_int_equal(header.type, BY_TYPE_RESULT);
        assert_int_equal(header.nleaf, CHILDREN);
        assert_memory_equal(payload, sum, sizeof(sum));
    }
    rig_release(&rig);
    contribute(&root, 149, 0, 0);
    assert_int_equal(rig.tx_count, 1);
    assert_int_equal(rig.tx[0].dst_ip, RIG_CHILD_IP + 149);
    assert_int_equal(rig_action(&rig, &root, 0, NULL).type, BY_TYPE_RESULT);
    rig_close(&rig);
}

/* Sends a duplicate of `child`, and requires a WAIT to it, and a PROBE to child 0 if `asks`. */
static void repeat(unsigned child, int asks)
{
    contribute(&root, child, 0, 0);
    assert_int_equal(rig.tx_count, 1 + asks);
    assert_int_equal(rig.tx[0].dst_ip, RIG_CHILD_IP + child);
    assert_int_equal(rig_action(&rig, &root, 0, NULL).type, BY_TYPE_WAIT);
    if (!asks)
        return;
    assert_int_equal(rig.tx[1].dst_ip, RIG_CHILD_IP);
    assert_int_equal(rig_action(&rig, &root, 1, NULL).type, BY_TYPE_PROBE);
}

static void probe(unsigned child, int asks)
{
    struct rig_packet packet = rig_credit(&root, child, 0, 2, 0);

    packet.header.type = BY_TYPE_PROBE;
    packet.header.flags = 0;
    packet.header.nleaf = 0;
    rig_send(&rig, &packet);
    assert_int_equal(rig.tx_count, 1 + asks);
}

static void without_a_clock_the_lowest_child_of_all_sets_asks(void **state)
{
    (void)state;
    rig_start(&rig, &root, 1);
    rig.now_ns = 0;
    contribute(&root, 140, 0, 0);
    contribute(&root, 70, 0, 0);
    repeat(140, 0);
    repeat(70, 1);
    probe(65, 0); /* lower, but it has not contributed */
    probe(71, 0); /* higher, in the same set */
    contribute(&root, 3, 0, 0);
    repeat(70, 0);
    repeat(3, 1);
    rig_close(&rig);
}

static void with_a_clock_the_first_child_of_an_interval_asks(void **state)
{
    (void)state;
    rig_start(&rig, &root, 1);
    contribute(&root, 70, 0, 0);
    contribute(&root, 6, 0, 0); /* the same bit of another set */
    repeat(70, 1);
    repeat(6, 0);
    contribute(&root, 70, 0, 0); /* it got one in this interval */
    assert_int_equal(rig.tx_count, 0);
    rig.now_ns += RIG_INTERVAL_NS;
    repeat(6, 1);
    repeat(70, 0);
    rig_close(&rig);
}

/* A node needs no value back if none of its children does. */
static void a_child_of_any_set_that_wants_the_value_makes_its_node_want_it(void **state)
{
    static const unsigned wants[] = {0, 63, 64, 128, 149, CHILDREN};

    (void)state;
    for (size_t i = 0; i < sizeof(wants) / sizeof(wants[0]); i++) {
        struct by_header header;

        rig_start(&rig, &below, 1);
        for (unsigned c = 0; c < CHILDREN; c++)
            contribute(&below, c, 0, c == wants[i] ? 0 : BY_FLAG_ACKONLY);
        assert_int_equal(rig.tx_count, 1);
        header = rig_action(&rig, &below, 0, NULL);
        assert_int_equal(header.type, BY_TYPE_CONTRIB);
        assert_int_equal(header.flags & BY_FLAG_ACKONLY, wants[i] == CHILDREN ? BY_FLAG_ACKONLY : 0);
        rig_close(&rig);
    }
}

static void a_bit_that_flips_in_a_further_set_voids_the_chunk(void **state)
{
    (void)state;
    for (uint32_t set = 0; set < 3; set++) {
        const struct by_entry *entry;
        struct by_err err;
        const uint8_t *payload;

        rig_start(&rig, &root, 1);
        entry = &rig.engine->active->entry[0];
        for (unsigned c = 0; c < CHILDREN - 1; c++)
            contribute(&root, c, 0, 0);
        rig.engine->bank[by_set_index(entry, by_bank_index(entry, 0), set)].have ^= 2;
        contribute(&root, CHILDREN - 1, 0, 0);
        assert_int_equal(counters()->alarm_memory, 1);
        assert_int_equal(rig.tx_count, CHILDREN);
        assert_int_equal(rig_action(&rig, &root, 0, &payload).type, BY_TYPE_ERR);
        assert_int_equal(by_err_decode(payload, BY_ERR_BYTES, &err), 0);
        assert_int_equal(err.reason, BY_ERR_MEMORY);
        assert_int_equal(err.node, RIG_NODE);
        rig_close(&rig);
    }
}

/* A session may begin at any chunk: banks that have held none are free for all of them. */
static void an_unused_bank_is_free_for_each_chunk_that_begins_a_session(void **state)
{
    static const uint32_t starts[] = {0, 8, 0x40000000, 0x80000000, 0xbffffff8, 0xfffffff8};

    (void)state;
    for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++) {
        rig_start(&rig, &narrow, 1);
        contribute(&narrow, 0, starts[i], BY_FLAG_START);
        assert_int_equal(rig_bank(&rig, 0, 0, 0).state, BY_BANK_AGG);
        assert_int_equal(rig_bank(&rig, 0, 0, 0).seq, starts[i]);
        contribute(&narrow, 0, starts[i] - 8, BY_FLAG_START); /* earlier: not over a used one */
        rig_expect_drop_of(&rig, drop_stale);
        assert_int_equal(rig_bank(&rig, 0, 0, 0).seq, starts[i]);
        rig_close(&rig);
    }
}

static void a_chunk_that_waits_for_the_parent_keeps_its_bank(void **state)
{
    struct rig_packet result = rig_result(&narrow, 0, one, 2);

    (void)state;
    rig_start(&rig, &narrow, 1);
    for (unsigned c = 0; c < 2; c++)
        contribute(&narrow, c, 0, 0);
    rig_release(&rig);
    contribute(&narrow, 0, 8, 0);
    rig_expect_drop_of(&rig, drop_window);
    assert_int_equal(rig_bank(&rig, 0, 0, 0).state, BY_BANK_UP);
    rig_send(&rig, &result);
    rig_release(&rig);
    contribute(&narrow, 0, 8, 0);
    assert_int_equal(rig_bank(&rig, 0, 0, 0).state, BY_BANK_AGG);
    assert_int_equal(rig_bank(&rig, 0, 0, 0).seq, 8);
    rig_close(&rig);
}

static void more_children_than_one_step_can_answer_are_refused_with_their_number(void **state)
{
    const struct rig_entry wider = {.job = 1, .gen = 7, .root = 1, .children = RIG_TX + 3, .window = 4};
    struct by_image_fault fault = {0};
    const uint8_t *image;
    size_t bytes;

    (void)state;
    rig_open(&rig);
    image = rig_image(&wider, 1, NULL, 0, &bytes);
    assert_int_equal(by_engine_stage(rig.engine, image, bytes, &fault), BY_ELIMIT);
    assert_non_null(strstr(fault.what, "more children of an entry, or pair"));
    assert_int_equal(fault.value, RIG_TX + 3);
    rig_close(&rig);
}

/* Halves are summed in wider accumulators, which are narrowed when all have contributed. */
static void a_bit_that_flips_in_the_accumulators_of_halves_voids_the_chunk(void **state)
{
    static const uint16_t halves[4] = {0x3c00, 0x4000, 0x4200, 0x4400};

    (void)state;
    for (unsigned flips = 0; flips < 2; flips++) {
        const struct by_entry *entry;

        rig_start(&rig, &narrow, 1);
        entry = &rig.engine->active->entry[0];
        for (unsigned c = 0; c < 2; c++) {
            struct rig_packet packet = rig_contrib(&narrow, c, 0, NULL, 4);

            packet.header.dtype = BY_DTYPE_F16;
            packet.payload = halves;
            packet.bytes = sizeof(halves);
            if (c == 1 && flips)
                by_bank_partial(rig.engine, by_bank_index(entry, 0))[1] ^= 4;
            rig_send(&rig, &packet);
        }
        assert_int_equal(counters()->alarm_memory, flips);
        assert_int_equal(rig_bank(&rig, 0, 0, 0).state, flips ? BY_BANK_POISON : BY_BANK_UP);
        rig_close(&rig);
    }
}

/* Two nodes, each with a plausible number of leaves, but not with all of them together. */
static void a_sum_of_too_few_leaves_is_not_passed_on(void **state)
{
    static const struct rig_entry four = {
        .job = 1, .gen = 7, .root = 0, .children = 2, .window = 4, .nleaf = 4};
    static const uint16_t halves[4] = {0x3c00, 0x4000, 0x4200, 0x4400};

    (void)state;
    for (unsigned row = 0; row < 4; row++) {
        unsigned few = row % 2, wide = row / 2;

        rig_start(&rig, &four, 1);
        for (unsigned c = 0; c < 2; c++) {
            struct rig_packet packet = rig_contrib(&four, c, 0, one, 2);

            if (!wide) {
                packet.header.dtype = BY_DTYPE_F16;
                packet.header.count = 4;
                packet.payload = halves;
            }
            packet.header.nleaf = c == 0 || few ? 1 : 3;
            rig_send(&rig, &packet);
        }
        assert_int_equal(counters()->alarm_memory, few);
        assert_int_equal(rig_bank(&rig, 0, 0, 0).state, few ? BY_BANK_POISON : BY_BANK_UP);
        rig_close(&rig);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(children_of_all_sets_are_summed_once),
        cmocka_unit_test(without_a_clock_the_lowest_child_of_all_sets_asks),
        cmocka_unit_test(with_a_clock_the_first_child_of_an_interval_asks),
        cmocka_unit_test(a_child_of_any_set_that_wants_the_value_makes_its_node_want_it),
        cmocka_unit_test(a_bit_that_flips_in_a_further_set_voids_the_chunk),
        cmocka_unit_test(more_children_than_one_step_can_answer_are_refused_with_their_number),
        cmocka_unit_test(a_bit_that_flips_in_the_accumulators_of_halves_voids_the_chunk),
        cmocka_unit_test(a_sum_of_too_few_leaves_is_not_passed_on),
        cmocka_unit_test(an_unused_bank_is_free_for_each_chunk_that_begins_a_session),
        cmocka_unit_test(a_chunk_that_waits_for_the_parent_keeps_its_bank),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
