/*
 * Mode DET: sums of floats have the same bits in every order of arrival, and they are the sums that
 * docs/arithmetic.md defines: first pairs of children, then the pairs in their order.
 */
#include <math.h>
#include <stdbool.h>

#include "offload/base/prng.h"
#include "offload/engine/state.h"
#include "tests/unit/offload/engine/rig.h"

#define COUNT  37u /* elements: vectors and a remainder */
#define ORDERS 40u

static struct engine_rig rig;
static float input[BY_CHILDREN_MAX][COUNT];

static float draw(struct by_prng *prng)
{
    /* Magnitudes from 2^-20 to 2^20, so that the result depends on the order of additions. */
    return ldexpf((float)by_prng_below(prng, 1u << 24) - 0x1p23f, (int)by_prng_below(prng, 41) - 43);
}

static void shuffle(struct by_prng *prng, unsigned *order, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        order[i] = i;
    for (unsigned i = count; i > 1; i--) {
        unsigned j = (unsigned)by_prng_below(prng, i), t = order[i - 1];

        order[i - 1] = order[j];
        order[j] = t;
    }
}

/* The sum in the defined order, in f32, over the children that contribute data. */
static float written_sum(unsigned children, uint64_t data, unsigned element)
{
    float sum = 0;
    int any = 0;

    for (unsigned pair = 0; pair < (children + 1) / 2; pair++) {
        float value = 0;
        int held = 0;

        for (unsigned c = 2 * pair; c < 2 * pair + 2 && c < children; c++)
            if (data >> c & 1) {
                value = held ? value + input[c][element] : input[c][element];
                held = 1;
            }
        if (held) {
            sum = any ? sum + value : value;
            any = 1;
        }
    }
    return sum;
}

/* Runs one chunk with the children in `order`; those outside `data` contribute none. Writes the
 * values at the root. */
static void run_chunk(const struct rig_entry *entry, const unsigned *order, uint64_t data, uint32_t seq,
                      float *values)
{
    const uint8_t *payload = NULL;

    for (unsigned i = 0; i < entry->children; i++) {
        struct rig_packet packet = data >> order[i] & 1
                                       ? rig_contrib(entry, order[i], seq, input[order[i]], COUNT)
                                       : rig_credit(entry, order[i], seq, COUNT, 0);

        packet.header.mode = BY_MODE_DET;
        /* some come directly from memory, without a psum */
        packet.direct = packet.psum_as_given = (seq + i) % 3 == 0;
        rig_send(&rig, &packet);
        if (i + 1 < entry->children) {
            assert_int_equal(rig.tx_count, 0);
            rig_send(&rig, &packet); /* a duplicate adds nothing */
            assert_int_equal(rig_action(&rig, entry, 0, NULL).type, BY_TYPE_WAIT);
        }
    }
    assert_int_equal(rig.tx_count, entry->children);
    assert_int_equal(rig_action(&rig, entry, 0, &payload).mode, BY_MODE_DET);
    memcpy(values, payload, sizeof(input[0]));
    rig_release(&rig);
}

static void sums_are_the_same_bits_in_every_order_of_arrival(void **state)
{
    struct by_prng prng = {20260101};

    (void)state;
    for (unsigned children = 1; children <= 17; children++) {
        struct rig_entry entry = {.job = 1,
                                  .gen = 7,
                                  .root = 1,
                                  .children = (uint8_t)children,
                                  .window = 2,
                                  .slot_base = 1,
                                  .depth = (uint8_t)by_image_det_depth(children)};

        rig_start(&rig, &entry, 1);
        for (uint32_t seq = 0; seq < ORDERS; seq++) {
            uint64_t data =
                seq % 4 == 3 ? by_prng_next(&prng) | 1u << by_prng_below(&prng, children) : UINT64_MAX;
            unsigned order[BY_CHILDREN_MAX];
            float values[COUNT];

            for (unsigned c = 0; c < children; c++)
                for (unsigned e = 0; e < COUNT; e++)
                    input[c][e] = draw(&prng);
            shuffle(&prng, order, children);
            run_chunk(&entry, order, data, seq, values);
            for (unsigned e = 0; e < COUNT; e++) {
                float expected = written_sum(children, data, e);

                if (memcmp((const uint8_t *)&values[e], (const uint8_t *)&expected, 4) != 0)
                    fail_msg("%u children, chunk %u, element %u: %a, not %a", children, seq, e,
                             (double)values[e], (double)expected);
            }
        }
        rig_close(&rig);
    }
}

/* The same test for each type whose sums and products depend on the order: every order gives the
 * bits of the first one. */
