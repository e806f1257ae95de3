/* Recovery as a step function: attempts, jobs that find a path or end, ranks that come and go. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "offload/base/errors.h"
#include "tests/unit/control/service/daemon/world.h"

static void one_fault_or_renewal_is_one_attempt(void **state)
{
    (void)state;
    world_open(1);
    world_give((struct by_recover_event){.type = BY_RECOVER_SWITCH_DOWN, .what = 3}); /* used only by job 0 */
    world_rounds(40);
    assert_int_equal(world.plans, 1);
    assert_true(world.pushes == 1 && world.settled == 1);
    assert_int_equal(by_recover_base(world.recover, 0), 2);
    assert_int_equal(by_recover_base(world.recover, 1), 1);
    for (unsigned i = 0; i < 2; i++) /* new keys for job 1; the second time they are on their way */
        world_give((struct by_recover_event){.type = BY_RECOVER_RENEW, .job = 1, .text = "many chunks"});
    world_rounds(40);
    assert_true(world.plans == 2 && by_recover_base(world.recover, 0) == 2 &&
                by_recover_base(world.recover, 1) == 2);
    assert_true(by_recover_is_quiet(world.recover) && world.renewals == 1); /* and is reported once */
    by_recover_close(world.recover);
}

static void without_a_path_the_ranks_are_told_the_cut(void **state)
{
    (void)state;
    world_open(3);
    world_give((struct by_recover_event){.type = BY_RECOVER_SWITCH_DOWN, .what = 0});
    world_give((struct by_recover_event){.type = BY_RECOVER_SWITCH_DOWN, .what = 1});
    world_rounds(100);
    assert_int_equal(world.fails, 0); /* the switches may return soon */
    world_rounds(90);
    assert_int_equal(world.fails, JOBS * RANKS);
    assert_string_equal(world.last[0], "switch 1 does not answer: ranks 0 and 2 are apart");
    by_recover_close(world.recover);
}

/* The answer of a switch may have waited, unread, for as long as the controller did nothing. */
static void the_wait_for_a_path_does_not_count_time_in_which_the_controller_stood_still(void **state)
{
    (void)state;
    world_open(3);
    world_give((struct by_recover_event){.type = BY_RECOVER_SWITCH_DOWN, .what = 0});
    world_give((struct by_recover_event){.type = BY_RECOVER_SWITCH_DOWN, .what = 1});
    world_rounds(100);
    world.now_ns += UINT64_C(10000000000);
    by_recover_stood(world.recover, UINT64_C(10000000000));
    world_rounds(20);
    assert_int_equal(world.fails, 0);
    world_give((struct by_recover_event){.type = BY_RECOVER_SWITCH_REBOOTED, .what = 1});
    world_rounds(200);
    assert_int_equal(world.fails, 0);
    assert_true(by_recover_is_quiet(world.recover));
    by_recover_close(world.recover);
}

static void a_job_that_has_a_path_does_not_wait_while_the_controller_stands_still(void **state)
{
    (void)state;
    world_open(3);
    world_seconds(5);
    by_recover_stood(world.recover, 1);
    world_give((struct by_recover_event){.type = BY_RECOVER_SWITCH_DOWN, .what = 0});
    world_give((struct by_recover_event){.type = BY_RECOVER_SWITCH_DOWN, .what = 1});
    world_rounds(100); /* the wait begins now */
    assert_int_equal(world.fails, 0);
    world_rounds(90);
    assert_int_equal(world.fails, JOBS * RANKS);
    by_recover_close(world.recover);
}

/* It removes jobs from the switches, and other changes wait for it. */
static void a_push_that_failed_is_tried_again_also_when_no_job_has_a_path(void **state)
{
    unsigned before;

    (void)state;
    world_open(3);
    world_give((struct by_recover_event){.type = BY_RECOVER_SWITCH_DOWN, .what = 0});
    world_give((struct by_recover_event){.type = BY_RECOVER_SWITCH_DOWN, .what = 1});
    while (world.push_in == UINT32_MAX)
        world_rounds(1);
    before = world.pushes;
    world.push_in = UINT32_MAX;
    world_give((struct by_recover_event){.type = BY_RECOVER_PUSHED, .error = BY_EIO, .text = "no store"});
    world_rounds(100);
    assert_true(world.pushes > before);
    by_recover_close(world.recover);
}

