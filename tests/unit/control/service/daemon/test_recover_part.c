/* Recovery as a step function: what happens to switches and links that are lost, are blackholes,
 * and come back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/control/service/daemon/world.h"

static void what_comes_back_is_used_after_a_while(void **state)
{
    (void)state;
    world_open(2);
    world_give((struct by_recover_event){.type = BY_RECOVER_SWITCH_DOWN, .what = 0});
    world_rounds(40);
    assert_true(by_recover_lost_nodes(world.recover)[0]);
    world_give((struct by_recover_event){.type = BY_RECOVER_SWITCH_REBOOTED, .what = 0});
    world_rounds(50);
    assert_int_equal(world.plans, 1);
    world_rounds(100);
    assert_int_equal(world.plans, 2);
    assert_false(by_recover_lost_nodes(world.recover)[0]);
    assert_int_equal(by_recover_base(world.recover, 0), 3);
    assert_int_equal(by_recover_base(world.recover, 1), 3);
    by_recover_close(world.recover);
}

static void what_swallows_packets_is_let_in_again_later_each_time(void **state)
{
    const bool *lost;

    (void)state;
    world_open(11);
    lost = by_recover_lost_links(world.recover);
    for (unsigned times = 1; times <= 3; times++) {
        world_swallows(true, 0);
        world_seconds(1);
        assert_int_equal(world.plans, 2 * times - 1);
        assert_true(lost[0]);
        world_seconds((10u << (times - 1)) - 2);
        assert_true(lost[0]);
        assert_int_equal(world.plans, 2 * times - 1);
        world_seconds(2);
        assert_false(lost[0]);
        assert_int_equal(world.plans, 2 * times);
        assert_true(by_recover_is_quiet(world.recover));
    }
    world_seconds(200); /* after a long time without faults the count starts again */
    world_swallows(true, 0);
    world_seconds(9);
    assert_true(lost[0]);
    world_seconds(2);
    assert_false(lost[0]);
    assert_int_equal(world.fails, 0);
    by_recover_close(world.recover);
}

/* It has been up during the hold: after a plan that was made at the end of the hold, it does not
 * wait any more. */
static void what_is_held_while_plans_are_made_is_used_after_them(void **state)
{
    const bool *lost;

    (void)state;
    world_open(11);
    lost = by_recover_lost_links(world.recover);
    world_swallows(true, 0);
    world_rounds(475); /* half a second before its end */
    world_give((struct by_recover_event){.type = BY_RECOVER_SWITCH_DOWN, .what = 1});
    world.plan_in = 150;
    world_rounds(149);
    assert_true(lost[0]);
    world_rounds(45);
    assert_false(lost[0]);
    by_recover_close(world.recover);
}

static void what_is_held_and_down_comes_back_when_both_are_over(void **state)
{
    const bool *lost;

    (void)state;
    world_open(12);
    lost = by_recover_lost_links(world.recover);
    world_swallows(true, 1);
    world_seconds(1);
    world_give((struct by_recover_event){.type = BY_RECOVER_LINK_DOWN, .what = 1});
    world_seconds(1);
    world_give((struct by_recover_event){.type = BY_RECOVER_LINK_UP, .what = 1});
    world_seconds(5);
    assert_true(lost[1]); /* its carrier was never the cause */
    world_give((struct by_recover_event){.type = BY_RECOVER_LINK_DOWN, .what = 1});
    world_seconds(10);
    assert_true(lost[1]); /* no longer held, but down */
    world_give((struct by_recover_event){.type = BY_RECOVER_LINK_UP, .what = 1});
    world_seconds(3);
    assert_false(lost[1]);
    by_recover_close(world.recover);
}

static void without_another_way_what_swallows_is_tried_once_before_the_cut_is_told(void **state)
{
    (void)state;
    world_open(13);
    world_give((struct by_recover_event){.type = BY_RECOVER_SWITCH_GONE, .what = 0});
    world_seconds(1);
    world_swallows(false, 1);
    world_rounds(20);
    assert_int_equal(world.fails, 0);
    assert_true(by_recover_lost_nodes(world.recover)[1]);
    world_rounds(50); /* tried again, and this time it works */
    assert_false(by_recover_lost_nodes(world.recover)[1]);
    world_seconds(2);
    assert_true(by_recover_is_quiet(world.recover));
    assert_int_equal(world.fails, 0);
    world_seconds(5);
    world_swallows(false, 1);
    world_seconds(2);
    assert_true(by_recover_lost_nodes(world.recover)[1]); /* not again so soon */
    world_seconds(2);
    assert_int_equal(world.fails, JOBS * RANKS);
    assert_string_equal(world.last[0],
                        "switch 1 drops packets silently: 9 sent by leaf0, none received by spine0: ranks 0 "
                        "and 2 are apart");
    by_recover_close(world.recover);
}

/* Switch 0 has gone, and switch 1 drops packets: it is tried again after a second. */
static void open_with_a_trial(uint64_t seed)
{
    world_open(seed);
    world_give((struct by_recover_event){.type = BY_RECOVER_SWITCH_GONE, .what = 0});
    world_seconds(1);
    world_swallows(false, 1);
    world_rounds(60);
    assert_false(by_recover_lost_nodes(world.recover)[1]);
}

