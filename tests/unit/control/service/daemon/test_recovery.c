/* The driver of recovery: which frames carry which tables, when it plans, pushes and asks, and its
 * reports. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "offload/base/errors.h"
#include "tests/unit/control/service/daemon/drive.h"
#include "tests/unit/control/service/daemon/record.h"

static void ranks_get_the_tables_of_their_generation(void **state)
{
    (void)state;
    drive_open();
    drive.daemon.job_count = 0;
    drive_tick(0);
    drive.daemon.job_count = 2;
    assert_false(by_recovery_has_rank(&drive.daemon, 3, 1));
    drive_come(3, 1, 0);
    record_expect("WELCOME 3.1 generation 1 with table 1\n");
    drive_come(3, 0, 1); /* it has them */
    record_expect("WELCOME 3.0 generation 1\n");
    drive_come(7, 0, 0);
    record_expect("WELCOME 7.0 generation 1 with table 1\n");
    drive_come(4, 0, 0); /* no such job */
    record_expect("");
    assert_true(by_recovery_has_rank(&drive.daemon, 3, 1) && !by_recovery_has_rank(&drive.daemon, 7, 1) &&
                !by_recovery_has_rank(&drive.daemon, 4, 0));
    drive_close();
}

static void a_fault_moves_all_ranks_and_the_times_are_told(void **state)
{
    (void)state;
    drive_start();
    by_recovery_rank(&drive.daemon, BY_RECOVER_RANK_SUSPECTS, 3, 0, 1, 0);
    drive.daemon.now_ms += 60;
    drive_node_event(BY_EVENT_SWITCH_DOWN, X0);
    record_expect("switch x0 does not answer: planning again\ntimer 4000000\nno more plans in advance\n"
                  "plan 3 as 2 again 7 as 2 again without x0\n");
    assert_true(drive.jobs[0].state == BY_JOB_RECOVERING && drive.jobs[0].gen_last == 2);
    drive_planned(NULL);
    record_expect("FREEZE 3.0 generation 2 with table 2\nFREEZE 3.1 generation 2 with table 2\n"
                  "FREEZE 7.0 generation 2 with table 2\nFREEZE 7.1 generation 2 with table 2\npush\n");
    drive_pushed(0);
    record_expect("GO 3.0 generation 2\nGO 3.1 generation 2\nGO 7.0 generation 2\nGO 7.1 generation 2\n");
    assert_null(drive.daemon.change);
    drive_carried(7, 0, 2);
    drive.daemon.now_ms += 2;
    drive_carried(7, 1, 2);
    record_expect(
        "good: job 7 is in generation 2, 14 ms after the planning began (5 ms to hosts, 12 ms to switches; "
        "14 ms after the first report of a wait)\n");
    assert_true(drive.jobs[1].state == BY_JOB_RUNNING && drive.jobs[0].state == BY_JOB_RECOVERING);
    drive_carried(3, 0, 2);
    drive.daemon.now_ms += 3;
    drive_carried(3, 1, 2);
    record_expect(
        "good: job 3 is in generation 2, 17 ms after the planning began (5 ms to hosts, 12 ms to switches; "
        "77 ms after the first report of a wait)\n");
    drive_timer(4);
    record_expect("timer 0\n");
    drive_timer(4); /* it may have expired already */
    record_expect("");
    drive_close();
}

static void only_the_jobs_that_use_a_part_are_planned_again(void **state)
{
    (void)state;
    drive_open();
    drive_free_tables(drive.jobs[1].tables);
    drive.jobs[1].tables = drive_tables(1, X1);
    drive_run();
    drive.links[H1_X0].down = true;
    drive_event((struct by_daemon_event){.kind = BY_EVENT_LINK_DOWN, .link = H1_X0});
    record_expect("link h1 - x0 is down: planning again\ntimer 4000000\nno more plans in advance\n"
                  "plan 3 as 2 again without link 1\n");
    assert_int_equal(drive.jobs[1].state, BY_JOB_RUNNING);
    drive_planned(NULL);
    drive_pushed(0);
    drive_carried(3, 0, 2);
    drive_carried(3, 1, 2);
    record_clear();
    drive.links[H1_X0].down = false;
    drive_event((struct by_daemon_event){.kind = BY_EVENT_LINK_UP, .link = H1_X0});
    record_expect("link h1 - x0 is back; it will be used once it has been up for a while\n");
    drive_tick(2000);
    drive_tick(0);                                             /* the first one after the gap ends no wait */
    assert_non_null(strstr(recorded, "plan 3 as 3 7 as 2\n")); /* from the whole fabric, not by repair */
    drive_close();
}

