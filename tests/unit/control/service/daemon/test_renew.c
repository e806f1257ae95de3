/* Renewal of keys and jobs of communicators at a tick, with recovery and the queue of jobs replaced
 * by records of what was requested. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "control/base/alloc.h"
#include "control/service/daemon/groups.h"
#include "control/service/daemon/recovery.h"
#include "control/service/daemon/renew.h"
#include "offload/base/errors.h"
#include "offload/wire/seal.h"
#include "offload/wire/types.h"
#include "tests/unit/control/tables/bench.h"

static struct {
    unsigned renewals, creations, ends;
    uint16_t job;
    char why[400];
    struct by_job_spec spec; /* of the last creation */
    uint32_t groups;         /* that exist */
    by_jobs_reply_fn *ended; /* of the last end */
    void *context;
} asked;

void by_recovery_renew(struct by_daemon *daemon, uint16_t job, const char *why)
{
    (void)daemon;
    asked.renewals++;
    asked.job = job;
    snprintf(asked.why, sizeof(asked.why), "%s", why);
}

struct by_job *by_jobs_find(struct by_daemon *daemon, uint16_t job)
{
    for (uint32_t i = 0; i < daemon->job_count; i++)
        if (daemon->jobs[i]->spec.job == job)
            return daemon->jobs[i];
    return NULL;
}

uint32_t by_jobs_groups(const struct by_daemon *daemon)
{
    (void)daemon;
    return asked.groups;
}

void by_jobs_create(struct by_daemon *daemon, struct by_job_spec *spec, by_jobs_reply_fn *reply,
                    void *context)
{
    (void)daemon;
    (void)reply;
    (void)context;
    asked.creations++;
    asked.spec = *spec;
}

void by_jobs_end(struct by_daemon *daemon, uint16_t job, by_jobs_reply_fn *reply, void *context)
{
    (void)daemon;
    asked.ends++;
    asked.job = job;
    asked.ended = reply;
    asked.context = context;
}

enum { JOBS = 3, SWITCHES = 2, RANKS = 10 };

struct rig {
    struct by_daemon daemon;
    struct by_job jobs[JOBS];
    struct by_job_tables tables[JOBS];
    struct by_daemon_switch *switches;
};

/* Jobs 1 to 3 that run in generation 5, 10 hosts and 2 switches. */
static struct rig *rig_open(void)
{
    struct rig *rig = by_alloc(1, sizeof(*rig));
    struct by_daemon *daemon = &rig->daemon;

    memset(&asked, 0, sizeof(asked));
    daemon->topology =
        bench_topology("h0 h1 h2 h3 h4 h5 h6 h7 h8 h9 sw0*",
                       "h0-sw0 h1-sw0 h2-sw0 h3-sw0 h4-sw0 h5-sw0 h6-sw0 h7-sw0 h8-sw0 h9-sw0");
    daemon->options.lower.cover = BY_COVER_HEADER;
    daemon->options.renew_after = 1000;
    daemon->options.communicators = 4;
    daemon->now_ms = 50000;
    daemon->switch_count = SWITCHES;
    daemon->switches = rig->switches = by_alloc(SWITCHES, sizeof(*rig->switches));
    rig->switches[0].name = "leaf0";
    rig->switches[1].name = "leaf1";
    for (uint16_t i = 0; i < (uint16_t)JOBS; i++) {
        rig->jobs[i].spec.job = i + 1;
        rig->jobs[i].state = BY_JOB_RUNNING;
        rig->jobs[i].tables = &rig->tables[i];
        rig->tables[i].gen = 5;
        daemon->jobs[daemon->job_count++] = &rig->jobs[i];
    }
    return rig;
}

static void rig_close(struct rig *rig)
{
    for (unsigned i = 0; i < JOBS; i++)
        free(rig->jobs[i].renew_from);
    by_topology_free(rig->daemon.topology);
    free(rig->switches);
    free(rig);
}

