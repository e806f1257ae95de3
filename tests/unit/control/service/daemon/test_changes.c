/* The steps of a change: what is planned with which window, which switches get tables, and what is
 * recorded of a push when. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cmocka.h>

#include "control/base/alloc.h"
#include "offload/base/errors.h"
#include "offload/table/image.h"
#include "tests/unit/control/service/daemon/record.h"
#include "tests/unit/control/service/daemon/steps.h"

static void a_change_has_the_jobs_with_tables_and_all_that_is_lost(void **state)
{
    struct by_change *change;

    (void)state;
    steps_open();
    steps.daemon.loss.nodes[X0] = steps.daemon.loss.links[H0_X0] = true;
    steps.held_node = steps.held_link = true;
    change = by_change_new(&steps.daemon);
    assert_int_equal(change->job_count, 2);
    assert_true(change->jobs[0].job == &steps.jobs[0] && change->jobs[1].job == &steps.jobs[2]);
    assert_false(change->jobs[0].anew || change->jobs[1].anew);
    assert_true(change->loss.nodes[X0] && !change->loss.nodes[X1] && change->loss.nodes[X2]);
    assert_true(change->loss.links[H0_X0] && !change->loss.links[X0_X1] && change->loss.links[X1_X2]);
    assert_false(steps.daemon.loss.nodes[X2] || steps.daemon.loss.links[X1_X2]); /* those are of the daemon */
    by_change_free(change);
    steps.held_first = true;
    change = by_change_new(&steps.daemon);
    assert_true(change->loss.nodes[0] && change->loss.links[0] && !change->loss.nodes[X2]);
    by_change_free(change);
    steps.daemon.recover = NULL; /* it does not lead yet */
    change = by_change_new(&steps.daemon);
    assert_true(change->loss.nodes[X0] && !change->loss.nodes[X2]);
    steps_close(change);
}

static void jobs_are_in_order_and_get_the_next_generation(void **state)
{
    struct by_job more[3] = {{.spec.job = 1, .gen_last = UINT16_MAX}, {.spec.job = 6}, {.spec.job = 9}};
    static const uint16_t numbers[] = {1, 2, 6, 7, 9};
    struct by_change *change;

    (void)state;
    steps_open();
    change = by_change_new(&steps.daemon);
    for (unsigned i = 0; i < 3; i++)
        by_change_touch(change, &more[2 - i], i == 1);
    by_change_touch(change, &steps.jobs[2], true);
    assert_int_equal(change->job_count, 5);
    for (uint32_t i = 0; i < 5; i++)
        assert_int_equal(change->jobs[i].job->spec.job, numbers[i]);
    assert_true(change->jobs[0].gen == 1 && more[0].gen_last == 1 && !change->jobs[0].repair);
    assert_true(!change->jobs[1].anew && change->jobs[2].anew && change->jobs[2].repair);
    assert_true(change->jobs[3].anew && change->jobs[3].repair && change->jobs[3].gen == 33 &&
                steps.jobs[2].gen_last == 33);
    assert_ptr_equal(by_change_find(change, 9), &change->jobs[4]);
    assert_null(by_change_find(change, 5));
    by_change_leave(change, &more[1]);
    assert_true(change->ended == 6 && change->job_count == 4);
    assert_true(change->jobs[2].job->spec.job == 7 && change->jobs[3].job->spec.job == 9);
    by_change_leave(change, &steps.jobs[1]); /* it had failed, and is in no change */
    assert_true(change->ended == 5 && change->job_count == 4);
    steps_close(change);
}

static void a_change_has_room_for_all_jobs(void **state)
{
    struct by_job *jobs = by_alloc(BY_DAEMON_JOBS_MAX, sizeof(*jobs));
    struct by_change *change;

    (void)state;
    steps_open();
    steps.daemon.job_count = 0;
    change = by_change_new(&steps.daemon);
    for (uint32_t i = 0; i < BY_DAEMON_JOBS_MAX; i++) {
        jobs[i].spec.job = (uint16_t)(i + 1);
        by_change_touch(change, &jobs[i], false);
    }
    assert_int_equal(change->job_count, BY_DAEMON_JOBS_MAX);
    by_change_leave(change, &jobs[0]);
    assert_int_equal(change->job_count, BY_DAEMON_JOBS_MAX - 1);
    for (uint32_t i = 0; i < change->job_count; i++)
        assert_ptr_equal(change->jobs[i].job, &jobs[i + 1]);
    steps_close(change);
    free(jobs);
}

