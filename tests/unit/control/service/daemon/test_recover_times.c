/* Recovery as a step function: the times of reminders, waits and silent switches to the nanosecond,
 * the steps of an attempt, and events that concern nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "offload/base/errors.h"
#include "tests/unit/control/service/daemon/acts.h"

static int memory = -1; /* so many allocations succeed; -1: all */

void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *bytes, size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *bytes, size_t size);

static bool has_memory(void)
{
    bool has = memory != 0;

    memory -= memory > 0;
    return has;
}

void *__wrap_calloc(size_t count, size_t size)
{
    return has_memory() ? __real_calloc(count, size) : NULL;
}

void *__wrap_realloc(void *bytes, size_t size)
{
    return has_memory() ? __real_realloc(bytes, size) : NULL;
}

/* The place behind the last job, and work that nobody requested. */
static void what_concerns_no_job_or_no_work_is_ignored(void **state)
{
    (void)state;
    acts_start();
    acts_renew(1);
    for (uint32_t job = 0; job < 2; job++)
        acts_give((struct by_recover_event){
            .type = BY_RECOVER_NO_PLAN, .job = job, .error = BY_ENOENT, .text = "no path"});
    acts_work(BY_RECOVER_PLANNED, 0, NULL);
    acts_work(BY_RECOVER_PUSHED, 0, NULL);
    acts_rank(BY_RECOVER_RANK_CAME, 1, 0, 0, 10);
    acts_rank(BY_RECOVER_RANK_CAME, 0, RANKS, 0, 10);
    acts_expect("");
    assert_true(by_recover_is_quiet(acts.recover));
    assert_true(by_recover_base(acts.recover, 1) == 0 && by_recover_next(acts.recover, 1) == 0);
    assert_false(by_recover_planning(acts.recover, 1) || by_recover_is_under_way(acts.recover, 1));
    assert_false(by_recover_suspects(acts.recover, 1) || by_recover_waits(acts.recover, 1));
    assert_true(by_recover_waited_ns(acts.recover, 1) == 0);
    acts_rank(BY_RECOVER_RANK_DIED, 0, 2, 4, 0);
    acts_later(1500);
    acts.done[0] = 0;
    acts_renew(0); /* it has failed */
    acts_expect("");
    acts_close();
}

static void the_generation_after_the_highest_number_is_the_first(void **state)
{
    (void)state;
    acts_open(false);
    by_recover_add(acts.recover, &(struct by_recover_job){.job = 3, .rank_count = 1, .gen = UINT16_MAX});
    acts_renew(1);
    acts_expect("log job 3: why\nplan\n");
    assert_int_equal(by_recover_next(acts.recover, 1), 1);
    acts_close();
    acts_open(true);
    acts_rank(BY_RECOVER_RANK_CAME, 0, 0, 5, 10); /* the next one is used already */
    acts_expect("welcome 0.0\nplan\n");
    acts_generations(4, 6);
    acts_close();
}

static void a_job_is_under_way_in_each_step_of_an_attempt(void **state)
{
    (void)state;
    acts_start();
    by_recover_add(acts.recover, &(struct by_recover_job){.job = 3, .rank_count = 1, .gen = 2});
    assert_false(by_recover_is_under_way(acts.recover, 0));
    acts_renew(0);
    acts_renew(1);
    assert_true(by_recover_is_under_way(acts.recover, 0) && by_recover_planning(acts.recover, 0));
    assert_true(by_recover_is_under_way(acts.recover, 1) && !by_recover_planning(acts.recover, 1));
    acts_work(BY_RECOVER_PLANNED, 0, NULL); /* job 3 is planned now, and job 9 waits for it */
    assert_true(by_recover_is_under_way(acts.recover, 0) && by_recover_planning(acts.recover, 1));
    acts_work(BY_RECOVER_PLANNED, 0, NULL);
    acts_work(BY_RECOVER_PUSHED, 0, NULL);
    assert_false(by_recover_is_under_way(acts.recover, 1)); /* it has no rank */
    for (uint16_t k = 0; k < (uint16_t)RANKS; k++) {
        assert_true(by_recover_is_under_way(acts.recover, 0) && !by_recover_planning(acts.recover, 0));
        acts_rank(BY_RECOVER_RANK_CARRIED, 0, k, 5, 0);
    }
    assert_false(by_recover_is_under_way(acts.recover, 0));
    acts_part(BY_RECOVER_SWITCH_GONE, 1);
    acts_no_plan();
    assert_true(by_recover_is_under_way(acts.recover, 0) && !by_recover_planning(acts.recover, 0));
    acts_part(BY_RECOVER_SWITCH_UP, 1);
    acts_expect("log switch 1 is back: planning again\nplan\n");
    acts_close();
}

