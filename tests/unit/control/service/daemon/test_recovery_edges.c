/* The driver of recovery at its edges: failures of what it requires, jobs that end, times over many
 * minutes, and changes of others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "control/base/alloc.h"
#include "offload/base/errors.h"
#include "tests/unit/control/service/daemon/drive.h"
#include "tests/unit/control/service/daemon/record.h"

/* The second job, the job of the lowest number, and others that go on beside a free place. */
static void any_job_may_end_and_others_go_on(void **state)
{
    (void)state;
    drive_open();
    drive.jobs[0].spec.job = 1;
    drive_run();
    drive.jobs[1].state = BY_JOB_ENDING;
    drive_tick(0);
    assert_non_null(
        strstr(recorded, "FAIL 7.1 generation 0 EABORTED: the job was ended at the controller\n"));
    drive.jobs[0].state = BY_JOB_ENDING;
    drive_tick(0);
    assert_non_null(
        strstr(recorded, "FAIL 1.0 generation 0 EABORTED: the job was ended at the controller\n"));
    record_clear();
    drive.jobs[0].state = BY_JOB_RUNNING;
    drive_come(1, 0, 0);
    record_expect("WELCOME 1.0 generation 1 with table 1\n");
    drive_lose_x0();
    drive_pushed(0);
    assert_non_null(strstr(recorded, "GO 1.0 generation 2\n"));
    drive_close();
}

/* A rank must not get other tables under that number. */
static void without_the_tables_of_its_generation_a_rank_gets_none(void **state)
{
    (void)state;
    drive_start();
    drive.jobs[0].tables->gen = 5;
    by_recovery_rank(&drive.daemon, BY_RECOVER_RANK_DIED, 3, 0, 0, 0);
    drive_come(3, 0, 0);
    record_expect(
        "said: job 3: no table of generation 1 for rank 0: the call is not valid in this state\nWELCOME 3.0 generation 1\n");
    drive.no_image = true;
    by_recovery_rank(&drive.daemon, BY_RECOVER_RANK_DIED, 7, 0, 0, 0);
    drive_come(7, 0, 0);
    record_expect(
        "said: job 7: no table of generation 1 for rank 0: no memory for it\nWELCOME 7.0 generation 1\n");
    drive_node_event(BY_EVENT_SWITCH_GONE, X0);
    record_clear();
    drive_planned(NULL); /* it does not freeze, and requests it again */
    assert_non_null(strstr(recorded, "said: job 7: no table of generation 2 for rank 0: no memory for it\n"));
    assert_null(strstr(recorded, "FREEZE"));
    drive_close();
}

static void without_images_all_jobs_of_the_plan_fail(void **state)
{
    (void)state;
    drive_start();
    drive_node_event(BY_EVENT_SWITCH_GONE, X0);
    record_clear();
    drive.change->error = BY_ELIMIT;
    snprintf(drive.change->problem.text, sizeof(drive.change->problem.text), "no images");
    drive.planned(&drive.daemon, drive.change);
    record_expect("job 3: switch x0 has ended: no images\n"
                  "FAIL 3.0 generation 0 ELIMIT: switch x0 has ended: no images\n"
                  "FAIL 3.1 generation 0 ELIMIT: switch x0 has ended: no images\n"
                  "job 7: switch x0 has ended: no images\n"
                  "FAIL 7.0 generation 0 ELIMIT: switch x0 has ended: no images\n"
                  "FAIL 7.1 generation 0 ELIMIT: switch x0 has ended: no images\ntimer 0\n");
    assert_null(drive.daemon.change);
    drive_close();
}

static void a_fault_during_a_push_is_planned_for_after_it(void **state)
{
    (void)state;
    drive_start();
    drive_lose_x0();
    drive_event((struct by_daemon_event){.kind = BY_EVENT_LINK_DOWN, .link = H0_X1});
    record_clear();
    drive_pushed(0);
    assert_non_null(strstr(recorded, "plan 3 as 3 again 7 as 3 again without x0 without link 2\n"));
    drive_close();
}

static void what_fails_at_the_start_is_named(void **state)
{
    static const char *const lines[] = {"end 3: cannot create a timer: Too many open files\n",
                                        "end 3: no memory for 4 nodes\n",
                                        "end 3: cannot create a timer: No space left on device\n"};

    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        bool *const flags[] = {&drive.no_timer, &drive.no_memory, &drive.no_watch};

        drive_open();
        *flags[i] = true;
        drive_reopen();
        record_expect(lines[i]);
        by_recovery_close(&drive.daemon);
        *flags[i] = false;
        by_recovery_open(&drive.daemon);
        drive_close();
    }
}

/* Other parts of the daemon may call it before it is opened, and after it is closed. */
static void without_recovery_no_rank_waits_and_events_are_ignored(void **state)
{
    bool used[LINKS] = {false};

    (void)state;
    drive_open();
    by_recovery_close(&drive.daemon);
    assert_false(by_recovery_has_rank(&drive.daemon, 3, 0));
    assert_false(by_recovery_waiting(&drive.daemon, used) || by_recovery_suspects(&drive.daemon, X0));
    assert_null(by_recovery_suspected(&drive.daemon, 3));
    drive_tick(0);
    drive_event((struct by_daemon_event){.kind = BY_EVENT_PUSHED});
    drive_come(3, 0, 0);
    by_recovery_renew(&drive.daemon, 3, "many chunks");
    by_recovery_close(&drive.daemon);
    record_expect("");
    by_recovery_open(&drive.daemon);
    drive_close();
}

