/* The note for the next start: it must survive a reset, which empties the caches whether devices
 * see them or not (model.h), be read only once, and give the delay before the next start. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "firmware/baremetal/note.h"
#include "tests/unit/firmware/baremetal/model.h"

#define S UINT64_C(1000000000)

static const struct by_note left = {
    .end = BY_NOTE_EXCEPTION, .at = 0x40081234, .value = 0x96000045, .other = 8, .ends = 3};

static void run_reset(bool is_coherent)
{
    struct by_note note;

    model_start(1, is_coherent);
    assert_false(by_note_take(&note)); /* uninitialized RAM after power-on */
    by_note_leave(&left);
    model_reset();
    assert_true(by_note_take(&note));
    assert_int_equal(note.end, left.end);
    assert_int_equal(note.at, left.at);
    assert_int_equal(note.value, left.value);
    assert_int_equal(note.other, left.other);
    assert_int_equal(note.ends, left.ends);
    model_reset();
    assert_false(by_note_take(&note));
}

static void a_note_outlives_a_reset_and_is_told_once(void **state)
{
    (void)state;
    run_reset(false);
    run_reset(true);
}

static void the_last_of_two_notes_counts(void **state)
{
    struct by_note note = left;

    (void)state;
    model_start(2, false);
    by_note_leave(&left);
    note.end = BY_NOTE_HANG;
    note.ends = 4;
    by_note_leave(&note);
    model_reset();
    assert_true(by_note_take(&note));
    assert_int_equal(note.end, BY_NOTE_HANG);
    assert_int_equal(note.ends, 4);
}

static void each_life_in_a_row_waits_twice_as_long_up_to_64_s(void **state)
{
    static const uint64_t waits[] = {1, 2, 4, 8, 16, 32, 64, 64, 64};
    uint64_t ends = 0;

    (void)state;
    for (unsigned i = 0; i < sizeof waits / sizeof waits[0]; i++) {
        ends = by_note_ends(ends, 599 * S);
        assert_int_equal(by_note_wait_ns(ends), waits[i] * S);
    }
    assert_int_equal(by_note_wait_ns(UINT64_MAX), 64 * S);
    assert_int_equal(by_note_ends(ends, 600 * S), 1); /* a long run was in between */
    assert_int_equal(by_note_wait_ns(1), S);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_note_outlives_a_reset_and_is_told_once),
        cmocka_unit_test(the_last_of_two_notes_counts),
        cmocka_unit_test(each_life_in_a_row_waits_twice_as_long_up_to_64_s),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