static void without_plans_of_all_jobs_their_ranks_get_the_reason(void **state)
{
    char text[400];

    (void)state;
    acts_start();
    acts_part(BY_RECOVER_SWITCH_GONE, 0);
    acts.done[0] = 0;
    acts_work(BY_RECOVER_PLANNED, BY_ELIMIT, "no images");
    snprintf(text, sizeof(text),
             "log job 9: switch 0 has ended: no images\nfail 0.0 %d switch 0 has ended: no images\n"
             "fail 0.1 %d switch 0 has ended: no images\nfail 0.2 %d switch 0 has ended: no images\n",
             BY_ELIMIT, BY_ELIMIT, BY_ELIMIT);
    acts_expect(text);
    assert_true(by_recover_is_quiet(acts.recover)); /* nothing is pushed */
    acts_close();
}

/* A rank that resumes, and a new attempt, make reminders fast again. */
static void the_interval_of_reminders_grows_fifteen_times(void **state)
{
    uint64_t interval_ns = 4 * MS;

    (void)state;
    acts_start();
    acts_part(BY_RECOVER_SWITCH_DOWN, 1);
    acts_work(BY_RECOVER_PLANNED, 0, NULL);
    acts.done[0] = 0;
    for (unsigned i = 0; i < 20; i++) {
        acts.now_ns += interval_ns - 1;
        acts_later(0);
        acts_expect("");
        acts.now_ns++;
        acts_later(0);
        acts_expect("freeze 0.0\nfreeze 0.1\nfreeze 0.2\n");
        interval_ns += i < 15 ? interval_ns / 4 : 0;
    }
    acts_part(BY_RECOVER_LINK_DOWN, 0);
    acts_work(BY_RECOVER_PUSHED, 0, NULL); /* that of the new attempt follows */
    acts_work(BY_RECOVER_PLANNED, 0, NULL);
    acts.done[0] = 0;
    acts_later(3);
    acts_expect("");
    acts_later(1);
    acts_expect("freeze 0.0\nfreeze 0.1\nfreeze 0.2\n");
    acts_later(3);
    acts_rank(BY_RECOVER_RANK_CARRIED, 0, 1, 6, 0);
    acts_later(3); /* since then */
    acts_expect("");
    acts_later(1);
    acts_expect("freeze 0.0\nfreeze 0.1\nfreeze 0.2\n");
    acts_rank(BY_RECOVER_RANK_CARRIED, 0, 1, 6, 0); /* that is known */
    acts_later(4);
    acts_expect("");
    acts_later(1);
    acts_expect("freeze 0.0\nfreeze 0.1\nfreeze 0.2\n");
    acts_close();
}

static void reports_of_waits_less_than_350_ms_apart_are_one_wait(void **state)
{
    (void)state;
    acts_start();
    acts_rank(BY_RECOVER_RANK_SUSPECTS, 0, 1, 4, 0);
    acts.now_ns += 40 * MS - 1;
    acts_later(0);
    assert_true(by_recover_suspects(acts.recover, 0) && !by_recover_waits(acts.recover, 0));
    acts.now_ns++;
    acts_later(0);
    assert_true(by_recover_waits(acts.recover, 0) && by_recover_waited_ns(acts.recover, 0) == 40 * MS);
    acts_later(310);
    assert_true(by_recover_waits(acts.recover, 0) && by_recover_waited_ns(acts.recover, 0) == 350 * MS);
    acts_rank(BY_RECOVER_RANK_SUSPECTS, 0, 2, 4, 0);
    assert_true(by_recover_waits(acts.recover, 0));
    acts_later(350);
    assert_true(by_recover_waits(acts.recover, 0) && by_recover_waited_ns(acts.recover, 0) == 700 * MS);
    acts.now_ns++;
    acts_later(0);
    assert_false(by_recover_suspects(acts.recover, 0) || by_recover_waits(acts.recover, 0));
    assert_true(by_recover_waited_ns(acts.recover, 0) == 0);
    acts_rank(BY_RECOVER_RANK_SUSPECTS, 0, 1, 4, 0); /* another wait */
    assert_true(by_recover_suspects(acts.recover, 0) && !by_recover_waits(acts.recover, 0));
    acts_close();
}

static void a_switch_is_not_lost_while_its_ranks_make_progress(void **state)
{
    static const char silent[] =
        "log switch 1 does not answer, but its ranks make progress: check the path from here to it\n";

    (void)state;
    acts_start();
    acts_rank(BY_RECOVER_RANK_ALIVE, 0, 1, 4, 7);
    acts_part(BY_RECOVER_SWITCH_DOWN, 1);
    acts_expect(silent);
    acts_part(BY_RECOVER_SWITCH_DOWN, 1);
    acts_part(BY_RECOVER_SWITCH_UP, 1);
    acts_later(1000);
    acts_expect("");
    acts_rank(BY_RECOVER_RANK_ALIVE, 0, 1, 4, 8);
    acts_part(BY_RECOVER_SWITCH_DOWN, 1);
    acts_expect(silent);
    acts.now_ns += 250 * MS - 1;
    acts_rank(BY_RECOVER_RANK_ALIVE, 0, 1, 4, 8); /* no chunk was done since */
    acts_later(0);
    acts_expect("");
    acts.now_ns++;
    acts_later(0);
    acts_expect("log switch 1 does not answer: planning again\nplan\n");
    acts_close();
    for (uint64_t early = 0; early < 2; early++) { /* half a second after a wait there is progress again */
        acts_start();
        acts_rank(BY_RECOVER_RANK_SUSPECTS, 0, 1, 4, 0);
        acts.now_ns += 500 * MS - early;
        acts_rank(BY_RECOVER_RANK_ALIVE, 0, 1, 4, 7);
        acts_part(BY_RECOVER_SWITCH_DOWN, 1);
        acts_expect(early ? "log switch 1 does not answer: planning again\nplan\n" : silent);
        acts_close();
    }
}

