/*
 * Tables in flash: after any failure of power, a write or a chip at any moment, one complete table
 * is read back, and packets never wait. Each test covers all operations of the chips (chip.h).
 * SEED= replays a run.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "firmware/baremetal/clock.h"
#include "firmware/baremetal/store.h"
#include "offload/table/image.h"
#include "tests/unit/firmware/baremetal/chip.h"
#include "tests/unit/firmware/star.h"

#define IMAGE_BYTES_MAX 8000u
/* Steps within which a store must finish; a dead chip may take up to the timeout of 20 s
 * (count). */
#define STEPS 100000u
/* Flash accesses for which packets may wait: one page, plus about a dozen (count). */
#define ACCESSES 80u

static uint64_t seed(void)
{
    const char *text = getenv("SEED");

    return text ? strtoull(text, NULL, 10) : 20261122;
}

/* Returns the image with `cookie`, which has several pages and sectors. */
static uint8_t *image_of(uint64_t cookie, size_t *bytes)
{
    const struct star star = {
        .hosts = 12, .trees = 1, .window = 4, .payload_max = 64, .mtu = 1500, .cookie = cookie};
    uint8_t *image = star_image(&star, bytes);

    assert_in_range(*bytes, CHIP_SECTOR_BYTES, IMAGE_BYTES_MAX);
    return image;
}

static void put(struct by_metal_store *store, uint64_t cookie)
{
    unsigned before = chip_accesses();
    size_t bytes;
    uint8_t *image = image_of(cookie, &bytes);

    by_metal_store_put(store, image, bytes);
    free(image);
    assert_int_equal(chip_accesses(), before); /* whatever state the chips are in */
}

/* Steps until there is nothing to do or no power. Returns the last message, or NULL. */
static const char *finish(struct by_metal_store *store)
{
    const char *last = NULL;

    for (unsigned i = 0; i < STEPS; i++) {
        unsigned before = chip_accesses();
        bool done = by_metal_store_step(store);
        const char *word = by_metal_store_word(store);

        assert_in_range(chip_accesses() - before, 0, ACCESSES);
        last = word ? word : last;
        if (!done || chip_is_off())
            return last;
    }
    fail_msg("the store does not come to an end");
    return NULL;
}

static const char *keep(struct by_metal_store *store, uint64_t cookie)
{
    put(store, cookie);
    return finish(store);
}

/* Restarts the machine. Returns the cookie of the table found, 0 = none. The image must be
 * complete. */
static uint64_t restart(struct by_metal_store *store)
{
    struct by_image_header header = {0};
    const uint8_t *saved;
    uint32_t bytes;
    size_t wanted;
    uint8_t *image;

    chip_power_up();
    assert_true(by_metal_store_open(store, IMAGE_BYTES_MAX));
    saved = by_metal_store_saved(store, &bytes);
    if (!saved)
        return 0;
    by_image_header(saved, &header);
    image = image_of(header.cookie, &wanted);
    assert_int_equal(bytes, wanted);
    assert_memory_equal(saved, image, bytes);
    free(image);
    return header.cookie;
}

/* Makes new chips and stores tables up to `cookie`. Returns the operations of the last store. */
static unsigned begin(struct by_metal_store *store, uint64_t cookie, uint64_t run)
{
    unsigned before = 0;

    chip_new(seed() + run);
    assert_true(by_metal_store_open(store, IMAGE_BYTES_MAX));
    for (uint64_t i = 1; i <= cookie; i++) {
        before = chip_works();
        assert_string_equal(keep(store, i), "the table is in flash");
    }
    return chip_works() - before;
}

static void the_last_table_comes_back(void **state)
{
    struct by_metal_store store;

    (void)state;
    print_message("SEED=%llu\n", (unsigned long long)seed());
    begin(&store, 0, 0);
    assert_int_equal(restart(&store), 0);
    for (uint64_t cookie = 1; cookie <= 5; cookie++) {
        assert_string_equal(keep(&store, cookie), "the table is in flash");
        assert_int_equal(restart(&store), cookie);
        assert_int_equal(restart(&store), cookie); /* reading changes nothing */
    }
}

/* Power is lost at each moment while the table after `kept` others is written. */
static void cut_power(uint64_t kept)
{
    struct by_metal_store store;
    unsigned count = begin(&store, kept + 1, 0);

    assert_in_range(count, 10, 100);
    for (unsigned i = 0; i < 3 * count; i++) {
        uint64_t found;

        begin(&store, kept, i);
        chip_trouble((enum chip_trouble)(CHIP_CUT_BEFORE + i % 3), i / 3, false);
        keep(&store, kept + 1);
        assert_true(chip_is_off());
        found = restart(&store);
        /* Only the last operation completes the table. */
        assert_int_equal(found, i == 3 * count - 1 ? kept + 1 : kept);
        assert_string_equal(keep(&store, kept + 2), "the table is in flash");
        assert_int_equal(restart(&store), kept + 2);
    }
}

static void power_may_be_lost_at_any_moment(void **state)
{
    (void)state;
    cut_power(2);
    cut_power(3);
}

static void so_may_it_at_the_first_tables_of_all(void **state)
{
    (void)state;
    cut_power(0);
    cut_power(1);
}