static void a_job_is_planned_and_admitted_beside_the_others(void **state)
{
    struct by_change *change;

    (void)state;
    steps_open();
    change = steps_plan(false);
    record_expect("plan 2 as 31 window 64\nlower 2 window 64\nadmit 2 as 31 beside 7 as 22\n"
                  "images of 2 as 31 window 64 share 0 7 as 22 window 64 share 2\nplanned\n");
    assert_true(change->recorded);
    assert_int_equal(change->jobs[0].tables->secret[15], 0x5a);
    for (uint32_t n = 0; n < NODES; n++) {
        assert_int_equal(change->images[n].bytes != NULL, n >= X0);
        if (n >= X0)
            assert_true(change->images[n].hash == by_image_hash(change->images[n].bytes, 1));
    }
    by_change_free(change);
    steps.reserve_error = BY_EIO; /* then hosts get the tables after the push */
    steps.jobs[0].ahead = (struct by_ahead_plans *)&steps;
    change = steps_plan(true);
    record_expect(
        "plan 2 as 32 window 64 from 20 in advance\nlower 2 window 64\nadmit 2 as 32 beside 7 as 22\n"
        "images of 2 as 32 window 64 share 0 7 as 22 window 64 share 2\nplanned\n");
    assert_true(!change->recorded && change->error == 0);
    by_change_free(change);
    change = steps_plan(false); /* a plan for a loss is none for the whole fabric */
    assert_non_null(strstr(recorded, "plan 2 as 33 window 64\n"));
    steps_close(change);
}

static void the_window_is_that_of_before_or_as_asked_or_the_budget_of_a_communicator(void **state)
{
    struct by_change *change;

    (void)state;
    steps_open();
    by_job_tables_free(steps.jobs[0].tables);
    steps.jobs[0].tables = NULL;
    steps.jobs[0].spec.window = 128;
    change = steps_plan(false);
    assert_non_null(strstr(recorded, "plan 2 as 31 window 128\n"));
    assert_null(strstr(recorded, "budget"));
    by_change_free(change);
    record_clear();
    steps.jobs[0].spec.is_group = true;
    steps.budget = 32;
    change = steps_plan(false);
    assert_non_null(strstr(recorded, "budget beside 7\nplan 2 as 32 window 32\n"));
    by_change_free(change);
    record_clear();
    steps.jobs[0].tables = steps_tables(32); /* later ones keep it */
    change = steps_plan(false);
    assert_non_null(strstr(recorded, "plan 2 as 33 window 64\n"));
    assert_null(strstr(recorded, "budget"));
    steps_close(change);
}

/* The window that a user asked for is not made smaller. */
static void a_window_that_does_not_fit_shrinks_unless_it_was_asked_for(void **state)
{
    static const struct {
        bool has_tables, is_group, shrinks;
        uint32_t window, fits;
    } cases[] = {{true, false, true, 16, 16}, {false, false, true, 0, 16}, {false, false, false, 64, 16},
                 {true, false, true, 64, 1},  {true, false, false, 64, 0}, {true, true, true, 0, 8},
                 {true, true, false, 0, 7}};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct by_change *change;

        steps_open();
        if (!cases[i].has_tables) {
            by_job_tables_free(steps.jobs[0].tables);
            steps.jobs[0].tables = NULL;
        }
        steps.jobs[0].spec.window = cases[i].window;
        steps.jobs[0].spec.is_group = cases[i].is_group;
        steps.slots_error = BY_ELIMIT;
        steps.fits = cases[i].fits;
        change = steps_plan(false);
        if ((change->jobs[0].error == 0) != cases[i].shrinks)
            fail_msg("case %zu: %s", i, change->jobs[0].problem.text);
        assert_int_equal(change->jobs[0].tables != NULL, cases[i].shrinks);
        if (cases[i].shrinks)
            assert_int_equal(change->jobs[0].tables->window, cases[i].fits);
        steps_close(change);
    }
}