/* Seed 40128307 of the world test: a part returns for another job, whose plan replaces the one that
 * was not pushed. */
static void a_job_whose_push_failed_is_in_the_next_plan(void **state)
{
    (void)state;
    world_open(3);
    world.stranded[1] = true;
    world_give((struct by_recover_event){.type = BY_RECOVER_SWITCH_DOWN, .what = 0});
    while (world.push_in == UINT32_MAX)
        world_rounds(1);
    world.push_in = UINT32_MAX;
    world_give((struct by_recover_event){.type = BY_RECOVER_PUSHED, .error = BY_EIO, .text = "no store"});
    world.stranded[1] = false;
    world_give((struct by_recover_event){.type = BY_RECOVER_SWITCH_UP, .what = 0});
    for (uint32_t j = 0; j < JOBS; j++)
        assert_true(by_recover_planning(world.recover, j));
    world_rounds(200);
    assert_true(by_recover_is_quiet(world.recover));
    for (uint32_t j = 0; j < JOBS; j++)
        for (uint16_t k = 0; k < RANKS; k++)
            assert_int_equal(world.rank[j][k].gen, world.pushed[j]);
    by_recover_close(world.recover);
}

static void a_switch_without_another_path_may_come_back_in_time(void **state)
{
    (void)state;
    world_open(9);
    world_give((struct by_recover_event){.type = BY_RECOVER_SWITCH_DOWN, .what = 0});
    world_rounds(30);
    world_give((struct by_recover_event){.type = BY_RECOVER_SWITCH_DOWN, .what = 1});
    world_rounds(60);
    world_give((struct by_recover_event){.type = BY_RECOVER_SWITCH_REBOOTED, .what = 1});
    world_rounds(200);
    assert_int_equal(world.fails, 0);
    assert_true(by_recover_is_quiet(world.recover));
    for (uint32_t j = 0; j < JOBS; j++)
        for (uint16_t k = 0; k < RANKS; k++)
            assert_int_equal(world.rank[j][k].gen, by_recover_base(world.recover, j));
    assert_int_equal(by_recover_base(world.recover, 0), 4); /* 3 was tried and cannot be used again */
    by_recover_close(world.recover);
}

static void ignore(void *user, const struct by_recover_action *action)
{
    (void)user;
    (void)action;
}

/* Ranks may have got tables of an attempt whose push failed before the controller restarted. */
static void an_attempt_before_a_restart_keeps_its_generation(void **state)
{
    struct by_recover *recover = by_recover_open(&(struct by_recover_config){.node_count = 1, .act = ignore});
    uint32_t job;

    (void)state;
    job = by_recover_add(recover, &(struct by_recover_job){.job = 1, .rank_count = 2, .gen = 3, .last = 7});
    assert_int_equal(job, 0);
    assert_int_equal(by_recover_base(recover, job), 3);
    by_recover_event(recover,
                     &(struct by_recover_event){.type = BY_RECOVER_RENEW, .job = job, .text = "test"});
    assert_int_equal(by_recover_next(recover, job), 8);
    by_recover_close(recover);
}

static unsigned planned_at_once;

static void count_plans(void *user, const struct by_recover_action *action)
{
    (void)user;
    planned_at_once += action->what == BY_DO_PLAN;
}

/* Its path may be back, and no event reports it. */
static void a_job_that_had_no_path_before_a_restart_is_planned_at_once(void **state)
{
    struct by_recover *recover =
        by_recover_open(&(struct by_recover_config){.node_count = 1, .act = count_plans});

    (void)state;
    by_recover_add(recover, &(struct by_recover_job){.job = 1, .rank_count = 2, .gen = 3, .used = true});
    assert_true(planned_at_once == 0 && by_recover_is_quiet(recover));
    assert_int_equal(by_recover_add(recover,
                                    &(struct by_recover_job){
                                        .job = 2, .rank_count = 2, .gen = 5, .used = true, .lost = true}),
                     1);
    assert_true(planned_at_once == 1 && by_recover_planning(recover, 1) && !by_recover_planning(recover, 0));
    assert_int_equal(by_recover_next(recover, 1), 6);
    by_recover_close(recover);
}