static void every_ordered_type_and_operator_is_deterministic(void **state)
{
    static const uint8_t dtypes[] = {BY_DTYPE_F16, BY_DTYPE_BF16, BY_DTYPE_F32, BY_DTYPE_F64};
    struct rig_entry entry = {
        .job = 1, .gen = 7, .root = 1, .children = 7, .window = 4, .depth = (uint8_t)by_image_det_depth(7)};
    struct by_prng prng = {7};
    static uint8_t raw[7][256];

    (void)state;
    for (unsigned d = 0; d < sizeof(dtypes); d++)
        for (unsigned op = BY_OP_SUM; op <= BY_OP_PROD; op++) {
            uint8_t first[256];
            unsigned differ = 0;

            for (unsigned c = 0; c < 7; c++)
                for (unsigned i = 0; i < sizeof(raw[c]); i++)
                    raw[c][i] = (uint8_t)by_prng_next(&prng);
            rig_start(&rig, &entry, 1);
            for (uint32_t seq = 0; seq < 12; seq++) {
                const uint8_t *payload = NULL;
                unsigned order[7];

                shuffle(&prng, order, 7);
                for (unsigned i = 0; i < 7; i++) {
                    struct rig_packet packet = rig_contrib(&entry, order[i], seq, NULL, 0);

                    packet.payload = raw[order[i]];
                    packet.bytes = sizeof(raw[0]);
                    packet.header.count = (uint16_t)(sizeof(raw[0]) / by_dtype_bytes(dtypes[d]));
                    packet.header.op = (uint8_t)op;
                    packet.header.dtype = dtypes[d];
                    packet.header.mode = BY_MODE_DET;
                    rig_send(&rig, &packet);
                }
                assert_int_equal(rig.tx_count, 7);
                rig_action(&rig, &entry, 0, &payload);
                if (seq == 0)
                    memcpy(first, payload, sizeof(first));
                differ += memcmp(first, payload, sizeof(first)) != 0;
                rig_release(&rig);
            }
            assert_int_equal(differ, 0);
            rig_close(&rig);
        }
}

static void a_node_without_the_slots_for_det_says_that_it_is_unsupported(void **state)
{
    struct rig_entry entry = {.job = 1, .gen = 7, .root = 1, .children = 3, .window = 4};
    struct rig_packet packet = rig_contrib(&entry, 0, 0, input[0], COUNT);
    const uint8_t *payload;
    struct by_err err;

    (void)state;
    rig_start(&rig, &entry, 1);
    packet.header.mode = BY_MODE_DET;
    rig_send(&rig, &packet);
    assert_int_equal(rig.tx_count, 3);
    assert_int_equal(rig_action(&rig, &entry, 0, &payload).type, BY_TYPE_ERR);
    assert_int_equal(by_err_decode(payload, BY_ERR_BYTES, &err), 0);
    assert_int_equal(err.reason, BY_ERR_UNSUPPORTED);
    assert_int_equal(err.other.mode, BY_MODE_DET);
    rig_close(&rig);
}

/* Integers, minima and maxima have one value in every order, and two floats have one sum. They need
 * no slots. */
static void det_needs_no_slots_where_order_does_not_matter(void **state)
{
    struct rig_entry entry = {.job = 1, .gen = 7, .root = 1, .children = 3, .window = 4};
    static const struct {
        uint8_t op, dtype, children;
    } rows[] = {{BY_OP_SUM, BY_DTYPE_I32, 3}, {BY_OP_MAX, BY_DTYPE_F32, 3}, {BY_OP_SUM, BY_DTYPE_F32, 2}};

    (void)state;
    for (unsigned r = 0; r < 3; r++) {
        entry.children = rows[r].children;
        rig_start(&rig, &entry, 1);
        for (unsigned c = 0; c < entry.children; c++) {
            struct rig_packet packet = rig_contrib(&entry, c, 0, input[c], COUNT);

            packet.header.mode = BY_MODE_DET;
            packet.header.op = rows[r].op;
            packet.header.dtype = rows[r].dtype;
            rig_send(&rig, &packet);
        }
        assert_int_equal(rig.tx_count, entry.children);
        assert_int_equal(rig_action(&rig, &entry, 0, NULL).type, BY_TYPE_RESULT);
        rig_close(&rig);
    }
}

/* A poisoned chunk leaves values in the slots of the pairs. They must not appear in the bank's next
 * chunk. */
static void what_a_poisoned_chunk_held_is_not_in_the_next_sum(void **state)
{
    struct rig_entry entry = {.job = 1, .gen = 7, .root = 1, .children = 4, .window = 1, .depth = 2};
    static const unsigned order[] = {0, 1, 2, 3};
    struct rig_packet packet;
    float values[COUNT];

    (void)state;
    rig_start(&rig, &entry, 1);
    for (unsigned c = 0; c < 4; c++)
        for (unsigned e = 0; e < COUNT; e++)
            input[c][e] = (float)(1u << c);
    packet = rig_contrib(&entry, 3, 0, input[3], COUNT);
    packet.header.mode = BY_MODE_DET;
    rig_send(&rig, &packet);
    packet = rig_contrib(&entry, 1, 0, input[1], COUNT);
    rig_send(&rig, &packet); /* mode FAST: the children disagree */
    assert_int_equal(rig_bank(&rig, 0, 0, 0).state, BY_BANK_POISON);
    run_chunk(&entry, order, UINT64_MAX, 1, values);
    run_chunk(&entry, order, 1u << 0 | 1u << 2, 2, values);
    assert_true(values[0] == 5.0f);
    rig_close(&rig);
}

