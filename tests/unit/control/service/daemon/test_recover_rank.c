/* Recovery as a step function, event by event: which actions follow each event of a rank, of the
 * end of a job and of requested work, word for word. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "offload/base/errors.h"
#include "tests/unit/control/service/daemon/acts.h"

static void a_process_that_restarts_ends_the_calls_of_all(void **state)
{
    (void)state;
    acts_open(false);
    acts_expect("");
    acts_come();
    acts_rank(BY_RECOVER_RANK_CAME, 0, 1, 4, 11); /* the same process connects again */
    acts_expect("welcome 0.1\n");
    acts_rank(BY_RECOVER_RANK_CAME, 0, 1, 4, 77);
    acts_expect("log job 9: rank 1 of 0 restarted while the job ran\n"
                "fail 0.0 -17 rank 1 of 0 restarted while the job ran\n"
                "fail 0.1 -17 rank 1 of 0 restarted while the job ran\n"
                "fail 0.2 -17 rank 1 of 0 restarted while the job ran\n"
                "fail 0.1 -17 rank 1 of 0 restarted while the job ran\n");
    acts_rank(BY_RECOVER_RANK_LEFT, 0, 0, 4, 0);
    acts_rank(BY_RECOVER_RANK_CAME, 0, 0, 0, 90); /* others of the failed run are still there */
    acts_expect("fail 0.0 -17 rank 1 of 0 restarted while the job ran\n");
    acts_close();
}

static void a_new_run_waits_for_a_generation_that_is_on_the_switches(void **state)
{
    (void)state;
    acts_start();
    acts_ranks(BY_RECOVER_RANK_LEFT, 4);
    acts_expect("");
    acts_generations(4, 4);
    acts_rank(BY_RECOVER_RANK_CAME, 0, 0, 0, 91);
    acts_expect("plan\n");
    assert_true(by_recover_planning(acts.recover, 0));
    assert_false(by_recover_planning(acts.recover, 1));
    acts_generations(4, 5);
    acts_work(BY_RECOVER_PLANNED, 0, NULL);
    acts_expect("push\n");
    assert_false(by_recover_planning(acts.recover, 0));
    acts_rank(BY_RECOVER_RANK_CAME, 0, 1, 0, 92);
    acts_expect("");
    acts_work(BY_RECOVER_PUSHED, 0, NULL);
    acts_expect("settled 0\nwelcome 0.0 with table\nwelcome 0.1 with table\n");
    acts_generations(5, 5);
    acts_rank(BY_RECOVER_RANK_CAME, 0, 2, 0, 93);
    acts_expect("welcome 0.2 with table\n");
    acts_close();
}

static void a_rank_of_another_generation_is_taken_along(void **state)
{
    (void)state;
    acts_open(true);
    acts_rank(BY_RECOVER_RANK_CAME, 0, 0, 6, 10); /* newer than this daemon knows */
    acts_expect("welcome 0.0\nplan\n");
    acts_generations(4, 7); /* no generation is used twice */
    acts_close();
}

static void a_fault_and_a_renewal_move_all_ranks(void **state)
{
    (void)state;
    acts_start();
    acts_part(BY_RECOVER_SWITCH_DOWN, 1);
    acts_expect("log switch 1 does not answer: planning again\nplan\n");
    assert_true(by_recover_lost_nodes(acts.recover)[1]);
    assert_false(by_recover_lost_nodes(acts.recover)[0]);
    acts_move(4, 5);
    acts_give((struct by_recover_event){.type = BY_RECOVER_RENEW, .job = 0, .text = "many chunks"});
    acts_expect("log job 9: many chunks\nplan\n");
    acts_move(5, 6);
    acts_part(BY_RECOVER_LINK_DOWN, 0);
    acts_expect("log link 0 is down: planning again\nplan\n");
    assert_true(by_recover_lost_links(acts.recover)[0]);
    acts_move(6, 7);
    acts_close();
}

static void a_rank_that_does_not_return_is_dead(void **state)
{
    (void)state;
    acts_start();
    acts_rank(BY_RECOVER_RANK_DIED, 0, 2, 4, 0);
    assert_false(by_recover_has_rank(acts.recover, 0, 2));
    acts_later(1499);
    acts_expect("");
    acts_later(1);
    acts_expect("log job 9: rank 2 of 0 failed: its connection to the controller was closed\n"
                "fail 0.0 -17 rank 2 of 0 failed: its connection to the controller was closed\n"
                "fail 0.1 -17 rank 2 of 0 failed: its connection to the controller was closed\n");
    acts_close();
}

