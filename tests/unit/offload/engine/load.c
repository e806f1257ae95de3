/*
 * Tables of an engine: sizes and limits; stage, commit and abort; the state after a bad image;
 * entries that stay, change, disappear and appear while packets are in flight.
 */
#include "tests/unit/offload/engine/rig.h"

#include "offload/base/prng.h"
#include "offload/table/image.h"

static struct engine_rig rig;
static const struct rig_entry one_entry = {.job = 1, .gen = 7, .root = 1, .children = 2, .window = 4};
static const float values[2] = {1, 2};

static int start(void **state)
{
    (void)state;
    rig_start(&rig, &one_entry, 1);
    return 0;
}

static int open_only(void **state)
{
    (void)state;
    rig_open(&rig);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    rig_close(&rig);
    return 0;
}

static int stage(const struct rig_entry *entries, uint32_t count, struct by_image_fault *fault)
{
    size_t bytes;
    const uint8_t *image = rig_image(entries, count, NULL, 0, &bytes);

    return by_engine_stage(rig.engine, image, bytes, fault);
}

static void contribute(const struct rig_entry *entry, unsigned child, uint32_t seq)
{
    struct rig_packet packet = rig_contrib(entry, child, seq, values, 2);

    rig_send(&rig, &packet);
}

static void sizes_out_of_range_are_refused(void **state)
{
    static const struct {
        struct by_engine_config config;
        int sound;
    } rows[] = {
        {{1, 8, 128, 1, 0, 0, 0, 0, 0, NULL, 0, 0, 0, 0, 0}, 1},
        {{256, BY_PAYLOAD_MAX, 1 << 20, 16, 16, 0, 1, 0, 0, NULL, 0, 0, 0, 0, 0}, 1},
        {{0, 8, 128, 1, 0, 0, 0, 0, 0, NULL, 0, 0, 0, 0, 0}, 0},
        {{0xffffffff, 8, 128, 1, 0, 0, 0, 0, 0, NULL, 0, 0, 0, 0, 0}, 0},
        {{1, 7, 128, 1, 0, 0, 0, 0, 0, NULL, 0, 0, 0, 0, 0}, 0},
        {{1, BY_PAYLOAD_MAX + 1, 128, 1, 0, 0, 0, 0, 0, NULL, 0, 0, 0, 0, 0}, 0},
        {{1, 8, 127, 1, 0, 0, 0, 0, 0, NULL, 0, 0, 0, 0, 0}, 0},
        {{1, 8, BY_IMAGE_BYTES_MAX + 1, 1, 0, 0, 0, 0, 0, NULL, 0, 0, 0, 0, 0}, 0},
        {{1, 8, 128, 0, 0, 0, 0, 0, 0, NULL, 0, 0, 0, 0, 0}, 0},
        {{1, 8, 128, BY_ENTRIES_MAX + 1, 0, 0, 0, 0, 0, NULL, 0, 0, 0, 0, 0}, 0},
        {{1, 8, 128, 1, BY_RELAYS_MAX + 1, 0, 0, 0, 0, NULL, 0, 0, 0, 0, 0}, 0},
        {{1, 8, 128, 1, 0, 0, 0, 0, 1, NULL, 0, 0, 0, 0, 0}, 1},
        {{1, 8, 128, 1, 0, 0, 0, 0, 0, NULL, 128, 0, 0, 0, 0}, 1},
        {{1, 8, 128, 1, 0, 0, 0, 0, 0, NULL, 96, 0, 0, 0, 0}, 0},
        {{1, 8, 128, 1, 0, 0, 0, 0, 0, NULL, 0, BY_SPARES_MAX, 0, 0, 0}, 1},
        {{1, 8, 128, 1, 0, 0, 0, 0, 0, NULL, 0, BY_SPARES_MAX + 1, 0, 0, 0}, 0},
        {{1, 8, 128, 1, 0, 0, 0, 0, 2 * BY_TABLE_PORTS_MAX * (BY_SHARES_MAX + 1) + 1, NULL, 0, 0, 0, 0, 0},
         0},
    };
    struct by_engine *engine;

    (void)state;
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        size_t bytes = by_engine_size(&rows[i].config);

        assert_int_equal(bytes > 0, rows[i].sound);
        if (bytes > 0) {
            uint8_t *memory = aligned_alloc(64, bytes);

            assert_int_equal(bytes % 64, 0);
            assert_int_equal(by_engine_init(&engine, memory, bytes - 1, &rows[i].config), BY_ENOMEM);
            assert_int_equal(by_engine_init(&engine, memory + 8, bytes, &rows[i].config), BY_EINVAL);
            assert_int_equal(by_engine_init(&engine, memory, bytes, &rows[i].config), 0);
            free(memory);
        } else {
            assert_int_equal(by_engine_init(&engine, &rig, sizeof(rig), &rows[i].config), BY_EINVAL);
        }
    }
}