static void a_smaller_window_has_a_note_with_the_cause(void **state)
{
    struct by_change *change;

    (void)state;
    steps_open();
    steps.slots_error = BY_ELIMIT;
    steps.fits = 16;
    for (unsigned i = 0; i < 3; i++)
        steps.switches[i].hello.slot_count = i == 1 ? 191 : 192; /* of 3 * 64 */
    change = steps_plan(false);
    assert_string_equal(change->jobs[0].tables->note,
                        "its windows are 16 slots instead of 64, which would require 192 of the 191 slots of "
                        "x1");
    assert_non_null(strstr(recorded, "lower 2 window 64\nadmit 2 as 31 beside 7 as 22\n"
                                     "lower 2 window 16\nadmit 2 as 31 beside 7 as 22\nimages "));
    by_change_free(change);
    steps.switches[1].hello.slot_count = 0; /* its limit is unknown */
    change = steps_plan(false);
    assert_string_equal(change->jobs[0].tables->note,
                        "its windows are 16 slots instead of 64: more do not fit beside the other jobs");
    by_change_free(change);
    steps.switches[0].node = H0; /* a switch is the first node */
    steps.daemon.topology->nodes[H0].compute = false;
    steps.switches[0].hello.slot_count = 191;
    change = steps_plan(false);
    assert_string_equal(change->jobs[0].tables->note,
                        "its windows are 16 slots instead of 64, which would require 192 of the 191 slots of "
                        "h0");
    steps_close(change);
}

static void what_fails_of_one_job_is_its_error_and_it_is_in_no_image(void **state)
{
    static const struct {
        int *error;
        const char *text;
    } cases[] = {{&steps.draw_error, "no random number"},
                 {&steps.plan_error, "no plan"},
                 {&steps.lower_error, "not lowered"},
                 {&steps.fabric_error, "too few ports"},
                 {&steps.share_error, "no share"}};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct by_change *change;

        steps_open();
        *cases[i].error = BY_ELIMIT;
        change = steps_plan(false);
        assert_int_equal(change->jobs[0].error, BY_ELIMIT);
        assert_string_equal(change->jobs[0].problem.text, cases[i].text);
        assert_null(change->jobs[0].tables);
        assert_int_equal(change->error, 0);
        assert_non_null(strstr(recorded, "images of 7 as 22 window 64 share 2\nplanned\n"));
        steps_close(change);
    }
}

static void a_plan_that_gives_way_or_images_that_fail_end_the_change(void **state)
{
    struct by_change *change;

    (void)state;
    steps_open();
    steps.plan_error = BY_EABORTED;
    change = by_change_new(&steps.daemon);
    by_change_touch(change, &steps.jobs[0], false);
    by_change_touch(change, &steps.jobs[2], false);
    by_change_plan(&steps.daemon, change, steps_planned);
    steps_work();
    record_expect("plan 2 as 31 window 64\nplanned EABORTED\n");
    assert_false(change->recorded);
    by_change_free(change);
    steps.plan_error = 0;
    steps.images_error = BY_ELIMIT;
    change = steps_plan(false);
    assert_int_equal(change->error, BY_ELIMIT);
    assert_string_equal(change->problem.text, "no images");
    assert_false(change->recorded);
    by_change_free(change);
    steps.images_error = 0;
    steps.image_error = BY_ENOMEM;
    change = steps_plan(false);
    assert_int_equal(change->error, BY_ENOMEM);
    assert_string_equal(change->problem.text, "no image of x1");
    assert_true(change->images[X0].bytes != NULL && change->images[X2].bytes == NULL);
    assert_false(change->recorded);
    steps_close(change);
}

static void switches_that_are_up_and_have_another_table_get_theirs(void **state)
{
    struct by_change *change;

    (void)state;
    steps_open();
    change = steps_plan(false);
    steps.switches[0].hello.table_hash = change->images[X0].hash; /* it has it already */
    steps.switches[2].state = BY_SWITCH_DOWN;
    steps_push(change);
    record_expect("push with a record to x1\nbegin\npushed\ntell pushed\nfinish done settled\n");
    assert_true(by_change_has_target(change, X1) && !by_change_has_target(change, X0) &&
                !by_change_has_target(change, X2));
    for (uint32_t n = X0; n < NODES; n++)
        assert_true(change->nonces[n] == 40 + n - X0);
    assert_true(steps.switches[1].hello.table_hash == 900 + X1 && steps.switches[2].hello.table_hash == 0);
    assert_true(change->sent == 1000 && change->push_id == steps.clock);
    assert_true(steps.daemon.counts.pushes == 1 && steps.daemon.counts.push_errors == 0);
    steps_close(change);
}