/* A controller that takes over would give other tables under this number. */
static void no_rank_gets_tables_that_are_not_recorded(void **state)
{
    (void)state;
    drive_start();
    drive.records = false;
    drive_node_event(BY_EVENT_SWITCH_GONE, X0);
    record_clear();
    drive_planned(NULL);
    record_expect("push\n");
    drive_timer(4);
    drive_event((struct by_daemon_event){.kind = BY_EVENT_RECORDED}); /* another change */
    record_expect("");
    drive_come(3, 0, 1);
    record_expect("WELCOME 3.0 generation 1\n");
    drive.change->recorded = true; /* with the push */
    drive_event((struct by_daemon_event){.kind = BY_EVENT_RECORDED});
    record_expect("FREEZE 3.0 generation 2 with table 2\nFREEZE 3.1 generation 2 with table 2\n"
                  "FREEZE 7.0 generation 2 with table 2\nFREEZE 7.1 generation 2 with table 2\n");
    drive_timer(4);
    record_expect("FREEZE 3.0 generation 2\nFREEZE 3.1 generation 2\nFREEZE 7.0 generation 2\n"
                  "FREEZE 7.1 generation 2\n");
    drive_pushed(0);
    record_expect("GO 3.0 generation 2\nGO 3.1 generation 2\nGO 7.0 generation 2\nGO 7.1 generation 2\n");
    drive_carried(7, 0, 2);
    drive_carried(7, 1, 2);
    assert_non_null(strstr(recorded, "20 ms after the planning began (9 ms to hosts, 20 ms to switches; "));
    drive_close();
    drive_open();
    drive_event((struct by_daemon_event){.kind = BY_EVENT_RECORDED}); /* no change of recovery */
    drive_close();
}

static void late_rank(uint16_t job)
{
    char text[300];

    drive_open();
    drive.jobs[0].spec.job = job;
    drive_run();
    by_recovery_rank(&drive.daemon, BY_RECOVER_RANK_DIED, job, 1, 0, 0);
    by_recovery_rank(&drive.daemon, BY_RECOVER_RANK_DIED, 7, 0, 0, 0);
    drive_lose_x0();
    drive_pushed(0); /* tables of the old generation are gone, but the images of its ranks are kept */
    record_clear();
    drive_come(job, 1, 0);
    snprintf(text, sizeof(text),
             "WELCOME %u.1 generation 1 with table 1\nFREEZE %u.0 generation 2\nGO %u.0 generation 2\n"
             "FREEZE %u.1 generation 2 with table 2\nGO %u.1 generation 2\n",
             job, job, job, job, job);
    record_expect(text);
    drive_come(7, 0, 0);
    assert_int_equal(strncmp(recorded, "WELCOME 7.0 generation 1 with table 1\n", 38), 0);
    drive_carried(job, 0, 2);
    drive_carried(job, 1, 2);
    by_recovery_rank(&drive.daemon, BY_RECOVER_RANK_DIED, job, 1, 0, 0);
    record_clear();
    drive_come(job, 1, 0);
    snprintf(text, sizeof(text), "WELCOME %u.1 generation 2 with table 2\n", job);
    record_expect(text);
    drive_close();
}

static void a_rank_that_comes_late_begins_where_the_others_did(void **state)
{
    (void)state;
    late_rank(3);
    late_rank(1);
}