static void an_engine_without_a_table_knows_no_tree(void **state)
{
    struct by_bank_view view;
    size_t bytes = 1;

    (void)state;
    contribute(&one_entry, 0, 0);
    rig_expect_drop_of(&rig, drop_entry);
    assert_null(by_engine_image(rig.engine, &bytes));
    assert_int_equal(bytes, 0);
    assert_null(by_engine_staged(rig.engine, &bytes));
    assert_int_equal(by_engine_commit(rig.engine), BY_ESTATE);
    assert_int_equal(by_engine_bank(rig.engine, 0, 0, 0, &view), BY_ENOENT);
    by_engine_abort(rig.engine);
}

static void a_staged_table_changes_nothing_until_it_is_committed(void **state)
{
    size_t size, bytes;
    const uint8_t *image = rig_image(&one_entry, 1, NULL, 0, &size);
    const uint8_t *staged;

    (void)state;
    assert_int_equal(by_engine_stage(rig.engine, image, size, NULL), 0);
    staged = by_engine_staged(rig.engine, &bytes);
    assert_int_equal(bytes, size);
    assert_memory_equal(staged, image, size);
    assert_null(by_engine_image(rig.engine, &bytes));
    contribute(&one_entry, 0, 0);
    rig_expect_drop_of(&rig, drop_entry);
    assert_int_equal(by_engine_commit(rig.engine), 0);
    assert_null(by_engine_staged(rig.engine, &bytes));
    assert_memory_equal(by_engine_image(rig.engine, &bytes), image, size);
    assert_int_equal(by_engine_commit(rig.engine), BY_ESTATE);
    contribute(&one_entry, 0, 0);
    assert_int_equal(rig_bank(&rig, 0, 0, 0).have, 1);
}

static void an_aborted_table_is_forgotten(void **state)
{
    size_t bytes;

    (void)state;
    assert_int_equal(stage(&one_entry, 1, NULL), 0);
    by_engine_abort(rig.engine);
    assert_null(by_engine_staged(rig.engine, &bytes));
    assert_int_equal(by_engine_commit(rig.engine), BY_ESTATE);
}

static void a_bad_image_leaves_the_active_table_untouched(void **state)
{
    struct by_image_fault fault;
    static uint8_t copy[4096];
    const uint8_t *image;
    size_t bytes;

    (void)state;
    contribute(&one_entry, 1, 0);
    image = rig_image(&one_entry, 1, NULL, 0, &bytes);
    for (size_t i = 0; i < bytes; i += 7) {
        memcpy(copy, image, bytes);
        copy[i] ^= 0x10;
        assert_true(by_engine_stage(rig.engine, copy, bytes, &fault) < 0);
        assert_int_equal(by_engine_commit(rig.engine), BY_ESTATE);
    }
    for (size_t size = 0; size < bytes; size += 5)
        assert_true(by_engine_stage(rig.engine, image, size, &fault) < 0);
    assert_int_equal(rig_bank(&rig, 0, 0, 0).have, 2);
    contribute(&one_entry, 0, 0);
    assert_int_equal(rig.tx_count, 2);
}

static void a_failed_stage_also_forgets_what_was_staged_before(void **state)
{
    uint8_t garbage[200] = {0};

    (void)state;
    assert_int_equal(stage(&one_entry, 1, NULL), 0);
    assert_int_equal(by_engine_stage(rig.engine, garbage, sizeof(garbage), NULL), BY_EFORMAT);
    assert_int_equal(by_engine_commit(rig.engine), BY_ESTATE);
}