static void a_push_without_switches_is_recorded_alone(void **state)
{
    struct by_change *change;

    (void)state;
    steps_open();
    for (unsigned i = 0; i < 3; i++)
        steps.switches[i].state = BY_SWITCH_DOWN;
    steps.may_follow = true;
    change = steps_plan(true);
    steps_push(change);
    record_expect("begin\npushed\ntell pushed\nfinish done settled\n");
    steps.begin_error = BY_EIO;
    steps_push(change);
    record_expect("begin\npushed EIO\ntell EIO\n");
    assert_string_equal(change->problem.text, "no store");
    assert_true(steps.daemon.counts.pushes == 2 && steps.daemon.counts.push_errors == 1);
    steps_close(change);
}

/* Its switches stay as it left them until the next one is recorded. */
static void a_push_after_one_that_is_open_is_recorded_first(void **state)
{
    struct by_change *change;

    (void)state;
    steps_open();
    steps.is_settled = false;
    steps.may_follow = true;
    change = steps_plan(true);
    steps_push(change);
    record_expect("begin\npush to x0 x1 x2\npushed\ntell pushed\nfinish done settled\n");
    steps.begin_error = BY_EIO;
    for (unsigned i = 0; i < 3; i++)
        steps.switches[i].hello.table_hash = 1;
    steps_push(change);
    record_expect("begin\npushed EIO\ntell EIO\n"); /* nothing is recorded of its end */
    steps_close(change);
}

/* Hosts freeze then, while switches still validate. */
static void a_record_for_which_hosts_wait_is_reported_at_once(void **state)
{
    struct by_change *change;

    (void)state;
    steps_open();
    steps.reserve_error = BY_EIO;
    change = steps_plan(true);
    steps.begin_error = BY_EIO;
    steps_push(change);
    record_expect("push with a record to x0 x1 x2\nbegin\npushed EIO\ntell EIO\n");
    assert_false(change->recorded);
    steps.begin_error = 0;
    steps.push_error = BY_EIO;
    steps_push(change);
    record_expect("push with a record to x0 x1 x2\nbegin\ntell recorded\nsettle x0 x1 x2\n"
                  "pushed EIO\ntell EIO\nfinish settled\n");
    assert_true(change->recorded);
    steps.push_error = 0;
    steps_push(change);
    record_expect("push with a record to x0 x1 x2\nbegin\npushed\ntell pushed\nfinish done settled\n");
    steps_close(change);
}

