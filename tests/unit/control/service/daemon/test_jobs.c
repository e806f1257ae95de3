/* Requests for jobs, their order, their results and their texts, with changes that the test
 * completes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "control/base/alloc.h"
#include "control/service/daemon/ahead_plans.h"
#include "control/service/daemon/changes.h"
#include "control/service/daemon/jobs.h"
#include "control/service/daemon/latency.h"
#include "control/service/daemon/news.h"
#include "offload/base/errors.h"
#include "tests/unit/control/service/daemon/record.h"

static struct {
    struct by_daemon daemon;
    struct by_change *change;       /* under way */
    by_change_fn *planned, *pushed; /* what it waits for */
    uint32_t changes;               /* that exist */
} rig;

/* ---- the other parts ---- */

void by_news_tell(struct by_news *news, enum by_news_grade grade, const char *format, ...)
{
    char text[600];
    va_list arguments;

    (void)news;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    record("%s: %s\n", grade == BY_NEWS_GOOD ? "good" : grade == BY_NEWS_BAD ? "bad" : "plain", text);
}

void by_news_keep(struct by_news *news, enum by_news_grade grade, const char *text)
{
    (void)news;
    record("keep %s: %s\n", grade == BY_NEWS_BAD ? "bad" : "other", text);
}

void by_latency_free(struct by_job_latency *latency)
{
    free(latency);
}

void by_ahead_free(struct by_ahead_plans *plans)
{
    free(plans);
}

void by_job_tables_free(struct by_job_tables *tables)
{
    free(tables);
}

void by_job_spec_free(struct by_job_spec *spec)
{
    free(spec->member);
    spec->member = NULL;
}

struct by_change *by_change_new(struct by_daemon *daemon)
{
    struct by_change *change = by_alloc(1, sizeof(*change));

    change->jobs = by_alloc(BY_DAEMON_JOBS_MAX, sizeof(*change->jobs));
    for (uint32_t i = 0; i < daemon->job_count; i++)
        if (daemon->jobs[i]->tables != NULL)
            change->jobs[change->job_count++] = (struct by_change_job){.job = daemon->jobs[i]};
    rig.changes++;
    return change;
}

struct by_change_job *by_change_find(const struct by_change *change, uint16_t job)
{
    for (uint32_t i = 0; i < change->job_count; i++)
        if (change->jobs[i].job->spec.job == job)
            return &change->jobs[i];
    return NULL;
}

void by_change_touch(struct by_change *change, struct by_job *job, bool repair)
{
    assert_null(by_change_find(change, job->spec.job));
    change->jobs[change->job_count++] =
        (struct by_change_job){.job = job, .anew = true, .gen = ++job->gen_last};
    record("touch %u%s, generation %u\n", job->spec.job, repair ? " for repair" : "", job->gen_last);
}

void by_change_leave(struct by_change *change, const struct by_job *job)
{
    (void)change;
    record("leave %u\n", job->spec.job);
}

void by_change_plan(struct by_daemon *daemon, struct by_change *change, by_change_fn *planned)
{
    assert_null(daemon->change);
    daemon->change = rig.change = change;
    rig.planned = planned;
    record("plan\n");
}

void by_change_push(struct by_daemon *daemon, struct by_change *change, by_change_fn *pushed)
{
    assert_ptr_equal(daemon->change, change);
    rig.pushed = pushed;
    record("push\n");
}

void by_change_adopt(struct by_daemon *daemon, struct by_change *change)
{
    (void)daemon;
    for (uint32_t i = 0; i < change->job_count; i++)
        if (change->jobs[i].anew) {
            change->jobs[i].job->tables = by_alloc(1, sizeof(struct by_job_tables));
            change->jobs[i].job->tables->gen = change->jobs[i].gen;
            if (change->jobs[i].job->spec.window != 0)
                snprintf(change->jobs[i].job->tables->note, sizeof(change->jobs[i].job->tables->note),
                         "a smaller window");
        }
    record("adopt\n");
}

void by_change_free(struct by_change *change)
{
    free(change->jobs);
    free(change);
    rig.changes--;
}

/* ---- requests and their results ---- */

static void open_rig(void)
{
    memset(&rig, 0, sizeof(rig));
    record_clear();
    rig.daemon.requests = by_jobs_open();
}