static void images_beyond_the_engines_memory_are_refused(void **state)
{
    static const struct rig_entry many_slots = {
        .job = 1, .gen = 1, .root = 1, .children = 1, .window = 1024, .slot_base = 1};
    static struct rig_entry many[65];
    static const struct by_image_relay relays[17] = {
#define R(i) {1, 1, 0x01000000 + (i), 0x02000000, 0, 0}
        R(0), R(1),  R(2),  R(3),  R(4),  R(5),  R(6),  R(7),  R(8),
        R(9), R(10), R(11), R(12), R(13), R(14), R(15), R(16),
#undef R
    };
    static uint8_t large[(1 << 20) + 1];
    const struct by_engine_config config = {1, 64, 4096, 1, 0, 0, 0, 0, 0, NULL, 0, 0, 0, 0, 0};
    struct by_image_fault fault;
    struct by_engine *engine;
    const uint8_t *image;
    size_t bytes;
    void *memory;

    (void)state;
    assert_int_equal(stage(&many_slots, 1, &fault), BY_ELIMIT);
    for (uint16_t i = 0; i < 65; i++)
        many[i] = (struct rig_entry){
            .job = 1, .tree = i, .gen = 1, .root = 1, .children = 1, .window = 1, .slot_base = i};
    assert_int_equal(stage(many, 65, &fault), BY_ELIMIT);
    assert_int_equal(stage(many, 64, &fault), 0);
    image = rig_image(NULL, 0, relays, 17, &bytes);
    assert_int_equal(by_engine_stage(rig.engine, image, bytes, &fault), BY_ELIMIT);
    image = rig_image(NULL, 0, relays, 16, &bytes);
    assert_int_equal(by_engine_stage(rig.engine, image, bytes, &fault), 0);
    assert_int_equal(by_engine_stage(rig.engine, large, sizeof(large), &fault), BY_ELIMIT);
    assert_string_equal(fault.section, "header");
    /* A node that supports no relays. */
    memory = aligned_alloc(64, by_engine_size(&config));
    assert_int_equal(by_engine_init(&engine, memory, by_engine_size(&config), &config), 0);
    image = rig_image(NULL, 0, relays, 1, &bytes);
    assert_int_equal(by_engine_stage(engine, image, bytes, &fault), BY_ELIMIT);
    free(memory);
}

static void entries_that_share_a_slot_are_refused(void **state)
{
    struct by_image_fault fault;
    struct rig_entry two[2] = {
        {.job = 1, .tree = 0, .gen = 7, .root = 1, .children = 2, .window = 4, .slot_base = 2},
        {.job = 1, .tree = 1, .gen = 7, .root = 1, .children = 2, .window = 2, .slot_base = 5}};

    (void)state;
    assert_int_equal(stage(two, 2, &fault), BY_EFORMAT);
    assert_string_equal(fault.section, "entry");
    assert_int_equal(fault.index, 1);
    assert_int_equal(fault.value, 5);
    two[1].slot_base = 1;
    assert_int_equal(stage(two, 2, &fault), BY_EFORMAT);
    two[1].slot_base = 0;
    assert_int_equal(stage(two, 2, &fault), 0);
    two[1].slot_base = 6;
    assert_int_equal(stage(two, 2, &fault), 0);
}

static void a_running_entry_may_not_change_its_shape_under_its_generation(void **state)
{
    struct by_image_fault fault;
    const struct rig_entry changed[] = {
        {.job = 1, .gen = 7, .root = 1, .children = 2, .window = 4, .slot_base = 4},
        {.job = 1, .gen = 7, .root = 1, .children = 2, .window = 8},
        {.job = 1, .gen = 7, .root = 1, .children = 2, .window = 4, .payload_max = 512},
        {.job = 1, .gen = 7, .root = 1, .children = 3, .window = 4},
        {.job = 1, .gen = 7, .root = 0, .children = 2, .window = 4},
    };

    (void)state;
    contribute(&one_entry, 0, 0);
    for (unsigned i = 0; i < sizeof(changed) / sizeof(changed[0]); i++) {
        struct rig_entry next = changed[i];

        assert_int_equal(stage(&changed[i], 1, &fault), BY_EBUSY);
        assert_string_equal(fault.section, "entry");
        assert_int_equal(by_engine_commit(rig.engine), BY_ESTATE);
        next.gen = 8;
        assert_int_equal(stage(&next, 1, &fault), 0);
    }
    by_engine_abort(rig.engine);
    assert_int_equal(rig_bank(&rig, 0, 0, 0).have, 1);
}