static void a_rank_that_returns_in_time_goes_on(void **state)
{
    (void)state;
    acts_start();
    acts_rank(BY_RECOVER_RANK_DIED, 0, 2, 4, 0);
    acts_later(1499);
    acts_rank(BY_RECOVER_RANK_CAME, 0, 2, 4, 12);
    acts_expect("welcome 0.2\n");
    acts_later(5000);
    acts_expect("");
    acts_close();
}

static void reminders_come_to_all_ranks_and_less_often_each_time(void **state)
{
    (void)state;
    acts_start();
    acts_part(BY_RECOVER_SWITCH_DOWN, 1);
    acts_work(BY_RECOVER_PLANNED, 0, NULL);
    acts.done[0] = 0;
    acts_later(3);
    acts_expect("");
    acts_later(1);
    acts_expect("freeze 0.0\nfreeze 0.1\nfreeze 0.2\n");
    acts_later(4); /* a quarter more than the first time, 5 ms */
    acts.now_ns += MS - 1;
    acts_later(0);
    acts_expect("");
    acts.now_ns += 1;
    acts_later(0);
    acts_expect("freeze 0.0\nfreeze 0.1\nfreeze 0.2\n");
    acts_work(BY_RECOVER_PUSHED, 0, NULL);
    acts.done[0] = 0;
    acts_rank(BY_RECOVER_RANK_CARRIED, 0, 1, 5, 0); /* there is progress: fast again */
    acts_later(3);
    acts_expect("");
    acts_later(1);
    acts_expect("freeze 0.0\ngo 0.0\nfreeze 0.1\ngo 0.1\nfreeze 0.2\ngo 0.2\n");
    acts_close();
}

static void the_end_of_a_job_is_told_to_its_ranks_once(void **state)
{
    (void)state;
    acts_open(false);
    acts_rank(BY_RECOVER_RANK_CAME, 0, 0, 0, 10);
    acts_rank(BY_RECOVER_RANK_CAME, 0, 1, 0, 11);
    acts_expect("welcome 0.0 with table\nwelcome 0.1 with table\n");
    by_recover_remove(acts.recover, 1); /* there is none */
    by_recover_remove(acts.recover, 7);
    acts_expect("");
    acts_generations(4, 4);
    by_recover_remove(acts.recover, 0);
    acts_expect("log job 9: the job was ended at the controller\n"
                "fail 0.0 -17 the job was ended at the controller\n"
                "fail 0.1 -17 the job was ended at the controller\n");
    by_recover_remove(acts.recover, 0);
    acts_expect("");
    acts_generations(0, 0);
    assert_false(by_recover_has_rank(acts.recover, 0, 0));
    /* Its place is the next job's. */
    assert_int_equal(
        by_recover_add(acts.recover,
                       &(struct by_recover_job){.job = 3, .rank_count = 1, .gen = 8, .last = 11}),
        0);
    assert_int_equal(
        by_recover_add(acts.recover, &(struct by_recover_job){.job = 4, .rank_count = 1, .gen = 2}), 1);
    acts_generations(8, 8);
    acts_renew(0);
    acts_expect("log job 3: why\nplan\n");
    acts_generations(8, 12); /* after the highest of any attempt */
    acts_close();
}

