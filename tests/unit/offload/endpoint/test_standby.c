/* When a rank moves to a standby, and to which: endpoints of which only what the choice reads is
 * filled in. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "offload/endpoint/standby.h"
#include "offload/endpoint/state.h"

#define MS       UINT64_C(1000000)
#define BEGIN    (1000 * MS)
#define PATIENCE (16 * MS)
#define ATTEMPT  (200 * MS)
#define AGAIN    (500 * MS)
#define TREES    10u
#define STANDBYS 3u

static struct by_endpoint calls, rounds[STANDBYS];
static struct by_ep_lane lanes[TREES], round_lanes[STANDBYS];
static struct by_flight flights[1 + STANDBYS];
static uint8_t masks[STANDBYS][2];
static struct by_standby_move move;
static uint64_t now_ns;

/* A tree whose only chunk has been in flight since `since_ns`; 0: none is. */
static void fill(struct by_ep_lane *lane, struct by_flight *flight, uint64_t since_ns)
{
    *lane = (struct by_ep_lane){.flights = flight, .next = since_ns > 0, .heard_ns = since_ns};
}

/* The trees with a bit have had a chunk in flight since BEGIN; standbys replace none. */
static int start(void **state)
{
    (void)state;
    memset(flights, 0, sizeof(flights));
    memset(masks, 0, sizeof(masks));
    calls = (struct by_endpoint){.lanes = lanes, .lane_count = TREES};
    for (uint32_t t = 0; t < TREES; t++)
        fill(&lanes[t], &flights[0], 0);
    move = (struct by_standby_move){.count = STANDBYS, .again_ns = AGAIN, .attempt_ns = ATTEMPT};
    for (uint32_t s = 0; s < STANDBYS; s++) {
        rounds[s] = (struct by_endpoint){.lanes = &round_lanes[s], .lane_count = 1};
        fill(&round_lanes[s], &flights[1 + s], 0);
        move.list[s] = (struct by_standby_tree){&rounds[s], masks[s], sizeof(masks[s])};
    }
    now_ns = BEGIN;
    return 0;
}

static void stop_tree(uint32_t t)
{
    fill(&lanes[t], &flights[0], BEGIN);
    calls.inflight++;
}

static void mask(uint32_t s, uint32_t trees)
{
    masks[s][0] = (uint8_t)trees;
    masks[s][1] = (uint8_t)(trees >> 8);
}

static uint32_t choose_at(uint64_t at_ns)
{
    now_ns = at_ns;
    return by_standby_move_choose(&move, &calls, PATIENCE, now_ns);
}

static void a_chunk_that_has_waited_for_the_patience_begins_a_move(void **state)
{
    (void)state;
    assert_int_equal(choose_at(BEGIN + 10 * PATIENCE), 0); /* none is in flight */
    assert_true(by_standby_move_deadline(&move, &calls, PATIENCE) == UINT64_MAX);
    start(NULL);
    stop_tree(1);
    assert_int_equal(choose_at(BEGIN + PATIENCE - 1), 0);
    assert_int_equal(by_standby_move_deadline(&move, &calls, PATIENCE), now_ns + PATIENCE / 16);
    assert_int_equal(choose_at(BEGIN + PATIENCE), 0); /* trees have just been looked at */
    assert_int_equal(choose_at(by_standby_move_deadline(&move, &calls, PATIENCE)), 1);
}

static void the_first_standby_that_replaces_all_stopped_trees_serves(void **state)
{
    static const struct {
        uint32_t stopped, masks[STANDBYS], chosen;
    } rows[] = {
        {0x001, {0x001, 0x001, 0x001}, 1}, {0x001, {0x002, 0x001, 0x001}, 2},
        {0x003, {0x001, 0x002, 0x003}, 3}, {0x003, {0x001, 0x002, 0x004}, 1}, /* none: the first one */
        {0x101, {0x001, 0x101, 0x100}, 2}, {0x200, {0x0ff, 0x1ff, 0x200}, 3},
    };

    (void)state;
    for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
        start(NULL);
        for (uint32_t t = 0; t < TREES; t++)
            if (rows[r].stopped >> t & 1)
                stop_tree(t);
        for (uint32_t s = 0; s < STANDBYS; s++)
            mask(s, rows[r].masks[s]);
        assert_int_equal(choose_at(BEGIN + PATIENCE), rows[r].chosen);
        /* One that cannot be used serves for none. */
        start(NULL);
        stop_tree(0);
        for (uint32_t s = 0; s < STANDBYS; s++)
            mask(s, 1);
        move.list[0].rounds = NULL;
        assert_int_equal(choose_at(BEGIN + PATIENCE), 2);
        masks[1][0] = masks[2][0] = 0;
        assert_int_equal(choose_at(BEGIN + 2 * PATIENCE), 2);
    }
}