/* Ticks, after which `job` (0: none) has been renewed. */
static void tick(struct rig *rig, uint16_t job)
{
    asked.renewals = 0;
    by_renew_tick(&rig->daemon);
    assert_int_equal(asked.renewals, job != 0);
    if (job != 0)
        assert_int_equal(asked.job, job);
}

static void one_job_alone(struct rig *rig)
{
    rig->jobs[0].state = BY_JOB_RECOVERING;
    rig->jobs[2].tables = NULL;
}

static void keys_are_renewed_once_a_switch_has_counted_enough(void **state)
{
    struct rig *rig = rig_open();

    (void)state;
    one_job_alone(rig);
    tick(rig, 0);
    rig->switches[1].chunks = 999;
    tick(rig, 0);
    rig->switches[1].chunks = 1000;
    tick(rig, 2);
    assert_string_equal(asked.why,
                        "1000 chunks have passed switch leaf1 in generation 5: its keys are renewed");
    tick(rig, 2); /* until its generation is another one */
    rig->tables[1].gen = 6;
    tick(rig, 0);
    rig->switches[1].chunks = 1999;
    tick(rig, 0);
    rig->switches[0].chunks = 1005;
    tick(rig, 2);
    assert_string_equal(asked.why,
                        "1005 chunks have passed switch leaf0 in generation 6: its keys are renewed");
    rig_close(rig);
}

static void each_running_job_with_tables_is_renewed(void **state)
{
    struct rig *rig = rig_open();

    (void)state;
    by_renew_tick(&rig->daemon);
    rig->switches[0].chunks = 5000;
    by_renew_tick(&rig->daemon);
    assert_int_equal(asked.renewals, JOBS);
    rig->daemon.options.lower.cover = BY_COVER_NONE; /* jobs have no keys */
    tick(rig, 0);
    rig_close(rig);
}

/* Chunks from before the start of the daemon may have been of the present generation. */
static void what_a_switch_counted_before_the_start_is_of_the_first_generation(void **state)
{
    struct rig *rig = rig_open();

    (void)state;
    one_job_alone(rig);
    rig->switches[0].chunks = 1000;
    tick(rig, 2);
    rig->tables[1].gen = 6;
    tick(rig, 0); /* the start of this one is known */
    rig->switches[0].chunks = 1999;
    tick(rig, 0);
    rig_close(rig);
}

static void a_switch_that_restarts_counts_from_zero(void **state)
{
    struct rig *rig = rig_open();

    (void)state;
    one_job_alone(rig);
    tick(rig, 0);
    rig->switches[0].chunks = 900;
    rig->tables[1].gen = 6;
    tick(rig, 0);
    rig->switches[0].chunks = 899;
    tick(rig, 0);
    rig->switches[0].chunks = 999;
    tick(rig, 0);
    rig->switches[0].chunks = 1000;
    tick(rig, 2);
    rig_close(rig);
}

/* ---- jobs of communicators ---- */

static struct {
    unsigned count;
    int error;
    char text[400];
} answer;

static void on_answer(struct by_daemon *daemon, void *context, int error, const struct by_job *job,
                      const char *text)
{
    (void)daemon;
    assert_ptr_equal(context, &answer);
    assert_null(job);
    answer.count++;
    answer.error = error;
    snprintf(answer.text, sizeof(answer.text), "%s", text);
}

/* Node `node` requests a job for a set of ranks of `parent`. Refused with `text`, or NULL. */
static void create(struct rig *rig, uint16_t parent, uint32_t node, const char *ranks, uint32_t bytes,
                   int error, const char *text)
{
    unsigned creations = asked.creations;

    answer.count = 0;
    by_groups_create(&rig->daemon, parent, node, (const uint8_t *)ranks, bytes, on_answer, &answer);
    assert_int_equal(asked.creations, creations + (error == 0));
    assert_int_equal(answer.count, error != 0);
    if (error == 0)
        return;
    assert_int_equal(answer.error, error);
    assert_string_equal(answer.text, text);
}