static void close_rig(void)
{
    if (rig.daemon.change != NULL)
        by_change_free(rig.daemon.change);
    by_jobs_close(&rig.daemon);
    assert_int_equal(rig.daemon.job_count, 0);
    assert_int_equal(rig.changes, 0);
}

static void reply(struct by_daemon *daemon, void *context, int error, const struct by_job *job,
                  const char *text)
{
    assert_ptr_equal(daemon, &rig.daemon);
    record("reply %s: %s%s %s\n", (const char *)context, error == 0 ? "done" : by_error_name(error),
           job != NULL ? " with the job" : "", text);
}

static void create(struct by_job_spec spec, const char *context)
{
    spec.member = by_alloc(4, sizeof(bool));
    by_jobs_create(&rig.daemon, &spec, reply, (void *)(uintptr_t)context);
    assert_null(spec.member); /* it is the request's now */
}

static void end(uint16_t job, const char *context)
{
    by_jobs_end(&rig.daemon, job, reply, (void *)(uintptr_t)context);
}

static void planned(int error, const char *text)
{
    rig.change->error = error;
    snprintf(rig.change->problem.text, sizeof(rig.change->problem.text), "%s", text);
    rig.planned(&rig.daemon, rig.change);
}

static void pushed(int error, const char *text)
{
    rig.change->error = error;
    snprintf(rig.change->problem.text, sizeof(rig.change->problem.text), "%s", text);
    rig.pushed(&rig.daemon, rig.change);
}

/* Lets a job run; nothing of it is checked. */
static struct by_job *run(uint16_t job)
{
    create((struct by_job_spec){.job = job}, "");
    planned(0, "");
    pushed(0, "");
    record_clear();
    return by_jobs_find(&rig.daemon, job);
}

/* ---- tests ---- */

static void a_job_runs_when_its_tables_are_on_the_switches(void **state)
{
    struct by_job *job;

    (void)state;
    open_rig();
    rig.daemon.gen_seen[5] = 16;
    create((struct by_job_spec){.job = 5, .window = 8}, "a");
    record_expect("touch 5, generation 17\nplan\n");
    job = by_jobs_find(&rig.daemon, 5);
    assert_true(job->state == BY_JOB_STARTING && !job->is_seen && job->spec.member != NULL);
    planned(0, "");
    record_expect("push\n");
    assert_int_equal(job->state, BY_JOB_STARTING);
    pushed(0, "");
    record_expect("adopt\ngood: job 5 runs, generation 17: a smaller window\nreply a: done with the job \n");
    assert_int_equal(job->state, BY_JOB_RUNNING);
    assert_null(rig.daemon.change);
    create((struct by_job_spec){.job = 2, .is_group = true}, "b");
    record_expect("touch 2, generation 1\nplan\n");
    assert_true(by_jobs_find(&rig.daemon, 2)->is_seen);
    planned(0, "");
    pushed(0, "");
    record_expect("push\nadopt\ngood: job 2 runs, generation 1\nreply b: done with the job \n");
    close_rig();
}

static void a_job_that_cannot_be_made_is_gone_and_its_generation_is_used_up(void **state)
{
    (void)state;
    open_rig();
    create((struct by_job_spec){.job = 5}, "a");
    by_change_find(rig.change, 5)->error = BY_ELIMIT;
    snprintf(by_change_find(rig.change, 5)->problem.text, 40, "job 5: no slots");
    planned(BY_EIO, "not this");
    record_expect("touch 5, generation 1\nplan\nbad: job 5: no slots\nreply a: ELIMIT job 5: no slots\n");
    assert_null(by_jobs_find(&rig.daemon, 5));
    assert_null(rig.daemon.change);
    create((struct by_job_spec){.job = 5}, "b");
    planned(BY_EIO, "no images");
    record_expect("touch 5, generation 2\nplan\nbad: no images\nreply b: EIO no images\n");
    create((struct by_job_spec){.job = 5}, "c");
    planned(0, "");
    pushed(BY_EIO, "x0 does not answer");
    record_expect(
        "touch 5, generation 3\nplan\npush\nbad: x0 does not answer\nreply c: EIO x0 does not answer\n");
    assert_int_equal(rig.daemon.job_count, 0);
    close_rig();
}