static void a_dead_rank_ends_the_others_calls_by_its_name(void **state)
{
    (void)state;
    world_open(4);
    world_leave(1, 2, true);
    for (int i = 0; i < 100; i++)
        world_round_alone();
    assert_int_equal(world.fails, RANKS - 1);
    assert_non_null(strstr(world.last[1], "rank 2 of job 1 failed"));
    by_recover_close(world.recover);
}

static void a_new_run_gets_a_generation_of_its_own(void **state)
{
    (void)state;
    world_open(5);
    for (uint16_t k = 0; k < RANKS; k++)
        world_leave(0, k, false);
    for (uint16_t k = 0; k < RANKS; k++) {
        world.rank[0][k].gen = 0;
        world.rank[0][k].nonce++;
        world_come(0, k);
    }
    assert_int_equal(world.rank[0][0].gen, 0); /* not resumed yet */
    world_rounds(20);
    for (uint16_t k = 0; k < RANKS; k++)
        assert_int_equal(world.rank[0][k].gen, 2);
    assert_int_equal(world.fails, 0);
    by_recover_close(world.recover);
}

/* The controller has restarted and plans around what was lost meanwhile, and ranks return one after
 * another. */
static void ranks_that_come_back_to_a_new_controller_are_taken_along(void **state)
{
    (void)state;
    world_open(8);
    by_recover_close(world.recover);
    world_controller(true);
    for (unsigned i = 0; i < 40; i++) {
        if (i == 0)
            world_give((struct by_recover_event){.type = BY_RECOVER_SWITCH_DOWN, .what = 0});
        if (i % 4 == 1 && i / 4 < RANKS) {
            world_come(0, (uint16_t)(i / 4));
            world_come(1, (uint16_t)(3 - i / 4));
        }
        world_round_alone();
    }
    world_rounds(60);
    assert_true(by_recover_is_quiet(world.recover));
    assert_int_equal(world.fails, 0);
    for (uint32_t j = 0; j < JOBS; j++)
        for (uint16_t k = 0; k < RANKS; k++)
            assert_int_equal(world.rank[j][k].gen, by_recover_base(world.recover, j));
    by_recover_close(world.recover);
}

static void a_job_without_a_way_goes_on_as_long_as_its_ranks_do(void **state)
{
    (void)state;
    world_open(14);
    world_give((struct by_recover_event){.type = BY_RECOVER_SWITCH_GONE, .what = 0});
    world_give((struct by_recover_event){.type = BY_RECOVER_SWITCH_GONE, .what = 1});
    for (unsigned i = 0; i < 300; i++) { /* only the controller's path to the switches has failed */
        for (uint32_t j = 0; j < JOBS; j++)
            world_give((struct by_recover_event){
                .type = BY_RECOVER_RANK_ALIVE, .job = j, .rank = 1, .number = (uint64_t)i + 1});
        world_rounds(1);
    }
    assert_int_equal(world.fails, 0);
    world_rounds(20);
    assert_int_equal(world.fails, JOBS * RANKS);
    by_recover_close(world.recover);
}

static void ranks_wait_when_they_say_so_for_a_while(void **state)
{
    (void)state;
    world_open(15);
    for (unsigned i = 0; i < 20; i++) {
        if (i % 5 == 0)
            world_give((struct by_recover_event){
                .type = BY_RECOVER_RANK_SUSPECTS, .job = 0, .rank = (uint16_t)(i % RANKS), .what = 2});
        assert_true(by_recover_suspects(world.recover, 0)); /* at once */
        world_rounds(1);
        assert_int_equal(by_recover_waits(world.recover, 0), i >= 1); /* after 40 ms */
        assert_false(by_recover_waits(world.recover, 1));
        assert_false(by_recover_suspects(world.recover, 1));
    }
    world_rounds(20);
    assert_false(by_recover_waits(world.recover, 0)); /* no more reports */
    assert_false(by_recover_suspects(world.recover, 0));
    world_give((struct by_recover_event){.type = BY_RECOVER_RANK_SUSPECTS, .job = 0, .rank = 1, .what = 2});
    assert_false(by_recover_waits(world.recover, 0)); /* only one late chunk */
    assert_true(by_recover_suspects(world.recover, 0));
    by_recover_close(world.recover);
}

static unsigned freezes_in(unsigned rounds)
{
    unsigned before = world.freezes;

    for (unsigned i = 0; i < rounds; i++)
        world_round_alone();
    return world.freezes - before;
}

