/* Standbys in changes: how many are made and admitted, which images they are in, and when they give
 * way to jobs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "offload/base/errors.h"
#include "tests/unit/control/service/daemon/record.h"
#include "tests/unit/control/service/daemon/steps.h"

/* Plans a change that gives job 2, in generation 20, standbys from 41 on. */
static struct by_change *stand(uint32_t count)
{
    struct by_change *change = by_change_new(&steps.daemon);

    by_change_stand(change, &steps.jobs[0], 41, count);
    by_change_plan(&steps.daemon, change, steps_planned);
    steps_work();
    return change;
}

/* Job 2 has standbys 41 and 42. */
static void stands(void)
{
    struct by_change *change;

    steps.sets = 2;
    change = stand(2);
    steps_push(change);
    by_change_adopt(&steps.daemon, change);
    by_change_free(change);
    steps.daemon.change = NULL;
    record_clear();
}

static void a_job_gets_as_many_standbys_as_there_are_sets(void **state)
{
    struct by_change *change;

    (void)state;
    steps_open();
    steps.sets = 2;
    change = stand(4);
    record_expect("sets for 2 as 20\n"
                  "set 41 of 2 after 20, 4 left\n"
                  "admit 2 as 41 beside 2 as 20 7 as 22\n"
                  "set 42 of 2 after 41, 3 left\n"
                  "admit 2 as 42 beside 2 as 20 2 as 41 7 as 22\n"
                  "set 43 of 2 after 42, 2 left\n"
                  "sets end\n"
                  "images of 2 as 20 window 64 share 0 2 as 41 window 16 share 0 2 as 42 window 16 share 0"
                  " 7 as 22 window 64 share 2\n"
                  "planned\n");
    assert_true(change->jobs[0].part_count == 5 && change->jobs[0].covered_count == 2);
    steps_push(change);
    by_change_adopt(&steps.daemon, change);
    assert_true(steps.jobs[0].standby_tells && !steps.jobs[0].standby_ends);
    assert_true(steps.jobs[0].tables->gen == 20 && steps.jobs[0].tables->standby_count == 2);
    steps_close(change);
}

static void standbys_are_fewer_where_slots_are_few(void **state)
{
    struct by_change *change;

    (void)state;
    steps_open();
    steps.sets = 3;
    steps.fits = 8;
    steps.slots_error = BY_ELIMIT;
    change = stand(1);
    record_expect("sets for 2 as 20\n"
                  "set 41 of 2 after 20, 1 left\n"
                  "admit 2 as 41 beside 2 as 20 7 as 22\n"
                  "lower 2 window 8\n"
                  "admit 2 as 41 beside 2 as 20 7 as 22\n"
                  "sets end\n"
                  "images of 2 as 20 window 64 share 0 2 as 41 window 8 share 0 7 as 22 window 64 share 2\n"
                  "planned\n");
    by_change_free(change);
    steps.fits = 4;
    change = stand(3);
    record_expect("sets for 2 as 20\n"
                  "set 41 of 2 after 20, 3 left\n"
                  "admit 2 as 41 beside 2 as 20 7 as 22\n"
                  "sets end\n"
                  "images of 2 as 20 window 64 share 0 7 as 22 window 64 share 2\n"
                  "planned\n");
    assert_true(change->jobs[0].standby_count == 0 && change->error == 0);
    assert_string_equal(change->jobs[0].problem.text, "too few slots");
    steps_close(change);
}

static void they_do_not_hold_up_what_is_urgent(void **state)
{
    struct by_change *change;

    (void)state;
    steps_open();
    steps.sets = 1;
    steps.sets_error = BY_EABORTED;
    change = stand(2);
    assert_int_equal(change->error, BY_EABORTED);
    by_change_free(change);
    steps.find_error = BY_EABORTED;
    record_clear();
    change = stand(2);
    record_expect("sets for 2 as 20\nsets end\nplanned EABORTED\n");
    by_change_free(change);
    /* Any other error ends the list only. */
    steps.find_error = 0;
    steps.sets_error = BY_EUNSUPPORTED;
    change = stand(2);
    assert_true(change->error == 0 && change->jobs[0].standby_count == 1);
    steps_close(change);
}

static void standbys_stay_as_long_as_their_tables(void **state)
{
    struct by_change *change;

    (void)state;
    steps_open();
    stands();
    change = by_change_new(&steps.daemon);
    by_change_touch(change, &steps.jobs[2], false);
    by_change_plan(&steps.daemon, change, steps_planned);
    steps_work();
    record_expect("plan 7 as 33 window 64\nlower 7 window 64\n"
                  "admit 7 as 33 beside 2 as 20 2 as 41 2 as 42\n"
                  "images of 2 as 20 window 64 share 0 2 as 41 window 16 share 0 2 as 42 window 16 share 0"
                  " 7 as 33 window 64 share 2\n"
                  "planned\n");
    steps_push(change);
    steps.jobs[0].standby_tells = false;
    by_change_adopt(&steps.daemon, change);
    assert_false(steps.jobs[0].standby_tells);
    by_change_free(change);
    steps.daemon.change = NULL;
    record_clear();
    change = steps_plan(false);
    record_expect("plan 2 as 31 window 64\nlower 2 window 64\nadmit 2 as 31 beside 7 as 33\n"
                  "images of 2 as 31 window 64 share 0 7 as 33 window 64 share 2\nplanned\n");
    steps_push(change);
    by_change_adopt(&steps.daemon, change);
    assert_false(steps.jobs[0].standby_tells);
    assert_int_equal(steps.jobs[0].tables->standby_count, 0);
    steps_close(change);
}

static void standbys_give_way_to_a_job_that_needs_their_slots(void **state)
{
    struct by_change *change;

    (void)state;
    steps_open();
    stands();
    steps.jobs[0].standby_gen = 20;
    steps.fits = 32;
    steps.slots_error = BY_ELIMIT;
    change = by_change_new(&steps.daemon);
    by_change_touch(change, &steps.jobs[2], false);
    by_change_plan(&steps.daemon, change, steps_planned);
    steps_work();
    record_expect("plan 7 as 33 window 64\nlower 7 window 64\n"
                  "admit 7 as 33 beside 2 as 20 2 as 41 2 as 42\n"
                  "admit 7 as 33 beside 2 as 20\n"
                  "lower 7 window 32\n"
                  "admit 7 as 33 beside 2 as 20\n"
                  "images of 2 as 20 window 64 share 0 7 as 33 window 32 share 2\n"
                  "planned\n");
    steps_push(change);
    by_change_adopt(&steps.daemon, change);
    assert_true(steps.jobs[0].standby_tells && steps.jobs[0].standby_ends);
    assert_true(steps.jobs[0].tables->standby_count == 0 && steps.jobs[0].standby_gen == 0);
    steps_close(change);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_job_gets_as_many_standbys_as_there_are_sets),
        cmocka_unit_test(standbys_are_fewer_where_slots_are_few),
        cmocka_unit_test(they_do_not_hold_up_what_is_urgent),
        cmocka_unit_test(standbys_stay_as_long_as_their_tables),
        cmocka_unit_test(standbys_give_way_to_a_job_that_needs_their_slots),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