static void a_job_has_ended_when_no_switch_has_its_tables(void **state)
{
    struct by_job *job;

    (void)state;
    open_rig();
    job = run(4);
    job->gen_last = 12;
    job->ahead = by_alloc(1, sizeof(*job->ahead)); /* what it has is freed */
    job->latency = by_alloc(1, 1);
    job->renew_from = by_alloc(1, sizeof(*job->renew_from));
    end(4, "a");
    record_expect("leave 4\nplan\n");
    assert_int_equal(job->state, BY_JOB_ENDING);
    planned(0, "");
    pushed(0, "");
    record_expect("push\nadopt\nplain: job 4 has ended\nreply a: done \n");
    assert_null(by_jobs_find(&rig.daemon, 4));
    assert_int_equal(rig.daemon.gen_seen[4], 12);
    assert_null(rig.daemon.change);
    close_rig();
}

static void a_job_whose_end_fails_goes_on_as_it_was(void **state)
{
    struct by_job *job;

    (void)state;
    open_rig();
    job = run(4);
    assert_false(job->is_kept);
    end(4, "a");
    planned(BY_EIO, "no images");
    record_expect("leave 4\nplan\nbad: no images\nreply a: EIO with the job no images\n");
    assert_true(job->state == BY_JOB_RUNNING && job->is_kept);
    job->state = BY_JOB_FAILED;
    job->is_kept = false;
    end(4, "b");
    assert_int_equal(job->state, BY_JOB_ENDING);
    planned(0, "");
    pushed(BY_EIO, "no store");
    record_expect("leave 4\nplan\npush\nbad: no store\nreply b: EIO with the job no store\n");
    assert_true(job->state == BY_JOB_FAILED && job->is_kept);
    close_rig();
}

static void requests_are_served_one_after_another(void **state)
{
    (void)state;
    open_rig();
    create((struct by_job_spec){.job = 1}, "a");
    create((struct by_job_spec){.job = 2}, "b");
    end(1, "c");
    end(9, "d");
    record_expect("touch 1, generation 1\nplan\n");
    by_jobs_step(&rig.daemon); /* not beside another change */
    record_expect("");
    planned(0, "");
    pushed(0, "");
    record_clear();
    rig.daemon.start = (struct by_start *)&rig; /* nor before it leads */
    by_jobs_step(&rig.daemon);
    record_expect("");
    rig.daemon.start = NULL;
    by_jobs_step(&rig.daemon);
    record_expect("touch 2, generation 1\nplan\n");
    planned(0, "");
    pushed(0, "");
    record_clear();
    by_jobs_step(&rig.daemon);
    record_expect("leave 1\nplan\n");
    planned(0, "");
    pushed(0, "");
    record_clear();
    by_jobs_step(&rig.daemon);
    record_expect("bad: there is no job 9\nreply d: ENOENT there is no job 9\n");
    by_jobs_step(&rig.daemon);
    record_expect("");
    close_rig();
}

static void what_cannot_be_served_is_refused_with_the_remedy(void **state)
{
    (void)state;
    open_rig();
    run(7);
    create((struct by_job_spec){.job = 7}, "a");
    record_expect("bad: job 7 exists already: end it first, or choose another number\n"
                  "reply a: EEXIST job 7 exists already: end it first, or choose another number\n");
    for (uint16_t i = 1; i < BY_DAEMON_JOBS_MAX; i++)
        run((uint16_t)(100 + i));
    assert_int_equal(rig.daemon.job_count, BY_DAEMON_JOBS_MAX);
    create((struct by_job_spec){.job = 8}, "b");
    record_expect("bad: job 8: the limit of jobs is reached: end one first\n"
                  "reply b: ELIMIT job 8: the limit of jobs is reached: end one first\n");
    end(7, "c"); /* with all the others behind it */
    planned(0, "");
    pushed(0, "");
    record_clear();
    assert_int_equal(rig.daemon.job_count, BY_DAEMON_JOBS_MAX - 1);
    for (uint32_t i = 0; i < rig.daemon.job_count; i++)
        assert_int_equal(rig.daemon.jobs[i]->spec.job, 101 + i);
    close_rig();
}