static void a_job_without_a_path_waits_and_is_told_its_reason(void **state)
{
    (void)state;
    drive_start();
    drive_node_event(BY_EVENT_SWITCH_GONE, X0);
    record_clear();
    drive_planned("no path is left");
    record_expect("job 3: switch x0 has ended: no path is left; the job waits for a path\n"
                  "FREEZE 7.0 generation 2 with table 2\nFREEZE 7.1 generation 2 with table 2\npush\n");
    assert_int_equal(drive.jobs[0].state, BY_JOB_FAILED);
    assert_string_equal(drive.jobs[0].text, "no path is left");
    drive_pushed(0);
    drive_carried(7, 0, 2);
    drive_carried(7, 1, 2);
    record_clear();
    for (unsigned i = 0; i < 34; i++)
        drive_tick(100);
    record_expect("timer 0\n");
    drive_tick(100);
    record_expect("job 3: switch x0 has ended: no path is left\n"
                  "FAIL 3.0 generation 0 ENOENT: switch x0 has ended: no path is left\n"
                  "FAIL 3.1 generation 0 ENOENT: switch x0 has ended: no path is left\n");
    drive_close();
}

/* Events that this process could not read meanwhile do not count against ranks and parts. */
static void time_in_which_it_stood_still_counts_for_no_limit(void **state)
{
    (void)state;
    drive_start();
    by_recovery_rank(&drive.daemon, BY_RECOVER_RANK_DIED, 3, 1, 0, 0);
    drive_tick(499);
    drive_tick(499);
    drive_tick(499);
    drive_tick(2);
    record_expect("");
    drive_tick(1);
    assert_non_null(strstr(recorded, "FAIL 3.0 ")); /* after 1.5 s */
    record_clear();
    by_recovery_rank(&drive.daemon, BY_RECOVER_RANK_DIED, 7, 1, 0, 0);
    drive_tick(499);
    drive_tick(500); /* five heartbeats without an event */
    drive_tick(499);
    drive_tick(499);
    drive_tick(2);
    record_expect("");
    drive_tick(1);
    record_expect("job 7: rank 1 (h1) failed: its connection to the controller was closed\n"
                  "FAIL 7.0 generation 0 EABORTED: rank 1 (h1) failed: its connection to the controller was "
                  "closed\n");
    drive_close();
}

static void a_push_that_failed_is_tried_again_with_the_same_tables(void **state)
{
    (void)state;
    drive_start();
    drive_lose_x0();
    record_clear();
    drive_pushed(BY_EIO);
    record_expect("the tables could not be pushed: x1 does not answer\n");
    assert_ptr_equal(drive.daemon.change, drive.change);
    assert_true(drive.change->targets == NULL && drive.change->target_count == 0);
    drive_timer(199);
    assert_null(strstr(recorded, "push"));
    drive_timer(1);
    assert_non_null(strstr(recorded, "push\n"));
    record_clear();
    drive_pushed(0);
    record_expect("GO 3.0 generation 2\nGO 3.1 generation 2\nGO 7.0 generation 2\nGO 7.1 generation 2\n");
    drive_close();
}

static void a_fault_after_a_push_that_failed_gets_new_plans(void **state)
{
    (void)state;
    drive_start();
    drive_lose_x0();
    drive_pushed(BY_EIO);
    record_clear();
    drive_event((struct by_daemon_event){.kind = BY_EVENT_LINK_DOWN, .link = H0_X1});
    record_expect("link h0 - x1 is down: planning again\nno more plans in advance\n"
                  "plan 3 as 3 again 7 as 3 again without x0 without link 2\n");
    drive_close();
}

static void a_fault_while_plans_are_made_is_planned_for_after_them(void **state)
{
    (void)state;
    drive_start();
    drive_node_event(BY_EVENT_SWITCH_GONE, X0);
    record_clear();
    drive_event((struct by_daemon_event){.kind = BY_EVENT_LINK_DOWN, .link = H0_X1});
    record_expect("link h0 - x1 is down: planning again\n");
    drive_planned(NULL);
    record_expect("no more plans in advance\nplan 3 as 3 again 7 as 3 again without x0 without link 2\n");
    drive_close();
}

static void a_plan_of_another_change_gives_way(void **state)
{
    struct by_change *other;

    (void)state;
    drive_start();
    other = drive.daemon.change = by_change_new(&drive.daemon);
    drive_node_event(BY_EVENT_SWITCH_GONE, X0);
    record_expect("switch x0 has ended: planning again\ntimer 4000000\nyield\n");
    drive_timer(4);
    record_expect("yield\n");
    by_change_free(other);
    drive.daemon.change = NULL;
    drive_event((struct by_daemon_event){.kind = BY_EVENT_PUSHED});
    record_expect("no more plans in advance\nplan 3 as 2 again 7 as 2 again without x0\n");
    drive_close();
}

