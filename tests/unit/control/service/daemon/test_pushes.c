/* A complete banyand between two switches without packets: faults while a push of recovery is under
 * way, or has failed; and the plan for a fault that was made before it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "control/service/daemon/daemon.h"
#include "offload/base/errors.h"
#include "tests/unit/control/service/daemon/rig.h"
#include "tests/unit/control/tables/bench.h"

/* The next fault occurs while a push that has failed waits to be repeated. */
static void a_fault_after_a_push_that_failed_is_planned_for(void **state)
{
    struct daemon_rig rig;
    struct rig_daemon daemon;

    (void)state;
    rig_open(&rig);
    daemon = rig_start(&rig, (const char *const[]){"--job", "1=allreduce", NULL});
    rig_await(&daemon, "job 1 runs, generation 1");
    rig.fake[0]->refuse_stage = BY_EIO;
    fake_stop(rig.fake[1]);
    rig.fake[1] = fake_start("x1", 4096, 65536);
    rig_await(&daemon, "the tables could not be pushed");
    rig.fake[0]->down[1] = true;
    rig_await(&daemon, "link x0 - x1 is down: planning again");
    rig.fake[0]->down[1] = false;
    rig_await(&daemon, "link x0 - x1 is up");
    rig.fake[0]->refuse_stage = 0;
    rig_await(&daemon, "job 1 is in generation ");
    assert_int_equal(rig_stop(&daemon), 0);
    rig_close(&rig);
}

/* It does not wait for the timeout of the push. */
static void a_push_to_a_switch_that_is_down_is_stopped(void **state)
{
    struct daemon_rig rig;
    struct rig_daemon daemon;

    (void)state;
    rig_open(&rig);
    daemon = rig_start(&rig, (const char *const[]){"--timeout", "60", "--job", "1=allreduce", NULL});
    rig_await(&daemon, "job 1 runs, generation 1");
    fake_stop(rig.fake[0]);
    rig.fake[1]->silent = 1;
    rig.fake[0] = fake_start("x0", 4096, 65536);
    rig_await(&daemon, "switch x1 is down: no answer for ");
    rig.fake[1]->silent = 0;
    rig_await(&daemon, "job 1 is in generation ");
    assert_int_equal(rig_stop(&daemon), 0);
    rig_close(&rig);
}

static void a_plan_that_was_made_in_advance_is_pushed_after_the_failure(void **state)
{
    struct daemon_rig rig;
    struct rig_daemon daemon;

    (void)state;
    rig_open(&rig);
    rig_double(&rig);
    daemon = rig_start(&rig, (const char *const[]){"--job", "1=allreduce", NULL});
    rig_await(&daemon, "job 1: plans for 6 single failures are made"); /* 2 switches, 4 links */
    rig.fake[1]->silent = 1;
    rig_await(&daemon, "switch x1 does not answer: planning again");
    rig_await(&daemon, "job 1: its plan was made in advance");
    rig_await(&daemon, "job 1 is in generation 2");
    rig.fake[1]->silent = 0;
    assert_int_equal(rig_stop(&daemon), 0);
    rig_close(&rig);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_fault_after_a_push_that_failed_is_planned_for),
        cmocka_unit_test(a_push_to_a_switch_that_is_down_is_stopped),
        cmocka_unit_test(a_plan_that_was_made_in_advance_is_pushed_after_the_failure),
    };

    if (strcmp(argv[0], "banyand") == 0)
        return by_daemon_main(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