static void the_queue_has_a_limit(void **state)
{
    char text[120];

    (void)state;
    open_rig();
    create((struct by_job_spec){.job = 1}, "a"); /* is under way, and not in the queue */
    for (uint32_t i = 0; i < BY_JOBS_REQUESTS_MAX; i++)
        end(1, "");
    record_clear();
    create((struct by_job_spec){.job = 2}, "b");
    snprintf(text, sizeof(text), "%u requests for jobs are waiting, the limit of banyand: repeat it later",
             BY_JOBS_REQUESTS_MAX);
    assert_non_null(strstr(recorded, text));
    assert_non_null(strstr(recorded, "reply b: EBUSY "));
    /* With a full queue a request that gave way to a recovery is not repeated. */
    record_clear();
    planned(BY_EABORTED, "a recovery");
    record_expect("bad: a recovery\nreply a: EABORTED a recovery\n");
    close_rig();
}

/* The next requests succeed, one after another. */
static void serve(unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        planned(0, "");
        pushed(0, "");
        by_jobs_step(&rig.daemon);
    }
}

static void a_request_without_a_number_gets_the_lowest_free_one(void **state)
{
    (void)state;
    open_rig();
    create((struct by_job_spec){.job = 0}, "");
    record_expect("touch 1, generation 1\nplan\n");
    serve(1);
    run(2);
    run(4);
    create((struct by_job_spec){.job = 0}, "a");
    record_expect("touch 3, generation 1\nplan\n");
    end(5, "");                                  /* an end takes no number */
    create((struct by_job_spec){.job = 0}, "b"); /* 5 */
    create((struct by_job_spec){.job = 0}, "c"); /* 6, as 5 is requested */
    serve(3);
    assert_int_equal(rig.daemon.job_count, 6);
    for (uint32_t i = 0; i < 6; i++)
        assert_int_equal(rig.daemon.jobs[i]->spec.job, i + 1);
    create((struct by_job_spec){.job = 0}, "d");
    planned(BY_EIO, "no images"); /* its number is free again */
    record_clear();
    create((struct by_job_spec){.job = 0}, "e");
    record_expect("touch 7, generation 2\nplan\n");
    create((struct by_job_spec){.job = 0}, "f"); /* 8 */
    create((struct by_job_spec){.job = 0}, "g"); /* 9, as 8 is requested */
    serve(3);
    assert_int_equal(rig.daemon.job_count, 9);
    close_rig();
}

static void requests_that_give_way_to_a_recovery_are_the_next(void **state)
{
    struct by_job *job;

    (void)state;
    open_rig();
    create((struct by_job_spec){.job = 1, .window = 3}, "a");
    create((struct by_job_spec){.job = 2}, "b");
    record_clear();
    planned(BY_EABORTED, "a recovery");
    record_expect("");
    assert_null(rig.daemon.change);
    assert_int_equal(rig.daemon.job_count, 0);
    by_jobs_step(&rig.daemon);
    record_expect("touch 1, generation 2\nplan\n");
    job = by_jobs_find(&rig.daemon, 1);
    assert_true(job->spec.member != NULL && job->spec.window == 3);
    planned(0, "");
    pushed(0, "");
    record_expect(
        "push\nadopt\ngood: job 1 runs, generation 2: a smaller window\nreply a: done with the job \n");
    by_jobs_step(&rig.daemon);
    record_expect("touch 2, generation 1\nplan\n");
    planned(0, "");
    pushed(0, "");
    end(1, "c");
    record_clear();
    planned(BY_EABORTED, "a recovery");
    record_expect("");
    assert_true(job->state == BY_JOB_RUNNING && rig.daemon.change == NULL);
    by_jobs_step(&rig.daemon);
    record_expect("leave 1\nplan\n");
    assert_int_equal(job->state, BY_JOB_ENDING);
    rig.daemon.ending = true; /* then no recovery follows */
    planned(BY_EABORTED, "the end");
    record_expect("bad: the end\nreply c: EABORTED with the job the end\n");
    close_rig();
}

static void jobs_of_communicators_are_counted_with_the_requested_ones(void **state)
{
    (void)state;
    open_rig();
    assert_int_equal(by_jobs_groups(&rig.daemon), 0);
    run(3);
    assert_int_equal(by_jobs_groups(&rig.daemon), 0);
    create((struct by_job_spec){.job = 1, .is_group = true}, "a");
    assert_int_equal(by_jobs_groups(&rig.daemon), 1);
    create((struct by_job_spec){.job = 2, .is_group = true}, "b");
    create((struct by_job_spec){.job = 4}, "c");
    end(1, "d");
    assert_int_equal(by_jobs_groups(&rig.daemon), 2);
    planned(0, "");
    pushed(0, "");
    assert_int_equal(by_jobs_groups(&rig.daemon), 2);
    by_jobs_step(&rig.daemon);
    serve(3); /* 2 and 4 run, and 1 has ended */
    assert_int_equal(by_jobs_groups(&rig.daemon), 1);
    run(1);
    create((struct by_job_spec){.job = 5}, "e");
    create((struct by_job_spec){.job = 6}, "f");
    create((struct by_job_spec){.job = 7, .is_group = true}, "g"); /* behind another one */
    assert_int_equal(by_jobs_groups(&rig.daemon), 2);
    close_rig();
}