/* Neighbours are changed in the image itself. */
static void an_entry_in_use_keeps_its_neighbours_and_its_place(void **state)
{
    static const struct rig_entry inner = {.job = 1, .gen = 7, .children = 2, .window = 4};
    static const struct rig_entry wide = {.job = 1, .gen = 7, .children = 70, .window = 4, .nleaf = 70};
    struct by_image_fault fault;
    static uint8_t copy[8192];

    (void)state;
    assert_int_equal(stage(&inner, 1, &fault), BY_EBUSY); /* one_entry, the root, runs */
    for (unsigned i = 0; i < 8; i++) {
        struct by_image_entry entry;
        struct by_image_child child;
        const uint8_t *image;
        size_t bytes;

        rig_close(&rig);
        rig_start(&rig, &inner, 1);
        image = rig_image(&inner, 1, NULL, 0, &bytes);
        assert_in_range(bytes, 1, sizeof(copy));
        memcpy(copy, image, bytes);
        by_image_entry(copy, 0, &entry);
        by_image_child(copy, 1, &child);
        entry.parent_ip += i == 1;
        entry.parent_udp_port = (uint16_t)(entry.parent_udp_port + (i == 2));
        entry.parent_child = (uint8_t)(entry.parent_child + (i == 3));
        entry.depth = i == 4 ? 0 : entry.depth;
        child.ip += i == 5 ? 50 : 0;
        child.udp_port = (uint16_t)(child.udp_port + (i == 6));
        child.node = (uint16_t)(child.node + (i == 7 ? 5 : 0)); /* a name: no packet depends on it */
        by_image_put_entry(copy, 0, &entry);
        by_image_put_child(copy, 1, &child);
        by_image_seal(copy);
        assert_int_equal(by_engine_stage(rig.engine, copy, bytes, &fault),
                         i == 0 || i == 4 || i == 7 ? 0 : BY_EBUSY);
    }
    assert_int_equal(stage(&wide, 1, &fault), BY_EBUSY);
    assert_non_null(strstr(fault.what, "the generation must change"));
    assert_int_equal(stage(&wide, 1, NULL), BY_EBUSY);
}

static void entries_that_stay_go_on_where_they_are(void **state)
{
    const struct rig_entry next[2] = {
        {.job = 0, .gen = 3, .root = 1, .children = 2, .window = 4, .slot_base = 4}, one_entry};
    const float sum[2] = {2, 4};

    (void)state;
    contribute(&one_entry, 0, 0);
    contribute(&one_entry, 1, 1);
    assert_int_equal(stage(next, 2, NULL), 0);
    assert_int_equal(by_engine_commit(rig.engine), 0);
    assert_int_equal(rig_bank(&rig, 1, 0, 0).have, 1); /* its index in the image has changed */
    contribute(&one_entry, 1, 0);
    rig_expect_results(&rig, &one_entry, 0, sum, 2);
    rig_release(&rig);
    contribute(&next[0], 0, 0);
    assert_int_equal(rig_bank(&rig, 0, 0, 0).have, 1);
    /* The new entry disappears again; the old one continues. */
    assert_int_equal(stage(&one_entry, 1, NULL), 0);
    assert_int_equal(by_engine_commit(rig.engine), 0);
    contribute(&next[0], 0, 0);
    rig_expect_drop_of(&rig, drop_entry);
    contribute(&one_entry, 0, 1);
    rig_expect_results(&rig, &one_entry, 1, sum, 2);
}

static void a_new_generation_starts_anew_and_old_packets_die(void **state)
{
    struct rig_entry next = one_entry;
    const float sum[2] = {2, 4};

    (void)state;
    contribute(&one_entry, 0, 0);
    contribute(&one_entry, 1, 0);
    rig_release(&rig);
    contribute(&one_entry, 0, 4);
    next.gen = 8;
    assert_int_equal(stage(&next, 1, NULL), 0);
    assert_int_equal(by_engine_commit(rig.engine), 0);
    contribute(&one_entry, 1, 4);
    rig_expect_drop_of(&rig, drop_gen);
    assert_int_equal(rig_bank(&rig, 0, 0, 1).state, BY_BANK_VOID);
    contribute(&next, 0, 0);
    contribute(&next, 1, 0);
    rig_expect_results(&rig, &next, 0, sum, 2);
}