/* The list of free places changes while two values wait. A chunk that gets an invalid place, no
 * place or an occupied one ends with a report that memory has changed. No value is lost or mistaken
 * for another. */
static void a_list_of_places_that_has_changed_ends_the_chunk(void **state)
{
    struct rig_entry entry = {.job = 1, .gen = 7, .root = 1, .children = 8, .window = 1, .depth = 4};
    static const unsigned order[] = {7, 2, 5, 4, 3, 6, 1, 0};

    (void)state;
    for (unsigned fault = 0; fault < 4; fault++) {
        const struct by_entry *built;
        uint32_t *list, *count;
        unsigned values = 0, alarms = 0;

        rig_start(&rig, &entry, 1);
        built = &rig.engine->active->entry[0];
        list = by_places_of(rig.engine, built);
        count = by_places_free(rig.engine, built);
        for (unsigned c = 0; c < 8; c++)
            for (unsigned e = 0; e < COUNT; e++)
                input[c][e] = (float)(1u << c);
        for (unsigned i = 0; i < 8; i++) {
            struct rig_packet packet = rig_contrib(&entry, order[i], 0, input[order[i]], COUNT);

            packet.header.mode = BY_MODE_DET;
            if (i == 2 && fault < 2)
                *count = fault == 0 ? 0 : 0x80000000u | *count;
            if (i == 2 && fault >= 2)
                list[*count - 1] = fault == 2 ? 0x40000001u : 0; /* 0: child 7 waits there */
            rig_send(&rig, &packet);
            for (uint32_t t = 0; t < rig.tx_count; t++) {
                unsigned type = rig_action(&rig, &entry, t, NULL).type;

                values += type == BY_TYPE_RESULT;
                alarms += type == BY_TYPE_ERR;
            }
            rig_release(&rig);
        }
        assert_int_equal(values, 0);
        assert_true(alarms >= 8);
        assert_true(by_engine_counters(rig.engine)->alarm_memory > 0);
        rig_close(&rig);
    }
}

static void slots_that_do_not_fit_are_refused(void **state)
{
    struct rig_entry entries[2] = {
        {.job = 1, .tree = 0, .gen = 7, .root = 1, .children = 6, .window = 4, .depth = 3},
        {.job = 1, .tree = 1, .gen = 7, .root = 1, .children = 2, .window = 4, .slot_base = 11}};
    struct by_image_fault fault;
    const uint8_t *image;
    size_t bytes;

    (void)state;
    rig_open(&rig);
    image = rig_image(entries, 2, NULL, 0, &bytes);
    assert_int_equal(by_engine_stage(rig.engine, image, bytes, &fault), BY_EFORMAT);
    assert_string_equal(fault.what, "slots overlap those of another entry, at slot");
    assert_int_equal(fault.value, 11);
    entries[1].slot_base = 12;
    image = rig_image(entries, 2, NULL, 0, &bytes);
    assert_int_equal(by_engine_stage(rig.engine, image, bytes, &fault), 0);
    entries[0].depth = 2;
    image = rig_image(entries, 2, NULL, 0, &bytes);
    assert_int_equal(by_engine_stage(rig.engine, image, bytes, &fault), BY_EFORMAT);
    assert_int_equal(fault.value, 2);
    entries[0].depth = 3;
    entries[0].window = 512; /* 1,536 slots; the node has 1,024 */
    image = rig_image(entries, 1, NULL, 0, &bytes);
    assert_int_equal(by_engine_stage(rig.engine, image, bytes, &fault), BY_ELIMIT);
    assert_int_equal(fault.value, 1536);
    rig_close(&rig);
}

/* A user's buffer whose owner writes to it after each read by the node: it holds one of two
 * values. */
static float restless[COUNT], both[2][COUNT];
static unsigned now_of_both;
static const struct by_reducer *undisturbed;

static void disturb(const void *seen)
{
    if (seen != restless)
        return;
    now_of_both ^= 1;
    memcpy(restless, both[now_of_both], sizeof(restless));
}

static uint32_t load_disturbed(void *restrict acc, const void *restrict in, uint32_t count)
{
    uint32_t guard = undisturbed->load(acc, in, count);

    disturb(in);
    return guard;
}