static void nothing_is_planned_before_it_leads(void **state)
{
    (void)state;
    drive_start();
    drive.daemon.start = (struct by_start *)&drive;
    drive_node_event(BY_EVENT_SWITCH_GONE, X0);
    record_expect("switch x0 has ended: planning again\ntimer 4000000\n");
    drive.daemon.start = NULL;
    drive_timer(4);
    record_expect("no more plans in advance\nplan 3 as 2 again 7 as 2 again without x0\n");
    drive_close();
}

static void a_push_to_a_switch_that_is_down_is_stopped(void **state)
{
    (void)state;
    drive_start();
    drive_lose_x0();
    record_clear();
    drive_node_event(BY_EVENT_SWITCH_REBOOTED, X1); /* it can get its table */
    assert_null(strstr(recorded, "stop"));
    drive_node_event(BY_EVENT_SWITCH_DOWN, X0); /* the push does not go there */
    assert_null(strstr(recorded, "stop"));
    drive_node_event(BY_EVENT_SWITCH_DOWN, X1);
    assert_non_null(strstr(recorded, "stop the push\n"));
    drive_close();
}

/* Ranks are frozen then, and cannot report it. */
static void switches_of_a_slow_push_are_asked_and_suspected(void **state)
{
    (void)state;
    drive_start();
    drive_lose_x0();
    drive.alternates = true;
    drive_timer(29);
    assert_null(strstr(recorded, "ask"));
    assert_false(by_recovery_suspects(&drive.daemon, X1));
    record_clear();
    drive_timer(1);
    assert_non_null(strstr(recorded, "ask 2 3\n"));
    assert_true(by_recovery_suspects(&drive.daemon, X1));
    assert_false(by_recovery_suspects(&drive.daemon, X0));
    drive.alternates = false; /* without it there is no path, so it gets time */
    assert_false(by_recovery_suspects(&drive.daemon, X1));
    drive.alternates = true;
    drive_pushed(0);
    assert_false(by_recovery_suspects(&drive.daemon, X1));
    record_clear();
    drive_timer(40);
    assert_null(strstr(recorded, "ask"));
    drive_close();
    drive_start();
    drive.target = X0;
    by_recovery_renew(&drive.daemon, 7, "many chunks");
    drive_planned(NULL);
    drive_timer(30);
    assert_non_null(strstr(recorded, "ask 0 1\n"));
    drive_close();
}

static void wait_of_job(uint16_t job)
{
    bool used[LINKS] = {true, true, true, true};
    const bool *suspected;

    drive_open();
    drive.jobs[0].spec.job = job;
    drive_free_tables(drive.jobs[1].tables);
    drive.jobs[1].tables = drive_tables(1, X1);
    assert_false(by_recovery_waiting(&drive.daemon, used));
    drive_run();
    drive.alternates = true;
    assert_null(by_recovery_suspected(&drive.daemon, job));
    assert_false(by_recovery_waiting(&drive.daemon, used) || used[0] || used[1] || used[2] || used[3]);
    by_recovery_rank(&drive.daemon, BY_RECOVER_RANK_SUSPECTS, job, 0, 1, 0);
    suspected = by_recovery_suspected(&drive.daemon, job);
    assert_true(suspected == drive.jobs[0].tables->uses_link);
    assert_null(by_recovery_suspected(&drive.daemon, 7));
    assert_null(by_recovery_suspected(&drive.daemon, 4));
    assert_true(by_recovery_suspects(&drive.daemon, X0) && !by_recovery_suspects(&drive.daemon, X1));
    assert_false(by_recovery_waiting(&drive.daemon, used)); /* one report is one late chunk */
    drive.daemon.now_ms += 40;
    by_recovery_rank(&drive.daemon, BY_RECOVER_RANK_SUSPECTS, job, 0, 1, 0);
    assert_true(by_recovery_waiting(&drive.daemon, used) && used[0] && used[1] && !used[2] && !used[3]);
    by_recovery_rank(&drive.daemon, BY_RECOVER_RANK_SUSPECTS, 7, 0, 1, 0);
    drive.daemon.now_ms += 40;
    drive_tick(0);
    assert_true(by_recovery_waiting(&drive.daemon, used) && used[0] && used[1] && used[2] && used[3]);
    assert_true(by_recovery_suspects(&drive.daemon, X1));
    drive.alternates = false;
    assert_false(by_recovery_suspects(&drive.daemon, X0));
    drive_close();
}