/* Slots change owner while the shell still sends from them: the new owner waits. */
static void slots_still_being_sent_are_not_reused_by_a_new_entry(void **state)
{
    const struct rig_entry next = {.job = 2, .gen = 1, .root = 1, .children = 2, .window = 4};
    const float sum[2] = {2, 4};
    const uint8_t *payload;
    struct by_tx kept[2];

    (void)state;
    contribute(&one_entry, 0, 0);
    contribute(&one_entry, 1, 0);
    memcpy(kept, rig.tx, sizeof(kept));
    payload = kept[0].payload;
    assert_int_equal(stage(&next, 1, NULL), 0);
    assert_int_equal(by_engine_commit(rig.engine), 0);
    contribute(&next, 0, 0);
    rig_expect_drop_of(&rig, drop_busy);
    assert_memory_equal(payload, sum, 8);
    by_engine_release(rig.engine, kept[0].ref);
    by_engine_release(rig.engine, kept[1].ref);
    contribute(&next, 0, 0);
    assert_int_equal(rig_bank(&rig, 0, 0, 0).have, 1);
}

static void hundreds_of_tables_one_after_another_leave_nothing_behind(void **state)
{
    (void)state;
    for (uint16_t round = 0; round < 300; round++) {
        struct rig_entry next[3];

        for (uint16_t i = 0; i < 3; i++)
            next[i] = (struct rig_entry){.job = (uint16_t)(round % 5),
                                         .tree = (uint16_t)(i * 7),
                                         .gen = round,
                                         .root = 1,
                                         .children = 2,
                                         .window = 8,
                                         .slot_base = 8u * ((i + round) % 3)};
        assert_int_equal(stage(next, 3, NULL), 0);
        assert_int_equal(by_engine_commit(rig.engine), 0);
        for (uint16_t i = 0; i < 3; i++) {
            contribute(&next[i], 0, 0);
            contribute(&next[i], 1, 0);
            assert_int_equal(rig.tx_count, 2);
            rig_release(&rig);
        }
    }
}

/* Many keys in a table that is half full: lookups find each of them, and no others. */
static void every_entry_of_a_full_table_is_found(void **state)
{
    enum { COUNT = 64 };
    struct rig_entry many[COUNT];
    struct by_prng prng = {.state = 5};

    (void)state;
    for (unsigned round = 0; round < 100; round++) {
        uint32_t key = 0;

        for (uint32_t i = 0; i < COUNT; i++) {
            key += 1 + (uint32_t)by_prng_below(&prng, 90);
            many[i] = (struct rig_entry){.job = (uint16_t)(key / 100),
                                         .tree = (uint16_t)(key % 100),
                                         .gen = (uint16_t)round,
                                         .root = 1,
                                         .children = 1,
                                         .window = 1,
                                         .slot_base = i};
        }
        assert_int_equal(stage(many, COUNT, NULL), 0);
        assert_int_equal(by_engine_commit(rig.engine), 0);
        for (uint32_t i = 0; i < COUNT; i++) {
            struct rig_entry other = many[i];

            contribute(&many[i], 0, 0);
            assert_int_equal(rig.tx_count, 1);
            assert_int_equal(rig_bank(&rig, i, 0, 0).state, BY_BANK_DONE);
            rig_release(&rig);
            other.job += 500;
            contribute(&other, 0, 0);
            rig_expect_drop_of(&rig, drop_entry);
        }
    }
}

#define STARTED(f) cmocka_unit_test_setup_teardown(f, start, stop)
#define OPEN(f)    cmocka_unit_test_setup_teardown(f, open_only, stop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_out_of_range_are_refused),
        OPEN(an_engine_without_a_table_knows_no_tree),
        OPEN(a_staged_table_changes_nothing_until_it_is_committed),
        OPEN(an_aborted_table_is_forgotten),
        STARTED(a_bad_image_leaves_the_active_table_untouched),
        STARTED(a_failed_stage_also_forgets_what_was_staged_before),
        OPEN(images_beyond_the_engines_memory_are_refused),
        OPEN(entries_that_share_a_slot_are_refused),
        STARTED(a_running_entry_may_not_change_its_shape_under_its_generation),
        STARTED(an_entry_in_use_keeps_its_neighbours_and_its_place),
        STARTED(entries_that_stay_go_on_where_they_are),
        STARTED(a_new_generation_starts_anew_and_old_packets_die),
        STARTED(slots_still_being_sent_are_not_reused_by_a_new_entry),
        OPEN(every_entry_of_a_full_table_is_found),
        OPEN(hundreds_of_tables_one_after_another_leave_nothing_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
