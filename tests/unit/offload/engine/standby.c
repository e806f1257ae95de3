/* Tables with several generations of a job: each has its own trees, and packets of one reach no
 * entry of another. Single-threaded. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "offload/base/errors.h"
#include "tests/unit/offload/engine/rig.h"

/* Generation 5 of job 1, its standbys 6 and 9, and another job. */
static const struct rig_entry entries[] = {
    {.job = 1, .tree = 0, .gen = 5, .root = 1, .children = 2, .window = 8, .slot_base = 0, .ranks = 3},
    {.job = 1, .tree = 1, .gen = 6, .root = 1, .children = 2, .window = 8, .slot_base = 8, .ranks = 3},
    {.job = 1, .tree = 3, .gen = 9, .root = 1, .children = 2, .window = 8, .slot_base = 16, .ranks = 3},
    {.job = 2, .tree = 0, .gen = 5, .root = 1, .children = 2, .window = 8, .slot_base = 24, .ranks = 3},
};
#define ENTRIES (sizeof(entries) / sizeof(entries[0]))

static void stage(struct engine_rig *rig, const struct rig_entry *given, uint32_t count)
{
    struct by_image_fault fault = {0};
    size_t size;
    const uint8_t *bytes = rig_image(given, count, NULL, 0, &size);

    if (by_engine_stage(rig->engine, bytes, size, &fault) != 0)
        fail_msg("%s %u: %s %llu", fault.section, fault.index, fault.what, (unsigned long long)fault.value);
    assert_int_equal(by_engine_commit(rig->engine), 0);
}

static void each_generation_sums_in_its_own_trees(void **state)
{
    static const float one[] = {1, 2}, two[] = {10, 20}, sum[] = {11, 22};
    struct engine_rig rig;

    (void)state;
    rig_start(&rig, entries, ENTRIES);
    for (uint32_t i = 0; i < ENTRIES; i++) {
        struct rig_packet packet = rig_contrib(&entries[i], 0, 0, one, 2);

        rig_send(&rig, &packet);
        assert_int_equal(rig.tx_count, 0);
    }
    for (uint32_t i = 0; i < ENTRIES; i++) {
        struct rig_packet packet = rig_contrib(&entries[i], 1, 0, two, 2);

        rig_send(&rig, &packet);
        rig_expect_results(&rig, &entries[i], 0, sum, 2);
        rig_release(&rig);
    }
    rig_close(&rig);
}

static void a_packet_reaches_no_tree_of_another_generation(void **state)
{
    static const float one[] = {1};
    struct engine_rig rig;

    (void)state;
    rig_start(&rig, entries, ENTRIES);
    for (uint32_t i = 0; i < 3; i++)
        for (uint32_t k = 0; k < 3; k++) {
            struct rig_packet packet = rig_contrib(&entries[i], 0, 0, one, 1);

            if (k == i)
                continue;
            packet.header.gen = entries[k].gen;
            rig_send(&rig, &packet);
            rig_expect_drop_of(&rig, drop_gen);
        }
    rig_close(&rig);
}

/* banyand adds standbys while calls run, and removes the others after ranks have moved. */
static void trees_in_use_keep_their_chunks_when_standbys_come_and_go(void **state)
{
    static const float one[] = {1}, two[] = {2}, sum[] = {3};
    struct engine_rig rig;
    struct rig_packet first = rig_contrib(&entries[0], 0, 0, one, 1),
                      second = rig_contrib(&entries[0], 1, 0, two, 1),
                      third = rig_contrib(&entries[1], 0, 0, one, 1),
                      fourth = rig_contrib(&entries[1], 1, 0, two, 1);

    (void)state;
    rig_start(&rig, entries, 1);
    rig_send(&rig, &first);
    stage(&rig, entries, 3);
    rig_send(&rig, &second);
    rig_expect_results(&rig, &entries[0], 0, sum, 1);
    rig_release(&rig);
    rig_send(&rig, &third);
    stage(&rig, entries + 1, 1);
    rig_send(&rig, &fourth);
    rig_expect_results(&rig, &entries[1], 0, sum, 1);
    rig_release(&rig);
    rig_close(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_generation_sums_in_its_own_trees),
        cmocka_unit_test(a_packet_reaches_no_tree_of_another_generation),
        cmocka_unit_test(trees_in_use_keep_their_chunks_when_standbys_come_and_go),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