static void a_communicator_gets_a_job_for_its_hosts(void **state)
{
    struct rig *rig = rig_open();
    bool some[RANKS + 1] = {false, true, false, true, true, true, true, true, true, true, false};

    (void)state;
    create(rig, 1, 9, "\x03\x02", 2, 0, NULL); /* ranks 0, 1 and 9 */
    assert_true(asked.spec.is_group);
    assert_int_equal(asked.spec.job, 0);
    assert_int_equal(asked.spec.want_count, 1);
    assert_int_equal(asked.spec.wants[0].collective, BY_COLLECTIVE_ALLREDUCE);
    assert_int_equal(asked.spec.wants[0].root, -1);
    assert_int_equal(asked.spec.share.num, 0);
    assert_int_equal(asked.spec.share.den, 1);
    assert_string_equal(asked.spec.name, "communicator of job 1");
    for (uint32_t n = 0; n <= RANKS; n++)
        assert_int_equal(asked.spec.member[n], n <= 1 || n == 9);
    free(asked.spec.member);
    rig->jobs[1].spec.member = some; /* its ranks 0 and 1 are h1 and h3 */
    create(rig, 2, 3, "\x03", 1, 0, NULL);
    for (uint32_t n = 0; n <= RANKS; n++)
        assert_int_equal(asked.spec.member[n], n == 1 || n == 3);
    free(asked.spec.member);
    rig_close(rig);
}

static void communicators_that_cannot_be_are_refused(void **state)
{
    struct rig *rig = rig_open();

    (void)state;
    create(rig, 1, 0, "\x01", 1, BY_EINVAL, "a communicator has 1 hosts; a job requires at least 2");
    create(rig, 1, 0, "", 0, BY_EINVAL, "a communicator has 0 hosts; a job requires at least 2");
    create(rig, 1, 0, "\x03\x04", 2, BY_EINVAL, "a communicator has rank 10 of job 1, which has 10 ranks");
    create(rig, 1, 0, "\x03\x80", 2, BY_EINVAL, "a communicator has rank 15 of job 1, which has 10 ranks");
    create(rig, 1, 2, "\x03", 1, BY_EPERM, "h2 requests a job for a communicator without itself");
    create(rig, 9, 0, "\x03", 1, BY_ENOENT,
           "banyand has no job 9; create the job of the program with banyan job create");
    asked.groups = 4;
    create(rig, 1, 0, "\x03", 1, BY_ELIMIT,
           "4 jobs of communicators exist, the limit of banyand: free communicators, or raise "
           "--communicators");
    asked.groups = 3;
    create(rig, 1, 0, "\x03", 1, 0, NULL);
    free(asked.spec.member);
    rig->daemon.options.communicators = 0;
    create(rig, 1, 0, "\x03", 1, BY_EPERM,
           "banyand was started with --communicators 0: hosts create no jobs");
    rig_close(rig);
}

/* A tick `later_ms` later, after which `job` (0: none) has been ended. */
static void groups_tick(struct rig *rig, uint64_t later_ms, uint16_t job)
{
    asked.ends = 0;
    rig->daemon.now_ms += later_ms;
    by_groups_tick(&rig->daemon);
    assert_int_equal(asked.ends, job != 0);
    if (job != 0)
        assert_int_equal(asked.job, job);
}

