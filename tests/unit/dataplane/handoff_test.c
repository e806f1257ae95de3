/* Work that another thread hands to the loop: it runs once, on the loop's thread, or not at all. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "dataplane/handoff.h"

struct handoff_job {
    struct by_handoff *handoff;
    pthread_t ran_on;
    unsigned runs;
    bool served;
};

static void work(void *context)
{
    struct handoff_job *job = context;

    job->runs++;
    job->ran_on = pthread_self();
}

static void *caller(void *context)
{
    struct handoff_job *job = context;

    job->served = by_handoff_call(job->handoff, work, job);
    return NULL;
}

static void work_runs_once_on_the_loops_thread(void **state)
{
    struct by_handoff handoff;
    struct handoff_job job = {.handoff = &handoff};
    pthread_t thread;

    (void)state;
    assert_int_equal(by_handoff_open(&handoff), 0);
    for (unsigned i = 1; i <= 100; i++) {
        assert_int_equal(pthread_create(&thread, NULL, caller, &job), 0);
        while (!by_handoff_pending(&handoff))
            ;
        by_handoff_serve(&handoff);
        pthread_join(thread, NULL);
        assert_true(job.served);
        assert_int_equal(job.runs, i);
        assert_true(pthread_equal(job.ran_on, pthread_self()));
        assert_false(by_handoff_pending(&handoff));
    }
    by_handoff_close(&handoff);
}

static void a_caller_that_gave_up_is_not_served_later(void **state)
{
    struct by_handoff handoff;
    struct handoff_job job = {.handoff = &handoff, .served = true};

    (void)state;
    assert_int_equal(by_handoff_open(&handoff), 0);
    caller(&job); /* the loop does not serve it: returns after a second */
    assert_false(job.served);
    by_handoff_serve(&handoff);
    assert_int_equal(job.runs, 0);
    by_handoff_close(&handoff);
}

static void a_wake_without_work_is_harmless(void **state)
{
    struct by_handoff handoff;

    (void)state;
    assert_int_equal(by_handoff_open(&handoff), 0);
    by_handoff_wake(&handoff);
    assert_false(by_handoff_pending(&handoff));
    by_handoff_serve(&handoff);
    by_handoff_close(&handoff);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(work_runs_once_on_the_loops_thread),
        cmocka_unit_test(a_caller_that_gave_up_is_not_served_later),
        cmocka_unit_test(a_wake_without_work_is_harmless),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
