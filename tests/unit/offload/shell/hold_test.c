/* Fault injection at receive: every frame is dropped, passed, duplicated or passed later, and no
 * other frame is lost or passed twice. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "offload/shell/hold.h"

#define FRAMES 20000u
#define HALF   0x80000000u
#define TENTH  0x1999999au

/* References to each frame; a frame is a pointer to its place. */
static uint8_t references[FRAMES];

/* What happened to `FRAMES` frames. */
struct hold_tally {
    unsigned passed, verdicts[BY_FAULT_HOLD + 1], latest_distance;
    uint32_t order_hash;
};

static void count(struct hold_tally *tally, struct by_held *held, uint32_t now)
{
    uint32_t number = (uint32_t)((uint8_t *)held->frame - references);

    tally->passed++;
    tally->order_hash = tally->order_hash * 31 + number;
    if (now - number > tally->latest_distance)
        tally->latest_distance = now - number;
    assert_int_equal(held->port, number % 7);
    assert_in_range(references[number], 1, 2);
    references[number]--;
}

static struct hold_tally run(uint64_t seed, uint32_t loss, uint32_t duplicate, uint32_t reorder)
{
    struct by_hold hold = {
        .fault = {.prng = {seed}, .loss = loss, .duplicate = duplicate, .reorder = reorder}};
    struct hold_tally tally = {0};
    struct by_held out[3];

    for (uint32_t i = 0; i < FRAMES; i++) {
        enum by_fault_verdict verdict;
        unsigned made = by_hold_pass(&hold, i, &references[i], (uint16_t)(i % 7), out, &verdict);

        references[i] = verdict == BY_FAULT_DROP ? 0 : verdict == BY_FAULT_DUPLICATE ? 2 : 1;
        tally.verdicts[verdict]++;
        for (unsigned k = 0; k < made; k++)
            count(&tally, &out[k], i);
    }
    while (by_hold_due(&hold, UINT64_MAX, &out[0]))
        count(&tally, &out[0], FRAMES);
    assert_int_equal(hold.count, 0);
    for (uint32_t i = 0; i < FRAMES; i++)
        assert_int_equal(references[i], 0);
    return tally;
}

static void without_faults_every_frame_passes_in_order(void **state)
{
    struct hold_tally tally = run(1, 0, 0, 0);

    (void)state;
    assert_int_equal(tally.passed, FRAMES);
    assert_int_equal(tally.latest_distance, 0);
}

static void frames_are_lost_at_their_rate(void **state)
{
    struct hold_tally tally = run(2, HALF, 0, 0);

    (void)state;
    assert_int_equal(tally.passed + tally.verdicts[BY_FAULT_DROP], FRAMES);
    assert_in_range(tally.verdicts[BY_FAULT_DROP], FRAMES * 48 / 100, FRAMES * 52 / 100);
}

static void duplicated_frames_come_twice(void **state)
{
    struct hold_tally tally = run(3, 0, TENTH, 0);

    (void)state;
    assert_int_equal(tally.passed, FRAMES + tally.verdicts[BY_FAULT_DUPLICATE]);
    assert_in_range(tally.verdicts[BY_FAULT_DUPLICATE], FRAMES * 9 / 100, FRAMES * 11 / 100);
}

static void held_frames_come_later_but_not_much(void **state)
{
    struct hold_tally tally = run(4, 0, 0, TENTH);

    (void)state;
    assert_int_equal(tally.passed, FRAMES);
    assert_in_range(tally.verdicts[BY_FAULT_HOLD], FRAMES * 9 / 100, FRAMES * 11 / 100);
    assert_in_range(tally.latest_distance, BY_HOLD_DISTANCE, BY_HOLD_DISTANCE + BY_HOLD_MAX);
}

static void a_seed_repeats_the_run(void **state)
{
    (void)state;
    assert_int_equal(run(5, TENTH, TENTH, TENTH).order_hash, run(5, TENTH, TENTH, TENTH).order_hash);
    assert_int_not_equal(run(5, TENTH, TENTH, TENTH).order_hash, run(6, TENTH, TENTH, TENTH).order_hash);
}