static void the_timer_does_nothing_without_time_and_at_the_end(void **state)
{
    (void)state;
    drive_start();
    drive_lose_x0();
    record_clear();
    drive.no_time = true;
    drive_timer(4);
    drive.no_time = false;
    drive.daemon.ending = true;
    drive_timer(4);
    record_expect("");
    drive.daemon.ending = false;
    drive_timer(0);
    assert_non_null(strstr(recorded, "FREEZE 3.0 generation 2\n"));
    drive_close();
}

/* It is unknown whether a run has used its tables. */
static void a_job_of_before_this_daemon_begins_in_another_generation(void **state)
{
    (void)state;
    drive_open();
    drive_come(3, 0, 0);
    record_expect("timer 4000000\nno more plans in advance\nplan 3 as 2\n");
    drive_close();
}

static void the_times_of_an_attempt_begin_with_its_first_plan(void **state)
{
    (void)state;
    drive_start();
    drive_lose_x0();
    drive_pushed(0);
    drive_all_carried(2);
    drive.daemon.now_ms += 100;
    drive_event((struct by_daemon_event){.kind = BY_EVENT_LINK_DOWN, .link = H0_X1});
    drive_event((struct by_daemon_event){.kind = BY_EVENT_LINK_DOWN, .link = H1_X1});
    drive_planned(NULL); /* it is planned once more */
    drive_planned(NULL);
    drive_pushed(0);
    drive_carried(3, 0, 4);
    record_clear();
    drive_carried(3, 1, 4);
    record_expect(
        "good: job 3 is in generation 4, 17 ms after the planning began (10 ms to hosts, 17 ms to switches; "
        "17 ms after the first report of a wait)\n");
    drive_close();
}

static void a_push_of_another_change_is_stopped_if_a_job_waits_for_it(void **state)
{
    struct by_change *other;

    (void)state;
    drive_start();
    other = drive.daemon.change = by_change_new(&drive.daemon);
    other->target_nodes = by_alloc(1, sizeof(*other->target_nodes));
    other->target_nodes[0] = X1;
    other->target_count = 1;
    drive_node_event(BY_EVENT_SWITCH_DOWN, X1);
    record_expect("switch x1 does not answer: no job uses it\n");
    other->target_nodes[0] = X0;
    drive_node_event(BY_EVENT_SWITCH_GONE, X0);
    record_expect("switch x0 has ended: planning again\nstop the push\ntimer 4000000\nyield\n");
    drive_close();
}

/* A wrong unit of a millionth would end them too early or too late. The second hold is the longest,
 * an hour. */
static void long_times_end_to_the_millisecond(void **state)
{
    (void)state;
    drive_open();
    drive.daemon.options.trust_ms = 2000000;
    drive.daemon.options.quiet_ms = 1500000;
    drive_reopen();
    drive_run();
    by_recovery_swallows(&drive.daemon, true, H0_X0, "drops packets");
    drive_event((struct by_daemon_event){.kind = BY_EVENT_LINK_DOWN, .link = H0_X0});
    drive_planned(NULL);
    drive_pushed(0);
    drive_all_carried(2);
    drive_tick(2000000 - 5 - 7 - 1);
    assert_true(by_recover_held(drive.daemon.recover, true, H0_X0));
    drive_tick(1);
    assert_false(by_recover_held(drive.daemon.recover, true, H0_X0));
    drive_event((struct by_daemon_event){.kind = BY_EVENT_LINK_UP, .link = H0_X0});
    record_clear();
    drive_tick(1499999);
    record_expect("");
    drive_tick(1);
    assert_non_null(strstr(recorded, "the fabric has recovered: planning again\n"));
    by_recovery_swallows(&drive.daemon, true, H0_X0, "drops packets");
    drive_tick(3599999);
    assert_true(by_recover_held(drive.daemon.recover, true, H0_X0));
    drive_tick(1);
    assert_false(by_recover_held(drive.daemon.recover, true, H0_X0));
    drive_close();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_job_may_end_and_others_go_on),
        cmocka_unit_test(without_the_tables_of_its_generation_a_rank_gets_none),
        cmocka_unit_test(without_images_all_jobs_of_the_plan_fail),
        cmocka_unit_test(a_fault_during_a_push_is_planned_for_after_it),
        cmocka_unit_test(what_fails_at_the_start_is_named),
        cmocka_unit_test(without_recovery_no_rank_waits_and_events_are_ignored),
        cmocka_unit_test(the_timer_does_nothing_without_time_and_at_the_end),
        cmocka_unit_test(a_job_of_before_this_daemon_begins_in_another_generation),
        cmocka_unit_test(the_times_of_an_attempt_begin_with_its_first_plan),
        cmocka_unit_test(a_push_of_another_change_is_stopped_if_a_job_waits_for_it),
        cmocka_unit_test(long_times_end_to_the_millisecond),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