static void a_job_without_hosts_ends_after_a_while(void **state)
{
    struct rig *rig = rig_open();

    (void)state;
    rig->jobs[1].spec.is_group = true;
    rig->jobs[1].is_used = true;
    groups_tick(rig, 0, 0);
    rig->jobs[1].is_used = false;
    groups_tick(rig, 10 * BY_GROUPS_LONE_MS, 0); /* the first tick without one */
    groups_tick(rig, BY_GROUPS_LONE_MS - 1, 0);
    rig->jobs[1].is_used = true; /* a host came back in time */
    groups_tick(rig, 1, 0);
    rig->jobs[1].is_used = false;
    groups_tick(rig, BY_GROUPS_LONE_MS, 0);
    groups_tick(rig, BY_GROUPS_LONE_MS, 2);
    groups_tick(rig, BY_GROUPS_LONE_MS, 0); /* its end is under way */
    asked.ended(&rig->daemon, asked.context, BY_EIO, NULL, "a switch does not answer");
    groups_tick(rig, BY_GROUPS_LONE_MS, 0);
    groups_tick(rig, BY_GROUPS_LONE_MS, 2); /* again */
    asked.ended(&rig->daemon, asked.context, 0, NULL, NULL);
    groups_tick(rig, BY_GROUPS_LONE_MS, 0);
    rig_close(rig);
}

static void a_job_that_no_host_has_used_yet_waits_longer(void **state)
{
    struct rig *rig = rig_open();

    (void)state;
    rig->jobs[2].spec.is_group = true;
    groups_tick(rig, 0, 0);
    groups_tick(rig, BY_GROUPS_UNSEEN_MS - 1, 0);
    groups_tick(rig, 1, 3);
    rig_close(rig);
}

static void a_job_that_no_host_has_used_yet_ends_if_another_one_is_refused(void **state)
{
    (void)state;
    for (uint16_t i = 0; i < (uint16_t)JOBS; i++) {
        struct rig *rig = rig_open();

        rig->jobs[i].spec.is_group = true;
        groups_tick(rig, 0, 0);
        groups_tick(rig, BY_GROUPS_SPARE_MS - 1, 0);
        by_groups_refused(&rig->daemon);
        groups_tick(rig, 0, 0); /* its hosts may still connect again */
        groups_tick(rig, 1, 0);
        by_groups_refused(&rig->daemon);
        groups_tick(rig, 0, i + 1);
        rig_close(rig);
    }
}

static void other_jobs_and_states_are_left_alone(void **state)
{
    static const enum by_job_state states[] = {BY_JOB_STARTING, BY_JOB_RECOVERING, BY_JOB_ENDING};
    struct rig *rig = rig_open();

    (void)state;
    groups_tick(rig, 0, 0);
    groups_tick(rig, 10 * BY_GROUPS_UNSEEN_MS, 0); /* no job of a communicator */
    by_groups_left(&rig->daemon, 1);
    by_groups_left(&rig->daemon, 77);
    assert_int_equal(asked.ends, 0);
    rig->jobs[0].spec.is_group = true;
    for (unsigned i = 0; i < 3; i++) {
        rig->jobs[0].state = states[i];
        by_groups_left(&rig->daemon, 1);
        assert_int_equal(asked.ends, 0);
    }
    rig->jobs[0].state = BY_JOB_FAILED;
    by_groups_left(&rig->daemon, 1);
    assert_int_equal(asked.ends, 1);
    assert_int_equal(asked.job, 1);
    by_groups_left(&rig->daemon, 1); /* its end is under way */
    assert_int_equal(asked.ends, 1);
    rig_close(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_are_renewed_once_a_switch_has_counted_enough),
        cmocka_unit_test(each_running_job_with_tables_is_renewed),
        cmocka_unit_test(what_a_switch_counted_before_the_start_is_of_the_first_generation),
        cmocka_unit_test(a_switch_that_restarts_counts_from_zero),
        cmocka_unit_test(a_communicator_gets_a_job_for_its_hosts),
        cmocka_unit_test(communicators_that_cannot_be_are_refused),
        cmocka_unit_test(a_job_without_hosts_ends_after_a_while),
        cmocka_unit_test(a_job_that_no_host_has_used_yet_waits_longer),
        cmocka_unit_test(a_job_that_no_host_has_used_yet_ends_if_another_one_is_refused),
        cmocka_unit_test(other_jobs_and_states_are_left_alone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