static void when_all_are_held_the_room_is_bounded(void **state)
{
    struct hold_tally tally = run(7, 0, 0, UINT32_MAX);

    (void)state;
    assert_int_equal(tally.passed, FRAMES);
}

static void a_frame_that_nothing_overtakes_is_passed_on_after_its_time(void **state)
{
    struct by_hold hold = {.fault = {.prng = {1}, .reorder = UINT32_MAX}};
    struct by_held out[3];
    enum by_fault_verdict verdict;

    (void)state;
    assert_int_equal(by_hold_pass(&hold, 100, &references[5], 3, out, &verdict), 0);
    assert_int_equal(verdict, BY_FAULT_HOLD);
    assert_int_equal(by_hold_due(&hold, 100 + BY_HOLD_NS - 1, out), 0);
    assert_int_equal(by_hold_due(&hold, 100 + BY_HOLD_NS, out), 1);
    assert_int_equal(out[0].port, 3);
    assert_ptr_equal(out[0].frame, &references[5]);
}

/* A held frame comes behind 1 to BY_HOLD_DISTANCE later ones, and each distance occurs. */
static void a_held_frame_is_overtaken_by_at_least_one_and_at_most_the_limit(void **state)
{
    unsigned seen[BY_HOLD_DISTANCE + 1] = {0};

    (void)state;
    for (uint64_t seed = 1; seed <= 500; seed++) {
        struct by_hold hold = {.fault = {.prng = {seed}, .reorder = UINT32_MAX}};
        struct by_held out[3];
        enum by_fault_verdict verdict;
        uint32_t later = 0;

        assert_int_equal(by_hold_pass(&hold, 0, &references[0], 5, out, &verdict), 0);
        hold.fault.reorder = 0;
        while (hold.count > 0) {
            uint32_t made = by_hold_pass(&hold, 0, &references[++later], 6, out, &verdict);

            assert_in_range(later, 1, BY_HOLD_DISTANCE);
            assert_ptr_equal(out[0].frame, &references[later]);
            assert_int_equal(made, hold.count > 0 ? 1 : 2);
        }
        assert_ptr_equal(out[1].frame, &references[0]);
        assert_int_equal(out[1].port, 5);
        seen[later]++;
    }
    for (uint32_t distance = 1; distance <= BY_HOLD_DISTANCE; distance++)
        assert_in_range(seen[distance], 1, 500);
}

/* Of several frames whose time is over, each is returned once, the first one first. */
static void frames_are_due_in_the_order_in_which_they_came(void **state)
{
    struct by_hold hold = {.fault = {.prng = {1}, .reorder = UINT32_MAX}};
    struct by_held out[3];
    enum by_fault_verdict verdict;

    (void)state;
    for (uint32_t i = 0; i < BY_HOLD_MAX; i++)
        assert_int_equal(by_hold_pass(&hold, i, &references[i], (uint16_t)i, out, &verdict), 0);
    for (uint32_t i = 0; i < BY_HOLD_MAX; i++) {
        if (i > 0)
            assert_int_equal(by_hold_due(&hold, BY_HOLD_NS + i - 1, out), 0);
        assert_int_equal(by_hold_due(&hold, BY_HOLD_NS + i, out), 1);
        assert_ptr_equal(out[0].frame, &references[i]);
        assert_int_equal(out[0].port, i);
    }
    assert_int_equal(by_hold_due(&hold, UINT64_MAX, out), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_faults_every_frame_passes_in_order),
        cmocka_unit_test(frames_are_lost_at_their_rate),
        cmocka_unit_test(duplicated_frames_come_twice),
        cmocka_unit_test(held_frames_come_later_but_not_much),
        cmocka_unit_test(a_seed_repeats_the_run),
        cmocka_unit_test(when_all_are_held_the_room_is_bounded),
        cmocka_unit_test(a_frame_that_nothing_overtakes_is_passed_on_after_its_time),
        cmocka_unit_test(a_held_frame_is_overtaken_by_at_least_one_and_at_most_the_limit),
        cmocka_unit_test(frames_are_due_in_the_order_in_which_they_came),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