static void a_mask_that_is_too_short_replaces_none_of_the_other_trees(void **state)
{
    (void)state;
    stop_tree(8);
    mask(0, 0x100);
    mask(1, 0x100);
    move.list[0].mask_bytes = 1;
    assert_int_equal(choose_at(BEGIN + PATIENCE), 2);
}

static void a_rank_follows_another_one_at_once(void **state)
{
    (void)state;
    rounds[1].counters.probe = 1;
    assert_int_equal(choose_at(BEGIN), 2);
    rounds[2].counters.probe = 1;
    assert_int_equal(choose_at(BEGIN), 3);
    move.list[2].rounds = NULL;
    assert_int_equal(choose_at(BEGIN), 2);
    by_standby_move_begin(&move, 2, now_ns);
    assert_int_equal(choose_at(BEGIN), 0); /* it is there, or later */
}

static void an_attempt_that_takes_too_long_is_followed_by_the_next(void **state)
{
    (void)state;
    stop_tree(0);
    by_standby_move_begin(&move, 1, now_ns);
    fill(&round_lanes[0], &flights[1], BEGIN);
    assert_int_equal(choose_at(BEGIN + ATTEMPT - 1), 0);
    assert_int_equal(choose_at(BEGIN + ATTEMPT + PATIENCE), 2);
    by_standby_move_begin(&move, 2, now_ns);
    /* The second one may take twice as long, and longer while its tree waits for a rank. */
    assert_int_equal(choose_at(now_ns + 2 * ATTEMPT - 1), 0);
    assert_int_equal(choose_at(now_ns + ATTEMPT), 0);
    fill(&round_lanes[1], &flights[2], now_ns - PATIENCE);
    assert_int_equal(choose_at(now_ns + PATIENCE), 3);
    by_standby_move_begin(&move, 3, now_ns);
    assert_true(by_standby_move_deadline(&move, &calls, PATIENCE) == UINT64_MAX);
    fill(&round_lanes[2], &flights[3], now_ns);
    assert_false(by_standby_move_is_stuck(&move, PATIENCE, now_ns + 4 * ATTEMPT - 1));
    assert_true(by_standby_move_is_stuck(&move, PATIENCE, now_ns + 4 * ATTEMPT));
    assert_int_equal(choose_at(now_ns + 4 * ATTEMPT), 0);
}

static void an_attempt_lasts_four_patiences_at_least(void **state)
{
    (void)state;
    move.attempt_ns = 0;
    by_standby_move_begin(&move, 1, now_ns);
    fill(&round_lanes[0], &flights[1], BEGIN);
    assert_int_equal(choose_at(BEGIN + 4 * PATIENCE - 1), 0);
    assert_int_equal(choose_at(BEGIN + 5 * PATIENCE), 2);
}

static void an_attempt_whose_tree_has_failed_is_over(void **state)
{
    (void)state;
    by_standby_move_begin(&move, 1, now_ns);
    assert_false(by_standby_move_is_stuck(&move, PATIENCE, now_ns));
    move.broken = true;
    move.list[1].rounds = NULL;
    assert_int_equal(choose_at(BEGIN), 3);
    by_standby_move_begin(&move, 3, now_ns);
    assert_false(move.broken);
    move.broken = true;
    assert_true(by_standby_move_is_stuck(&move, PATIENCE, now_ns));
}

/* What the others replace is not known then. */
static void another_standby_of_a_base_that_was_left_requires_a_longer_wait(void **state)
{
    (void)state;
    stop_tree(0);
    mask(2, 1);
    move.left = true;
    assert_int_equal(choose_at(BEGIN + AGAIN - 1), 0);
    assert_int_equal(choose_at(BEGIN + AGAIN + PATIENCE), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_chunk_that_has_waited_for_the_patience_begins_a_move, start),
        cmocka_unit_test_setup(the_first_standby_that_replaces_all_stopped_trees_serves, start),
        cmocka_unit_test_setup(a_mask_that_is_too_short_replaces_none_of_the_other_trees, start),
        cmocka_unit_test_setup(a_rank_follows_another_one_at_once, start),
        cmocka_unit_test_setup(an_attempt_that_takes_too_long_is_followed_by_the_next, start),
        cmocka_unit_test_setup(an_attempt_lasts_four_patiences_at_least, start),
        cmocka_unit_test_setup(an_attempt_whose_tree_has_failed_is_over, start),
        cmocka_unit_test_setup(another_standby_of_a_base_that_was_left_requires_a_longer_wait, start),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