/* A write fails at each operation; then power is lost at each moment of the next write. */
static void a_failed_write_leaves_the_whole_copy_alone(void **state)
{
    struct by_metal_store store;
    unsigned count = begin(&store, 2, 0);

    (void)state;
    for (unsigned i = 0; i < 2 * count; i++)
        for (unsigned cut = 0; cut < count; cut++) {
            uint64_t whole = 2, found;

            begin(&store, 2, i * count + cut);
            chip_trouble(i % 2 ? CHIP_LIES : CHIP_FAILS, i / 2, false);
            /* A partial erase is harmless where old and new bytes are equal. */
            if (!strstr(keep(&store, 3), "flash: storing the active table failed"))
                whole = 3;
            assert_true(whole == 2 || i % 2);
            chip_trouble(CHIP_CUT, cut, false);
            keep(&store, 4);
            assert_true(chip_is_off());
            found = restart(&store);
            assert_true(found == whole || (found == 4 && cut == count - 1));
        }
}

static void one_after_another_may_fail(void **state)
{
    struct by_metal_store store;
    unsigned count = begin(&store, 2, 0);

    (void)state;
    for (unsigned i = 0; i < count; i++) {
        begin(&store, 2, i);
        chip_trouble(CHIP_FAILS, i, true);
        for (uint64_t cookie = 3; cookie < 8; cookie++)
            assert_non_null(strstr(keep(&store, cookie), "storing the active table failed"));
        assert_int_equal(restart(&store), 2);
        assert_string_equal(keep(&store, 9), "the table is in flash");
        assert_int_equal(restart(&store), 9);
    }
}

static void of_those_that_come_during_a_write_the_newest_is_next(void **state)
{
    struct by_metal_store store;
    unsigned count = begin(&store, 2, 0), works;

    (void)state;
    for (unsigned i = 0; i < 6 * count; i++) {
        begin(&store, 2, i);
        works = chip_works();
        put(&store, 3);
        for (unsigned k = 0; k < i; k++)
            by_metal_store_step(&store);
        put(&store, 4);
        put(&store, 5);
        assert_string_equal(finish(&store), "the table is in flash");
        assert_in_range(chip_works() - works, count, 2 * count);
        assert_int_equal(restart(&store), 5);
    }
}

static void packets_wait_for_no_dead_chip(void **state)
{
    struct by_metal_store store;
    unsigned count = begin(&store, 2, 0), before;
    uint64_t begin_ns, limit_ns = UINT64_C(20000000000);

    (void)state;
    assert_int_equal(store.flash.erase_ns, UINT64_C(1024000000) << 4);
    assert_int_equal(store.flash.write_ns, 10000000); /* the chip specifies 2 ms */
    for (unsigned i = 0; i < count; i++) {
        begin(&store, 2, i);
        chip_trouble(CHIP_HANGS, i, true);
        begin_ns = by_clock_ns();
        assert_non_null(strstr(keep(&store, 3), "busy for too long"));
        assert_in_range(by_clock_ns() - begin_ns, 1, limit_ns);
        before = chip_accesses();
        assert_null(keep(&store, 4)); /* reported once */
        assert_false(by_metal_store_step(&store));
        assert_int_equal(chip_accesses(), before);
        assert_int_equal(restart(&store), 2);
        assert_string_equal(keep(&store, 5), "the table is in flash");
    }
}

static void a_buffer_that_is_not_free_is_asked_for_again(void **state)
{
    struct by_metal_store store;

    (void)state;
    begin(&store, 2, 0);
    chip_keep_waiting(4);
    assert_string_equal(keep(&store, 3), "the table is in flash");
    assert_int_equal(restart(&store), 3);
    chip_keep_waiting(1000000);
    assert_non_null(strstr(keep(&store, 4), "busy for too long"));
    assert_int_equal(restart(&store), 3);
}

static void chips_at_work_since_before_the_start_are_waited_for(void **state)
{
    struct by_metal_store store;
    uint64_t begin_ns;
    uint32_t bytes;

    (void)state;
    begin(&store, 2, 0);
    chip_is_at_work(5000);
    assert_true(by_metal_store_open(&store, IMAGE_BYTES_MAX));
    assert_non_null(by_metal_store_saved(&store, &bytes));
    chip_is_at_work(UINT32_MAX);
    begin_ns = by_clock_ns();
    assert_false(by_metal_store_open(&store, IMAGE_BYTES_MAX));
    assert_in_range(by_clock_ns() - begin_ns, 1, UINT64_C(21000000000));
    assert_string_equal(chip_log(), "flash: no supported chips: tables are not stored");
}

static void chips_of_other_kinds_are_left_alone(void **state)
{
    static const struct {
        uint8_t place, value;
        bool both;
    } others[] = {{0x10, 'R', true}, {0x13, 2, true},  {0x2c, 2, true},  {0x2c, 0, true},
                  {0x2a, 6, true},   {0x27, 40, true}, {0x2f, 4, false}, {0x2a, 8, false}};
    struct by_metal_store store;

    (void)state;
    for (unsigned i = 0; i < sizeof others / sizeof others[0]; i++) {
        chip_new(i);
        chip_say(others[i].place, others[i].value, others[i].both);
        assert_false(by_metal_store_open(&store, IMAGE_BYTES_MAX));
        assert_int_equal(chip_works(), 0);
    }
    chip_new(0);
    assert_false(by_metal_store_open(&store, CHIP_BYTES / 2)); /* two copies do not fit */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_table_comes_back),
        cmocka_unit_test(power_may_be_lost_at_any_moment),
        cmocka_unit_test(so_may_it_at_the_first_tables_of_all),
        cmocka_unit_test(a_failed_write_leaves_the_whole_copy_alone),
        cmocka_unit_test(one_after_another_may_fail),
        cmocka_unit_test(of_those_that_come_during_a_write_the_newest_is_next),
        cmocka_unit_test(packets_wait_for_no_dead_chip),
        cmocka_unit_test(a_buffer_that_is_not_free_is_asked_for_again),
        cmocka_unit_test(chips_at_work_since_before_the_start_are_waited_for),
        cmocka_unit_test(chips_of_other_kinds_are_left_alone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