static void a_job_that_is_not_listed_is_not_removed(void **state)
{
    struct by_job other = {.spec = {.job = 3}, .gen_last = 8};

    (void)state;
    open_rig();
    run(3);
    by_jobs_remove(&rig.daemon, &other);
    assert_int_equal(rig.daemon.job_count, 1);
    assert_int_equal(rig.daemon.gen_seen[3], 0);
    close_rig();
}

static void a_switch_with_a_wrong_table_gets_the_right_one_again(void **state)
{
    struct by_daemon_switch devices[2] = {{.name = "x0"}, {.name = "x1"}};

    (void)state;
    open_rig();
    rig.daemon.switches = devices;
    rig.daemon.switch_count = 2;
    for (unsigned i = 0; i < 2; i++) {
        devices[i].state = BY_SWITCH_UP;
        devices[i].stray_beats = 2; /* an answer from before the push may still arrive */
        devices[i].hello.table_hash = 0x12;
        devices[i].image.hash = 0x34;
    }
    by_jobs_step(&rig.daemon);
    record_expect("");
    devices[1].stray_beats = 3;
    devices[1].state = BY_SWITCH_DOWN;
    by_jobs_step(&rig.daemon);
    record_expect("");
    devices[1].state = BY_SWITCH_UP;
    devices[1].hello.table_hash = 0x34; /* the push brought it, and no answer has shown it yet */
    by_jobs_step(&rig.daemon);
    record_expect("");
    devices[1].hello.table_hash = 0x12;
    by_jobs_step(&rig.daemon);
    record_expect(
        "said: switch x1 has table 0000000000000012 instead of 0000000000000034: pushing the right one "
        "again\nkeep bad: switch x1 has a wrong table: pushing the right one again\nplan\n");
    assert_true(devices[1].stray_beats == 0 && devices[0].stray_beats == 2);
    planned(0, "");
    record_expect("push\n");
    pushed(0, "");
    record_expect("adopt\n");
    assert_null(rig.daemon.change);
    devices[0].stray_beats = 3;
    by_jobs_step(&rig.daemon);
    record_clear();
    planned(BY_EIO, "no images");
    record_expect("said: cannot restore tables: no images\n");
    assert_null(rig.daemon.change);
    devices[0].stray_beats = 3;
    by_jobs_step(&rig.daemon);
    planned(0, "");
    record_clear();
    pushed(BY_EIO, "x0 does not answer");
    record_expect("said: cannot restore tables: x0 does not answer\n");
    assert_null(rig.daemon.change);
    devices[0].stray_beats = 3;
    create((struct by_job_spec){.job = 1}, "a"); /* requests come first, and bring it as well */
    record_expect("touch 1, generation 1\nplan\n");
    close_rig();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_job_runs_when_its_tables_are_on_the_switches),
        cmocka_unit_test(a_job_that_cannot_be_made_is_gone_and_its_generation_is_used_up),
        cmocka_unit_test(a_job_has_ended_when_no_switch_has_its_tables),
        cmocka_unit_test(a_job_whose_end_fails_goes_on_as_it_was),
        cmocka_unit_test(requests_are_served_one_after_another),
        cmocka_unit_test(what_cannot_be_served_is_refused_with_the_remedy),
        cmocka_unit_test(the_queue_has_a_limit),
        cmocka_unit_test(a_request_without_a_number_gets_the_lowest_free_one),
        cmocka_unit_test(requests_that_give_way_to_a_recovery_are_the_next),
        cmocka_unit_test(jobs_of_communicators_are_counted_with_the_requested_ones),
        cmocka_unit_test(a_job_that_is_not_listed_is_not_removed),
        cmocka_unit_test(a_switch_with_a_wrong_table_gets_the_right_one_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