/* The first reminders come fast, because a message may be lost; those of a rank that computes do
 * not. */
static void reminders_come_fast_at_first(void **state)
{
    unsigned before;

    (void)state;
    world_open(18);
    world.rank[0][2].failed = true;                                                   /* it does not answer */
    world_give((struct by_recover_event){.type = BY_RECOVER_SWITCH_DOWN, .what = 3}); /* of job 0 only */
    while (world.freezes == 0)
        world_round_alone();
    before = world.freezes;
    for (unsigned i = 0; i < 5; i++) {
        world.now_ns += 4000000;
        world_give((struct by_recover_event){.type = BY_RECOVER_TICK});
    }
    assert_true(world.freezes - before >= 3 * RANKS); /* in 20 ms */
    assert_true(freezes_in(20) >= 5 * RANKS);
    freezes_in(100);
    assert_in_range(freezes_in(20), 2 * RANKS, 4 * RANKS);
    by_recover_close(world.recover);
}

/* Both jobs are planned at the same time, each because of a fault in its own trees. */
static void a_job_without_a_path_is_told_its_own_cause(void **state)
{
    (void)state;
    world_open(17);
    world.stranded[0] = world.stranded[1] = true;
    world_give((struct by_recover_event){.type = BY_RECOVER_SWITCH_DOWN, .what = 3}); /* used only by job 0 */
    world_give((struct by_recover_event){.type = BY_RECOVER_SWITCH_GONE, .what = 4}); /* used only by job 1 */
    world_rounds(200);
    assert_int_equal(world.fails, JOBS * RANKS);
    assert_string_equal(world.last[0], "switch 3 does not answer: ranks 0 and 2 are apart");
    assert_string_equal(world.last[1], "switch 4 has ended: ranks 0 and 2 are apart");
    by_recover_close(world.recover);
}

/* Link 3, which does not help job 0, fails and returns repeatedly. */
static void what_comes_back_in_vain_does_not_put_the_end_off(void **state)
{
    (void)state;
    world_open(18);
    world.stranded[0] = true;
    world_give((struct by_recover_event){.type = BY_RECOVER_SWITCH_DOWN, .what = 3});
    for (unsigned i = 0; i < 4; i++) {
        world_rounds(25);
        world_give((struct by_recover_event){.type = BY_RECOVER_LINK_DOWN, .what = 3});
        world_rounds(25);
        world_give((struct by_recover_event){.type = BY_RECOVER_LINK_UP, .what = 3});
        if (i == 2)
            assert_int_equal(world.fails, 0);
    }
    world_rounds(10);
    assert_int_equal(world.fails, RANKS);
    assert_string_equal(world.last[0], "switch 3 does not answer: ranks 0 and 2 are apart");
    by_recover_close(world.recover);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_fault_or_renewal_is_one_attempt),
        cmocka_unit_test(without_a_path_the_ranks_are_told_the_cut),
        cmocka_unit_test(the_wait_for_a_path_does_not_count_time_in_which_the_controller_stood_still),
        cmocka_unit_test(a_job_that_has_a_path_does_not_wait_while_the_controller_stands_still),
        cmocka_unit_test(a_push_that_failed_is_tried_again_also_when_no_job_has_a_path),
        cmocka_unit_test(a_job_without_a_path_is_told_its_own_cause),
        cmocka_unit_test(what_comes_back_in_vain_does_not_put_the_end_off),
        cmocka_unit_test(a_job_whose_push_failed_is_in_the_next_plan),
        cmocka_unit_test(a_switch_without_another_path_may_come_back_in_time),
        cmocka_unit_test(an_attempt_before_a_restart_keeps_its_generation),
        cmocka_unit_test(a_job_that_had_no_path_before_a_restart_is_planned_at_once),
        cmocka_unit_test(a_dead_rank_ends_the_others_calls_by_its_name),
        cmocka_unit_test(a_new_run_gets_a_generation_of_its_own),
        cmocka_unit_test(ranks_that_come_back_to_a_new_controller_are_taken_along),
        cmocka_unit_test(a_job_without_a_way_goes_on_as_long_as_its_ranks_do),
        cmocka_unit_test(ranks_wait_when_they_say_so_for_a_while),
        cmocka_unit_test(reminders_come_fast_at_first),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