/* Until the store has the tables, ranks may move to a standby by themselves. */
static void ranks_freeze_when_their_tables_are_recorded(void **state)
{
    (void)state;
    acts_start();
    assert_int_equal(by_recover_reserve(acts.recover, 0, 2), 5); /* for standbys */
    acts_part(BY_RECOVER_SWITCH_GONE, 0);
    acts.done[0] = 0;
    acts_give((struct by_recover_event){.type = BY_RECOVER_PLANNED, .number = 1});
    acts_expect("push\n");
    acts_later(4);
    acts_rank(BY_RECOVER_RANK_CAME, 0, 1, 4, 11); /* after its connection ended */
    acts_expect("welcome 0.1\n");
    acts_work(BY_RECOVER_PUSHED, BY_EIO, "no answer of etcd");
    acts_later(20);
    assert_null(strstr(acts.done, "freeze"));
    acts_ranks(BY_RECOVER_RANK_CARRIED, 5); /* they have moved */
    assert_false(by_recover_move(acts.recover, 0, 5));
    acts.done[0] = 0;
    acts_work(BY_RECOVER_RECORDED, 0, NULL); /* of another change */
    acts_expect("");
    acts_later(200);
    acts_expect("push\n");
    acts_work(BY_RECOVER_RECORDED, 0, NULL);
    acts_expect("freeze 0.0 with table\nfreeze 0.1 with table\nfreeze 0.2 with table\n");
    acts_work(BY_RECOVER_RECORDED, 0, NULL);
    acts_expect("");
    acts_later(4);
    acts_expect("freeze 0.0\nfreeze 0.1\nfreeze 0.2\n");
    acts_work(BY_RECOVER_PUSHED, 0, NULL);
    acts_expect("go 0.0\ngo 0.1\ngo 0.2\n");
    acts_generations(4, 7);
    acts_ranks(BY_RECOVER_RANK_CARRIED, 7);
    acts_expect("settled 0\n");
    acts_close();
    /* A rank whose calls have ended does not end those of others, which have not frozen. */
    acts_start();
    acts_part(BY_RECOVER_SWITCH_GONE, 0);
    acts.done[0] = 0;
    acts_give((struct by_recover_event){.type = BY_RECOVER_PLANNED, .number = 1});
    acts_rank(BY_RECOVER_RANK_LEFT, 0, 1, 4, 11);
    acts_expect("push\n");
    acts_work(BY_RECOVER_RECORDED, 0, NULL);
    acts_expect("freeze 0.0 with table\nfreeze 0.2 with table\n");
    acts_rank(BY_RECOVER_RANK_LEFT, 0, 2, 4, 12);
    assert_non_null(strstr(acts.done, "fail 0.0"));
    acts_close();
    /* In a second attempt they are still frozen for the first. */
    acts_start();
    acts_part(BY_RECOVER_SWITCH_GONE, 0);
    acts_work(BY_RECOVER_PLANNED, 0, NULL);
    acts_part(BY_RECOVER_LINK_DOWN, 0);
    acts_work(BY_RECOVER_PUSHED, 0, NULL);
    acts.done[0] = 0;
    acts_give((struct by_recover_event){.type = BY_RECOVER_PLANNED, .number = 1});
    acts_expect("push\n");
    acts_rank(BY_RECOVER_RANK_LEFT, 0, 1, 4, 11);
    assert_non_null(strstr(acts.done, "fail 0.0"));
    acts_close();
    /* The push may end before its record is reported. */
    acts_start();
    acts_part(BY_RECOVER_SWITCH_GONE, 0);
    acts.done[0] = 0;
    acts_give((struct by_recover_event){.type = BY_RECOVER_PLANNED, .number = 1});
    acts_work(BY_RECOVER_PUSHED, 0, NULL);
    acts_expect("push\nfreeze 0.0 with table\nfreeze 0.1 with table\nfreeze 0.2 with table\n"
                "go 0.0\ngo 0.1\ngo 0.2\n");
    acts_close();
}

static void work_that_fails_says_why(void **state)
{
    (void)state;
    acts_start();
    acts_part(BY_RECOVER_SWITCH_GONE, 0);
    acts_expect("log switch 0 has ended: planning again\nplan\n");
    acts_work(BY_RECOVER_PLANNED, 0, NULL);
    acts.done[0] = 0;
    acts_work(BY_RECOVER_PUSHED, BY_EIO, "switch 1 does not answer");
    assert_non_null(strstr(acts.done, "log the tables could not be pushed: switch 1 does not answer"));
    acts_close();
}

static void parts_that_no_job_uses_are_named_and_nothing_is_planned(void **state)
{
    (void)state;
    acts_start();
    acts.unused[1] = true;
    acts_part(BY_RECOVER_SWITCH_DOWN, 1);
    acts_expect("log switch 1 does not answer: no job uses it\n");
    acts_part(BY_RECOVER_SWITCH_DOWN, 1); /* it is lost already */
    acts_expect("");
    acts_part(BY_RECOVER_SWITCH_UP, 1);
    acts_expect("log switch 1 is back; it will be used once it has been up for a while\n");
    acts_part(BY_RECOVER_SWITCH_UP, 1);
    acts_expect("");
    acts_later(1999);
    acts_expect("");
    assert_true(by_recover_lost_nodes(acts.recover)[1]);
    acts_later(1);
    acts_expect("log the fabric has recovered: planning again\nplan\n");
    assert_false(by_recover_lost_nodes(acts.recover)[1]);
    acts_close();
}

static void what_fails_again_before_it_is_used_stays_lost(void **state)
{
    (void)state;
    acts_start();
    acts_part(BY_RECOVER_SWITCH_GONE, 1);
    acts.done[0] = 0;
    acts_move(4, 5);
    acts_part(BY_RECOVER_SWITCH_UP, 1);
    acts_later(1999);
    acts_part(BY_RECOVER_SWITCH_DOWN, 1);
    acts_expect("log switch 1 is back; it will be used once it has been up for a while\n");
    acts_later(5000);
    acts_expect("");
    assert_true(by_recover_lost_nodes(acts.recover)[1]);
    acts_close();
}