static void ranks_that_wait_make_the_switches_and_links_of_their_job_suspect(void **state)
{
    (void)state;
    wait_of_job(3);
    wait_of_job(1);
}

/* Job 1, the lowest number, fails and job 7 goes on, or the other way round. */
static void a_job_whose_rank_leaves_in_a_recovery_runs_without_its_ranks(void **state)
{
    (void)state;
    for (unsigned fails = 0; fails < 2; fails++) {
        const struct by_job *failed = &drive.jobs[fails], *other = &drive.jobs[1 - fails];

        drive_open();
        drive.jobs[0].spec.job = 1;
        drive_run();
        drive_node_event(BY_EVENT_SWITCH_DOWN, X0);
        assert_non_null(strstr(recorded, "plan 1 as 2 again 7 as 2 again without x0\n"));
        drive_planned(NULL);
        assert_null(strstr(recorded, "its plan was made in advance"));
        drive_pushed(0);
        record_clear();
        by_recovery_rank(&drive.daemon, BY_RECOVER_RANK_LEFT, failed->spec.job, 0, 0, 100);
        assert_non_null(
            strstr(recorded, "rank 0 (h0) has ended, and its data of the others' calls is lost\n"));
        assert_true(failed->state == BY_JOB_RUNNING && other->state == BY_JOB_RECOVERING);
        drive_carried(other->spec.job, 0, 2);
        drive_carried(other->spec.job, 1, 2);
        assert_int_equal(other->state, BY_JOB_RUNNING);
        drive_close();
    }
}

static void a_plan_that_was_made_in_advance_is_told(void **state)
{
    (void)state;
    drive_open();
    drive.jobs[0].spec.job = 1;
    drive.ahead = true;
    drive_run();
    drive_node_event(BY_EVENT_SWITCH_DOWN, X0);
    record_clear();
    drive_planned(NULL);
    recorded[2 * strlen("job 1: its plan was made in advance\n")] = 0;
    record_expect("job 1: its plan was made in advance\njob 7: its plan was made in advance\n");
    drive_close();
}

static void parts_that_drop_packets_are_left_out(void **state)
{
    (void)state;
    drive_start();
    by_recovery_swallows(&drive.daemon, true, H0_X0, "drops packets");
    record_expect("link h0 - x0 drops packets: planning again\ntimer 4000000\nno more plans in advance\n"
                  "plan 3 as 2 again 7 as 2 again without link 0\n");
    drive_planned(NULL);
    drive_pushed(0);
    record_clear();
    by_recovery_swallows(&drive.daemon, false, X1, "drops packets");
    assert_non_null(strstr(recorded, "switch x1 drops packets: planning again\n"));
    drive_close();
}

static void a_job_that_ends_is_told_to_its_ranks_and_its_place_is_used_again(void **state)
{
    (void)state;
    drive_start();
    drive.jobs[0].state = BY_JOB_ENDING;
    drive_tick(0);
    record_expect("job 3: the job was ended at the controller\n"
                  "FAIL 3.0 generation 0 EABORTED: the job was ended at the controller\n"
                  "FAIL 3.1 generation 0 EABORTED: the job was ended at the controller\n");
    drive_come(3, 0, 0);
    record_expect("");
    drive.jobs[0].state = BY_JOB_RUNNING; /* its end failed: its tables have been used */
    drive.jobs[0].is_kept = true;
    drive_come(3, 0, 0);
    assert_non_null(strstr(recorded, "plan 3 as 2\n"));
    drive_close();
}

static void a_job_whose_keys_are_old_gets_another_generation(void **state)
{
    (void)state;
    drive_start();
    by_recovery_renew(&drive.daemon, 7, "many chunks");
    record_expect("job 7: many chunks\ntimer 4000000\nno more plans in advance\nplan 7 as 2\n");
    by_recovery_renew(&drive.daemon, 9, "many chunks");
    record_expect("");
    drive_close();
    drive_start();
    drive.daemon.loss.nodes[H0] = true; /* the first part */
    by_recovery_renew(&drive.daemon, 7, "many chunks");
    assert_non_null(strstr(recorded, "plan 7 as 2 again without h0\n"));
    drive_close();
}