static void a_cut_after_a_trial_that_worked_has_its_own_time(void **state)
{
    (void)state;
    open_with_a_trial(19);
    world_rounds(90);
    for (uint32_t j = 0; j < JOBS; j++)
        world_give(
            (struct by_recover_event){.type = BY_RECOVER_RANK_ALIVE, .job = j, .rank = 1, .number = 7});
    world_rounds(15);
    world_give((struct by_recover_event){.type = BY_RECOVER_SWITCH_GONE, .what = 1}); /* another fault */
    world_seconds(2);
    assert_int_equal(world.fails, 0);
    world_seconds(2);
    assert_int_equal(world.fails, JOBS * RANKS);
    by_recover_close(world.recover);
}

static void a_trial_in_vain_does_not_put_the_end_off(void **state)
{
    (void)state;
    open_with_a_trial(16);
    world_rounds(40);
    world_swallows(false, 1);
    assert_int_equal(world.fails, 0);
    world_rounds(85); /* 3.5 seconds after the first time */
    assert_int_equal(world.fails, JOBS * RANKS);
    by_recover_close(world.recover);
}

/* Switch 1 is tried again for job 2 alone. Job 1, which once had no path for a while, then waits
 * for one as long as before. */
static void a_trial_for_another_job_does_not_shorten_the_time_of_a_cut(void **state)
{
    (void)state;
    world_open(23);
    world.stranded[0] = true;
    world_give((struct by_recover_event){.type = BY_RECOVER_SWITCH_DOWN, .what = 0});
    world_seconds(1);
    world.stranded[0] = false;
    world_give((struct by_recover_event){.type = BY_RECOVER_SWITCH_UP, .what = 0});
    world_seconds(10);
    assert_true(by_recover_is_quiet(world.recover));
    assert_int_equal(world.fails, 0);
    world.stranded[1] = true;
    world_swallows(false, 1);
    world_rounds(60);
    assert_false(by_recover_lost_nodes(world.recover)[1]);
    world.stranded[0] = true;
    world_give((struct by_recover_event){.type = BY_RECOVER_SWITCH_GONE, .what = 0});
    world_seconds(3);
    assert_true(world.job_failed[1] && !world.job_failed[0]);
    world_seconds(1);
    assert_true(world.job_failed[0]);
    by_recover_close(world.recover);
}

static void a_switch_whose_ranks_move_on_is_left_alone(void **state)
{
    (void)state;
    world_open(6);
    for (int i = 0; i < 50; i++) {
        world_give((struct by_recover_event){
            .type = BY_RECOVER_RANK_ALIVE, .job = 0, .rank = 1, .number = (uint64_t)i + 1});
        world_give((struct by_recover_event){
            .type = BY_RECOVER_RANK_ALIVE, .job = 1, .rank = 1, .number = (uint64_t)i + 1});
        if (i == 10)
            world_give((struct by_recover_event){.type = BY_RECOVER_SWITCH_DOWN, .what = 2});
        world_rounds(1);
    }
    assert_int_equal(world.plans, 0);
    world_give((struct by_recover_event){.type = BY_RECOVER_RANK_SUSPECTS, .job = 0, .rank = 1, .what = 2});
    world_give((struct by_recover_event){.type = BY_RECOVER_RANK_SUSPECTS, .job = 1, .rank = 1, .what = 2});
    world_rounds(40);
    assert_int_equal(world.plans, 1);
    by_recover_close(world.recover);
}

static void what_is_back_already_is_used_at_once_where_there_is_no_other_way(void **state)
{
    (void)state;
    world_open(19);
    world_give((struct by_recover_event){.type = BY_RECOVER_SWITCH_DOWN, .what = 0});
    world_rounds(40);
    world_give((struct by_recover_event){.type = BY_RECOVER_SWITCH_UP, .what = 0});
    world_rounds(10); /* would be used in two seconds */
    assert_true(by_recover_lost_nodes(world.recover)[0]);
    world_give((struct by_recover_event){.type = BY_RECOVER_SWITCH_DOWN, .what = 1});
    world_rounds(30);
    assert_false(by_recover_lost_nodes(world.recover)[0]);
    assert_true(by_recover_is_quiet(world.recover));
    for (uint32_t j = 0; j < JOBS; j++)
        for (uint16_t k = 0; k < RANKS; k++)
            assert_int_equal(world.rank[j][k].gen, by_recover_base(world.recover, j));
    assert_int_equal(world.fails, 0);
    by_recover_close(world.recover);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_comes_back_is_used_after_a_while),
        cmocka_unit_test(what_swallows_packets_is_let_in_again_later_each_time),
        cmocka_unit_test(what_is_held_while_plans_are_made_is_used_after_them),
        cmocka_unit_test(what_is_held_and_down_comes_back_when_both_are_over),
        cmocka_unit_test(without_another_way_what_swallows_is_tried_once_before_the_cut_is_told),
        cmocka_unit_test(a_trial_in_vain_does_not_put_the_end_off),
        cmocka_unit_test(a_cut_after_a_trial_that_worked_has_its_own_time),
        cmocka_unit_test(a_trial_for_another_job_does_not_shorten_the_time_of_a_cut),
        cmocka_unit_test(a_switch_whose_ranks_move_on_is_left_alone),
        cmocka_unit_test(what_is_back_already_is_used_at_once_where_there_is_no_other_way),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