static void a_push_that_fails_is_settled(void **state)
{
    static const struct {
        enum by_push_settled settled;
        int settle_error, error;
        const char *told;
    } cases[] = {
        {BY_PUSH_BACK, 0, BY_EIO, "pushed EIO\ntell EIO\nfinish settled\n"},
        {BY_PUSH_FORWARD, 0, 0, "pushed\ntell pushed\nfinish done settled\n"},
        {BY_PUSH_CLEAR, 0, BY_EIO, "pushed EIO\ntell EIO\nfinish settled\n"},
        {BY_PUSH_FORWARD, BY_ESTATE, BY_EIO, "pushed EIO unsettled\ntell EIO\nfinish\n"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct by_change *change;
        char text[300];

        steps_open();
        steps.push_error = BY_EIO;
        steps.settled = cases[i].settled;
        steps.settle_error = cases[i].settle_error;
        change = steps_plan(false);
        steps_push(change);
        snprintf(text, sizeof(text), "push with a record to x0 x1 x2\nbegin\nsettle x0 x1 x2\n%s",
                 cases[i].told);
        record_expect(text);
        assert_true(steps.switches[0].hello.table_hash == (cases[i].error == 0 ? 900 + X0 : 0));
        if (cases[i].error != 0)
            assert_string_equal(change->problem.text, "x1 does not answer");
        steps_close(change);
    }
}

static void a_push_that_is_not_recorded_leaves_no_record(void **state)
{
    struct by_change *change;

    (void)state;
    steps_open();
    steps.begin_error = BY_EIO;
    change = steps_plan(false);
    steps_push(change);
    record_expect("push with a record to x0 x1 x2\nbegin\npushed EIO\ntell EIO\n");
    steps.begin_error = 0;
    steps.skips_record = true; /* no switch validated it */
    steps.push_error = BY_EIO;
    steps_push(change);
    record_expect("push with a record to x0 x1 x2\npushed EIO\ntell EIO\n");
    steps.skips_record = false; /* nor does one after a push that is recorded */
    steps.push_error = 0;
    steps_push(change);
    assert_non_null(strstr(recorded, "finish done settled\n"));
    for (unsigned i = 0; i < 3; i++)
        steps.switches[i].hello.table_hash = 1;
    steps.skips_record = true;
    steps.push_error = BY_EIO;
    steps_push(change);
    record_expect("push with a record to x0 x1 x2\npushed EIO\ntell EIO\n");
    steps_close(change);
}

static void a_repair_is_recorded_after_its_push(void **state)
{
    struct by_change *change;

    (void)state;
    steps_open();
    steps.may_follow = true;
    steps.reserve_error = BY_EIO;
    change = steps_plan(true);
    steps_push(change);
    record_expect("push with a record to x0 x1 x2\nwrite\npushed\ntell pushed\ncommit\n");
    assert_false(change->recorded); /* not durable when hosts could get their tables */
    steps.push_error = BY_EIO;
    for (unsigned i = 0; i < 3; i++)
        steps.switches[i].hello.table_hash = 1;
    steps_push(change);
    record_expect("push with a record to x0 x1 x2\nwrite\nsettle x0 x1 x2\ndiscard\npushed EIO\ntell EIO\n");
    steps.settled = BY_PUSH_FORWARD;
    steps_push(change);
    record_expect("push with a record to x0 x1 x2\nwrite\nsettle x0 x1 x2\npushed\ntell pushed\ncommit\n");
    steps.write_error = BY_EIO;
    for (unsigned i = 0; i < 3; i++)
        steps.switches[i].hello.table_hash = 1;
    steps_push(change);
    record_expect("push with a record to x0 x1 x2\nwrite\npushed EIO\ntell EIO\n");
    steps.may_follow = false;
    steps_push(change);
    assert_non_null(strstr(recorded, "begin\n"));
    assert_true(change->recorded);
    steps_close(change);
}

static void what_was_pushed_becomes_the_tables_of_jobs_and_switches(void **state)
{
    struct by_change *change;

    (void)state;
    steps_open();
    change = steps_plan(false);
    steps_push(change);
    by_change_adopt(&steps.daemon, change);
    assert_true(steps.jobs[0].tables->gen == 31 && steps.jobs[2].tables->gen == 22);
    assert_null(change->jobs[0].tables);
    for (unsigned i = 0; i < 3; i++) {
        assert_true(steps.switches[i].image.size == 1 && steps.switches[i].image.bytes[0] == X0 + i);
        assert_null(change->images[X0 + i].bytes);
    }
    steps_close(change);
}

static void a_job_that_has_no_tables_keeps_its_old_ones(void **state)
{
    struct by_change *change;

    (void)state;
    steps_open();
    steps.plan_error = BY_ENOENT;
    change = steps_plan(false);
    steps_push(change);
    by_change_adopt(&steps.daemon, change);
    assert_int_equal(steps.jobs[0].tables->gen, 20);
    steps_close(change);
}

static void the_times_of_plans_and_pushes_are_summed_up(void **state)
{
    struct by_change *change;

    (void)state;
    steps_open();
    by_change_free(steps_plan(false));
    assert_true(steps.daemon.counts.plan_seconds == 1.5);
    change = steps_plan(false);
    assert_true(steps.daemon.counts.plan_seconds == 3);
    steps_push(change);
    assert_true(steps.daemon.counts.push_seconds == 1.5);
    steps.begin_error = BY_EIO; /* nothing is recorded: its time does not count, nor that of before again */
    for (unsigned i = 0; i < 3; i++)
        steps.switches[i].hello.table_hash = 1;
    steps_push(change);
    assert_true(steps.daemon.counts.push_seconds == 1.5);
    steps.begin_error = 0;
    steps_push(change);
    assert_true(steps.daemon.counts.push_seconds == 3 && steps.daemon.counts.plan_seconds == 3);
    steps_close(change);
}

static void switches_have_the_limits_of_their_last_answer(void **state)
{
    struct by_change *change;

    (void)state;
    steps_open();
    steps.daemon.options.access.keys = "/keys";
    change = by_change_new(&steps.daemon);
    for (uint32_t i = 0; i < 3; i++) {
        const struct by_admit_limits *limits = &change->limits[X0 + i];

        assert_true(limits->ports == 11 + i && limits->slots == 10 + i && limits->entries == 12 + i &&
                    limits->payload_max == 13 + i && limits->shares == 14 + i);
    }
    assert_int_equal(change->limits[H0].slots, 0);
    assert_true(change->access.election_id == 66 && change->lower.mtu == 1500);
    assert_string_equal(change->access.keys, "/keys");
    steps_close(change);
}

static bool is_stopped(const struct by_change *change)
{
    eventfd_t count;

    return eventfd_read(change->stop_fd, &count) == 0;
}

static void a_plan_gives_way_and_a_push_does_not(void **state)
{
    struct by_change *change;

    (void)state;
    steps_open();
    change = by_change_new(&steps.daemon);
    assert_false(is_stopped(change));
    by_change_yield(change);
    assert_true(is_stopped(change) && !is_stopped(change));
    by_change_stop(change); /* stops planning; the next push plans again */
    by_change_plan(&steps.daemon, change, steps_planned);
    steps_work();
    steps_push(change);
    assert_false(is_stopped(change));
    by_change_yield(change);
    assert_false(is_stopped(change));
    by_change_stop(change);
    assert_true(is_stopped(change));
    steps_close(change);
}

static void jobs_of_one_change_are_admitted_one_after_another(void **state)
{
    struct by_change *change;

    (void)state;
    steps_open();
    steps.daemon.loss.links[X1_X2] = true;
    change = by_change_new(&steps.daemon);
    by_change_touch(change, &steps.jobs[0], false);
    by_change_touch(change, &steps.jobs[2], false);
    by_change_plan(&steps.daemon, change, steps_planned);
    steps_work();
    record_expect("plan 2 as 31 window 64\nlower 2 window 64\nadmit 2 as 31 beside\n"
                  "plan 7 as 33 window 64\nlower 7 window 64\nadmit 7 as 33 beside 2 as 31\n"
                  "images of 2 as 31 window 64 share 0 7 as 33 window 64 share 2\nplanned\n");
    steps_close(change);
}

/* Descriptor 0 stands for none, and stays as it is. */
static void without_a_descriptor_a_change_cannot_be_stopped(void **state)
{
    struct by_change *change;
    int kept = dup(STDIN_FILENO), fd = eventfd(5, EFD_CLOEXEC | EFD_NONBLOCK);
    eventfd_t count = 0;

    (void)state;
    assert_true(fd >= 0 && dup2(fd, STDIN_FILENO) == STDIN_FILENO);
    steps_open();
    steps.no_eventfd = true;
    change = steps_plan(false);
    assert_int_equal(change->stop_fd, 0);
    by_change_stop(change);
    steps_push(change);
    record_expect("push with a record to x0 x1 x2\nbegin\npushed\ntell pushed\nfinish done settled\n");
    steps_close(change);
    assert_true(eventfd_read(STDIN_FILENO, &count) == 0 && count == 5);
    dup2(kept, STDIN_FILENO);
    close(kept);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_change_has_the_jobs_with_tables_and_all_that_is_lost),
        cmocka_unit_test(jobs_are_in_order_and_get_the_next_generation),
        cmocka_unit_test(a_change_has_room_for_all_jobs),
        cmocka_unit_test(a_job_is_planned_and_admitted_beside_the_others),
        cmocka_unit_test(the_window_is_that_of_before_or_as_asked_or_the_budget_of_a_communicator),
        cmocka_unit_test(a_window_that_does_not_fit_shrinks_unless_it_was_asked_for),
        cmocka_unit_test(a_smaller_window_has_a_note_with_the_cause),
        cmocka_unit_test(what_fails_of_one_job_is_its_error_and_it_is_in_no_image),
        cmocka_unit_test(a_plan_that_gives_way_or_images_that_fail_end_the_change),
        cmocka_unit_test(switches_that_are_up_and_have_another_table_get_theirs),
        cmocka_unit_test(a_push_without_switches_is_recorded_alone),
        cmocka_unit_test(a_push_after_one_that_is_open_is_recorded_first),
        cmocka_unit_test(a_record_for_which_hosts_wait_is_reported_at_once),
        cmocka_unit_test(a_push_that_fails_is_settled),
        cmocka_unit_test(a_push_that_is_not_recorded_leaves_no_record),
        cmocka_unit_test(a_repair_is_recorded_after_its_push),
        cmocka_unit_test(what_was_pushed_becomes_the_tables_of_jobs_and_switches),
        cmocka_unit_test(a_job_that_has_no_tables_keeps_its_old_ones),
        cmocka_unit_test(the_times_of_plans_and_pushes_are_summed_up),
        cmocka_unit_test(switches_have_the_limits_of_their_last_answer),
        cmocka_unit_test(a_plan_gives_way_and_a_push_does_not),
        cmocka_unit_test(jobs_of_one_change_are_admitted_one_after_another),
        cmocka_unit_test(without_a_descriptor_a_change_cannot_be_stopped),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