static void what_was_down_before_it_led_is_known_to_it(void **state)
{
    (void)state;
    drive_open();
    drive.switches[1].state = BY_SWITCH_DOWN;
    drive.links[H0_X0].down = true;
    drive_tick(0);
    record_expect(
        "switch x1 does not answer: no job uses it\nlink h0 - x0 is down: planning again\n"
        "timer 4000000\nno more plans in advance\nplan 3 as 2 again 7 as 2 again without x1 without link "
        "0\n");
    drive_close();
    drive_open();
    drive.switches[0].state = BY_SWITCH_DOWN;
    drive.links[H1_X1].down = true;
    drive_tick(0);
    record_expect("switch x0 does not answer: planning again\nlink h1 - x1 is down: planning again\n"
                  "timer 4000000\nno more plans in advance\n"
                  "plan 3 as 2 again 7 as 2 again without x0 without link 3\n");
    drive_close();
}

static void events_of_other_parts_are_none_of_recovery(void **state)
{
    (void)state;
    drive_open();
    drive.switches[1].state = BY_SWITCH_DOWN;
    drive_event((struct by_daemon_event){.kind = BY_EVENT_COUNTED});
    drive_event((struct by_daemon_event){.kind = BY_EVENT_ANSWERED});
    record_expect("");
    drive_event((struct by_daemon_event){.kind = BY_EVENT_PUSHED});
    record_expect("switch x1 does not answer: no job uses it\n");
    drive_close();
}

static void a_job_that_had_failed_is_planned_at_once(void **state)
{
    (void)state;
    drive_open();
    drive.jobs[0].state = BY_JOB_FAILED;
    drive_free_tables(drive.jobs[0].tables);
    drive.jobs[0].tables = NULL;
    drive.jobs[0].gen_last = 6;
    drive_tick(0);
    record_expect("timer 4000000\nno more plans in advance\nplan 3 as 7\n");
    drive_planned(NULL);
    drive_pushed(0);
    assert_true(drive.jobs[0].tables->gen == 7 && drive.jobs[0].state == BY_JOB_RUNNING);
    drive_close();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_get_the_tables_of_their_generation),
        cmocka_unit_test(a_fault_moves_all_ranks_and_the_times_are_told),
        cmocka_unit_test(only_the_jobs_that_use_a_part_are_planned_again),
        cmocka_unit_test(no_rank_gets_tables_that_are_not_recorded),
        cmocka_unit_test(a_rank_that_comes_late_begins_where_the_others_did),
        cmocka_unit_test(a_job_without_a_path_waits_and_is_told_its_reason),
        cmocka_unit_test(time_in_which_it_stood_still_counts_for_no_limit),
        cmocka_unit_test(a_push_that_failed_is_tried_again_with_the_same_tables),
        cmocka_unit_test(a_fault_after_a_push_that_failed_gets_new_plans),
        cmocka_unit_test(a_fault_while_plans_are_made_is_planned_for_after_them),
        cmocka_unit_test(a_plan_of_another_change_gives_way),
        cmocka_unit_test(nothing_is_planned_before_it_leads),
        cmocka_unit_test(a_push_to_a_switch_that_is_down_is_stopped),
        cmocka_unit_test(switches_of_a_slow_push_are_asked_and_suspected),
        cmocka_unit_test(ranks_that_wait_make_the_switches_and_links_of_their_job_suspect),
        cmocka_unit_test(a_job_whose_rank_leaves_in_a_recovery_runs_without_its_ranks),
        cmocka_unit_test(a_plan_that_was_made_in_advance_is_told),
        cmocka_unit_test(parts_that_drop_packets_are_left_out),
        cmocka_unit_test(a_job_that_ends_is_told_to_its_ranks_and_its_place_is_used_again),
        cmocka_unit_test(a_job_whose_keys_are_old_gets_another_generation),
        cmocka_unit_test(what_was_down_before_it_led_is_known_to_it),
        cmocka_unit_test(events_of_other_parts_are_none_of_recovery),
        cmocka_unit_test(a_job_that_had_failed_is_planned_at_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