static int accumulate_disturbed(void *restrict acc, const void *restrict in, uint32_t count, uint32_t *guard)
{
    int holds = undisturbed->accumulate(acc, in, count, guard);

    disturb(in);
    return holds;
}

static uint32_t add_terms_disturbed(void *restrict acc, struct by_terms *restrict terms, uint32_t count)
{
    uint32_t guard = undisturbed->add_terms(acc, terms, count);

    for (uint32_t i = 0; i < terms->inputs; i++)
        disturb(terms->in[i]);
    return guard;
}

static uint32_t psum_disturbed(const void *data, size_t bytes)
{
    uint32_t psum = undisturbed->psum(data, bytes);

    disturb(data);
    return psum;
}

static uint32_t psum_copy_disturbed(void *restrict dst, const void *restrict src, size_t bytes)
{
    uint32_t psum = undisturbed->psum_copy(dst, src, bytes);

    disturb(src);
    return psum;
}

/* The engine's kernels for sums of f32, followed by a write of the user. */
static void disturb_kernels(struct by_reducer *kernels)
{
    const struct by_reducer **used = &rig.engine->reducer[BY_OP_SUM << 4 | BY_DTYPE_F32];

    undisturbed = *used;
    *kernels = *undisturbed;
    kernels->load = load_disturbed;
    kernels->accumulate = accumulate_disturbed;
    kernels->add_terms = add_terms_disturbed;
    kernels->psum = psum_disturbed;
    kernels->psum_copy = psum_copy_disturbed;
    *used = kernels;
}

/* Runs one chunk to which `child` contributes the changing buffer. Writes the values at the
 * root. */
static void run_disturbed(const struct rig_entry *entry, const unsigned *order, unsigned child, uint32_t seq,
                          float *values)
{
    const uint8_t *payload = NULL;

    for (unsigned i = 0; i < entry->children; i++) {
        bool is_restless = order[i] == child;
        struct rig_packet packet =
            rig_contrib(entry, order[i], seq, is_restless ? restless : input[order[i]], COUNT);

        packet.header.mode = BY_MODE_DET;
        packet.apart = is_restless;
        /* with a psum or, as in keyed jobs, without one */
        packet.direct = packet.psum_as_given = is_restless && seq % 3 > 0;
        rig_send(&rig, &packet);
    }
    assert_int_equal(rig.tx_count, entry->children);
    assert_int_equal(rig_action(&rig, entry, 0, &payload).type, BY_TYPE_RESULT);
    memcpy(values, payload, sizeof(input[0]));
    rig_release(&rig);
}

static void a_value_that_changes_while_it_is_added_counts_as_one_of_both(void **state)
{
    struct rig_entry entry = {
        .job = 1, .gen = 7, .root = 1, .children = 7, .window = 2, .depth = (uint8_t)by_image_det_depth(7)};
    struct by_prng prng = {31};
    struct by_reducer kernels;

    (void)state;
    rig_start(&rig, &entry, 1);
    disturb_kernels(&kernels);
    for (uint32_t seq = 0; seq < 7 * ORDERS; seq++) {
        unsigned order[BY_CHILDREN_MAX], child = seq % 7, right = 0;
        float values[COUNT], expected[COUNT];

        for (unsigned e = 0; e < COUNT; e++) {
            for (unsigned c = 0; c < 7; c++)
                input[c][e] = draw(&prng);
            both[0][e] = draw(&prng);
            both[1][e] = draw(&prng);
        }
        memcpy(restless, both[now_of_both], sizeof(restless));
        shuffle(&prng, order, 7);
        run_disturbed(&entry, order, child, seq, values);
        for (unsigned v = 0; v < 2; v++) {
            memcpy(input[child], both[v], sizeof(both[v]));
            for (unsigned e = 0; e < COUNT; e++)
                expected[e] = written_sum(7, UINT64_MAX, e);
            right += memcmp((const uint8_t *)values, (const uint8_t *)expected, sizeof(values)) == 0;
        }
        assert_int_equal(right, 1);
    }
    assert_int_equal(by_engine_counters(rig.engine)->alarm_memory, 0);
    rig_close(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_are_the_same_bits_in_every_order_of_arrival),
        cmocka_unit_test(every_ordered_type_and_operator_is_deterministic),
        cmocka_unit_test(a_value_that_changes_while_it_is_added_counts_as_one_of_both),
        cmocka_unit_test(a_node_without_the_slots_for_det_says_that_it_is_unsupported),
        cmocka_unit_test(det_needs_no_slots_where_order_does_not_matter),
        cmocka_unit_test(what_a_poisoned_chunk_held_is_not_in_the_next_sum),
        cmocka_unit_test(a_list_of_places_that_has_changed_ends_the_chunk),
        cmocka_unit_test(slots_that_do_not_fit_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