static void a_switch_that_restarted_is_used_again_at_once(void **state)
{
    (void)state;
    acts_start();
    acts_part(BY_RECOVER_SWITCH_REBOOTED, 1);
    acts_expect("log switch 1 restarted: planning again\nplan\n");
    assert_false(by_recover_lost_nodes(acts.recover)[1]);
    acts_move(4, 5);
    acts_part(BY_RECOVER_SWITCH_GONE, 1);
    acts_expect("log switch 1 has ended: planning again\nplan\n");
    acts_move(5, 6);
    acts_part(BY_RECOVER_SWITCH_REBOOTED, 1); /* it was lost, and has to prove itself */
    acts_expect("log switch 1 is back; it will be used once it has been up for a while\n");
    acts_close();
}

/* Holds a link that drops packets for so many milliseconds: what is moved is done as well. */
static void held_for(uint64_t ms, uint16_t from)
{
    acts_part(BY_RECOVER_LINK_SWALLOWS, 0);
    acts_expect("log link 0 drops packets silently: planning again\nplan\n");
    acts_move(from, from + 1);
    assert_true(by_recover_held(acts.recover, true, 0));
    acts_later(ms - 1);
    assert_true(by_recover_held(acts.recover, true, 0));
    acts_expect("");
    acts_later(1);
    assert_false(by_recover_held(acts.recover, true, 0));
    acts_expect("log the fabric has recovered: planning again\nplan\n");
    acts_move(from + 1, from + 2);
}

static void what_drops_packets_again_soon_is_held_twice_as_long(void **state)
{
    (void)state;
    acts_start();
    held_for(10000, 4);
    held_for(20000, 6);
    acts_later(4 * 20000 - 1); /* not long enough in use */
    held_for(40000, 8);
    acts_later(4 * 40000);
    held_for(10000, 10);
    acts_close();
}

/* Switch 1 drops packets, and is tried again after a second, because there is no other path. It
 * works, and ends so many milliseconds later. */
static void try_and_lose(uint64_t ms)
{
    acts_start();
    acts_part(BY_RECOVER_SWITCH_SWALLOWS, 1);
    acts_no_plan();
    acts_later(999);
    acts_expect("");
    acts_later(1);
    acts_expect("log using parts that dropped packets again, because a job has no other path\nplan\n");
    acts_generations(4, 6);
    acts_move(4, 6);
    acts_later(ms - 1);
    acts.now_ns += MS;
    acts_part(BY_RECOVER_SWITCH_GONE, 1);
    acts_expect("log switch 1 has ended: planning again\nplan\n");
    acts_no_plan();
}

static void a_path_that_a_trial_gave_for_as_long_as_a_wait_was_a_path(void **state)
{
    (void)state;
    try_and_lose(3499); /* the trial failed: the wait goes on */
    acts_later(0);
    assert_non_null(strstr(acts.done, "fail 0.0 -7 switch 1 has ended: no path\n"));
    acts_close();
    try_and_lose(3500);
    acts_later(3499);
    acts_expect("");
    acts_later(1);
    assert_non_null(strstr(acts.done, "fail 0.0 -7 switch 1 has ended: no path\n"));
    acts_close();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_freeze_when_their_tables_are_recorded),
        cmocka_unit_test(a_process_that_restarts_ends_the_calls_of_all),
        cmocka_unit_test(a_new_run_waits_for_a_generation_that_is_on_the_switches),
        cmocka_unit_test(a_rank_of_another_generation_is_taken_along),
        cmocka_unit_test(a_fault_and_a_renewal_move_all_ranks),
        cmocka_unit_test(a_rank_that_does_not_return_is_dead),
        cmocka_unit_test(a_rank_that_returns_in_time_goes_on),
        cmocka_unit_test(reminders_come_to_all_ranks_and_less_often_each_time),
        cmocka_unit_test(the_end_of_a_job_is_told_to_its_ranks_once),
        cmocka_unit_test(work_that_fails_says_why),
        cmocka_unit_test(parts_that_no_job_uses_are_named_and_nothing_is_planned),
        cmocka_unit_test(what_fails_again_before_it_is_used_stays_lost),
        cmocka_unit_test(a_switch_that_restarted_is_used_again_at_once),
        cmocka_unit_test(what_drops_packets_again_soon_is_held_twice_as_long),
        cmocka_unit_test(a_path_that_a_trial_gave_for_as_long_as_a_wait_was_a_path),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