static void ranks_that_die_together_end_their_run(void **state)
{
    (void)state;
    acts_start();
    acts_ranks(BY_RECOVER_RANK_DIED, 4);
    acts_later(1000);
    acts_rank(BY_RECOVER_RANK_DIED, 0, 0, 4, 0); /* the time counts from the first event */
    acts_later(499);
    acts_expect("");
    acts_later(1);
    acts_expect("log job 9: rank 0 of 0 failed: its connection to the controller was closed\n");
    acts_rank(BY_RECOVER_RANK_CAME, 0, 0, 0, 50);
    acts_expect("plan\n");
    assert_true(by_recover_has_rank(acts.recover, 0, 0));
    acts_rank(BY_RECOVER_RANK_LEFT, 0, 0, 0, 0); /* it has not begun */
    assert_false(by_recover_has_rank(acts.recover, 0, 0));
    acts_expect("");
    acts_close();
    acts_start();
    acts_part(BY_RECOVER_SWITCH_GONE, 0);
    acts_work(BY_RECOVER_PLANNED, 0, NULL);
    acts_rank(BY_RECOVER_RANK_DIED, 0, 1, 4, 0);
    acts_rank(BY_RECOVER_RANK_DIED, 0, 2, 4, 0);
    acts.done[0] = 0;
    acts_rank(BY_RECOVER_RANK_LEFT, 0, 0, 4, 0); /* the others may return, and need its data */
    acts_expect("log job 9: switch 0 has ended: rank 0 of 0 has ended, and its data of the others' calls is "
                "lost\n");
    acts_close();
}

static void a_job_that_ends_while_it_waits_for_a_plan_is_in_none(void **state)
{
    (void)state;
    acts_start();
    by_recover_add(acts.recover, &(struct by_recover_job){.job = 3, .rank_count = 1, .gen = 2});
    for (uint32_t job = 0; job < 2; job++)
        acts_renew(job);
    by_recover_remove(acts.recover, 1);
    acts_expect("log job 9: why\nplan\nlog job 3: why\nlog job 3: the job was ended at the controller\n");
    acts_renew(1);
    acts_expect("");
    acts_move(4, 5);
    acts_renew(0);
    acts.done[0] = 0;
    acts_give((struct by_recover_event){
        .type = BY_RECOVER_NO_PLAN, .job = 0, .error = BY_ENOENT, .text = "no path"});
    acts_expect("log job 9: job 9 has new keys: no path; the job waits for a path\n");
    acts_close();
}

static void without_memory_there_is_no_recovery_and_no_job(void **state)
{
    static const struct by_recover_job job = {.job = 3, .rank_count = 2, .gen = 2};

    (void)state;
    for (int most = 0; most < 4; most++) {
        memory = most;
        assert_null(by_recover_open(&(struct by_recover_config){.node_count = NODES, .link_count = LINKS}));
    }
    memory = -1;
    by_recover_close(NULL);
    acts_open(false);
    for (int most = 0; most < 2; most++) {
        memory = most;
        assert_true(by_recover_add(acts.recover, &job) == UINT32_MAX);
    }
    memory = -1;
    assert_int_equal(by_recover_add(acts.recover, &job), 1);
    acts_close();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_concerns_no_job_or_no_work_is_ignored),
        cmocka_unit_test(the_generation_after_the_highest_number_is_the_first),
        cmocka_unit_test(a_job_is_under_way_in_each_step_of_an_attempt),
        cmocka_unit_test(without_plans_of_all_jobs_their_ranks_get_the_reason),
        cmocka_unit_test(the_interval_of_reminders_grows_fifteen_times),
        cmocka_unit_test(reports_of_waits_less_than_350_ms_apart_are_one_wait),
        cmocka_unit_test(a_switch_is_not_lost_while_its_ranks_make_progress),
        cmocka_unit_test(ranks_that_die_together_end_their_run),
        cmocka_unit_test(a_job_that_ends_while_it_waits_for_a_plan_is_in_none),
        cmocka_unit_test(without_memory_there_is_no_recovery_and_no_job),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
