/* The store, call by call: what each step of a push leaves in it, also for a program that opens it
 * again in the middle. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "control/base/alloc.h"
#include "offload/base/errors.h"
#include "offload/wire/types.h"
#include "tests/unit/control/service/daemon/store.h"

static void a_job_comes_back_as_it_was(void **state)
{
    struct by_job *job = &store.jobs[1];
    struct by_job_tables *tables;
    const struct by_job *back;
    struct store_loaded loaded;

    (void)state;
    store_open();
    snprintf(job->spec.name, sizeof(job->spec.name), "train");
    job->spec.want_count = 2;
    job->spec.wants[1] = (struct by_job_want){.collective = BY_COLLECTIVE_BROADCAST, .root = H1};
    job->spec.member = by_alloc(NODES, sizeof(bool));
    job->spec.member[H0] = job->spec.member[H1] = true;
    job->spec.window = 64;
    job->spec.share = (struct by_fraction){3, 8};
    job->spec.is_group = true;
    job->gen_last = 6;
    store_push(1, 5);
    store_push(0, 6);
    tables = job->tables;
    store_reopen();
    loaded = store_load();
    assert_int_equal(loaded.count, 2);
    back = loaded.jobs[1];
    assert_int_equal(back->spec.job, 2);
    assert_int_equal(back->state, BY_JOB_RUNNING);
    assert_string_equal(back->text, "");
    assert_string_equal(back->spec.name, "train");
    assert_int_equal(back->gen_last, 7 + RESERVE);
    assert_true(back->spec.want_count == 2 && back->spec.window == 64 && back->spec.is_group);
    assert_true(back->spec.wants[0].collective == BY_COLLECTIVE_ALLREDUCE && back->spec.wants[0].root == -1);
    assert_true(back->spec.wants[1].collective == BY_COLLECTIVE_BROADCAST && back->spec.wants[1].root == H1);
    assert_true(back->spec.share.num == 3 && back->spec.share.den == 8);
    assert_memory_equal(back->spec.member, job->spec.member, NODES * sizeof(bool));
    assert_true(back->tables->gen == 7 && back->tables->window == 32 && back->tables->plan_count == 2);
    assert_string_equal(back->tables->note, "a note of job 2");
    assert_memory_equal(back->tables->secret, tables->secret, sizeof(tables->secret));
    assert_memory_equal(back->tables->slot_base, tables->slot_base, NODES * sizeof(uint32_t));
    assert_memory_equal(back->tables->lost_links, tables->lost_links, LINKS * sizeof(bool));
    assert_memory_equal(back->tables->uses_link, tables->uses_link, LINKS * sizeof(bool));
    back = loaded.jobs[0];
    assert_true(!back->spec.is_group && back->spec.member == NULL && back->spec.share.num == 0);
    assert_string_equal(back->spec.name, "");
    store_unload(&loaded);
    store_close();
}

static void a_push_counts_from_its_recorded_end(void **state)
{
    struct store_change made;
    struct by_state_open_push open;
    struct by_problem problem = {0};

    (void)state;
    store_open();
    store_has_push(0, 0, 0);
    store_change(&made, 0x8000000000000005);
    store_add(&made, 0, true);
    store_add_image(&made, X0, 10, 40, false);
    store_add_image(&made, X1, 11, 41, true);
    store_begin(&made);
    assert_false(by_state_is_settled(store.state));
    store_has_jobs("");
    store_has_image(X1, 0, 0);
    for (unsigned i = 0; i < 2; i++) { /* also for another program */
        assert_int_equal(by_state_pending(store.state, &open, &problem), 0);
        assert_true(open.push_id == 0x8000000000000005 && open.count == 1);
        assert_true(open.targets[0].node == X1 && open.targets[0].nonce == 41 &&
                    open.targets[0].hash == made.images[X1].hash);
        by_state_pending_free(&open);
        if (i == 0)
            store_reopen();
    }
    by_state_finish(store.state, true, true);
    assert_true(by_state_is_settled(store.state));
    for (unsigned i = 0; i < 2; i++) {
        store_has_jobs("1 generation 1 last 17");
        store_has_image(X0, 10, 40);
        store_has_image(X1, 11, 41);
        store_has_push(0, 0, 0);
        store_reopen();
    }
    store_take(&made.jobs[0], true);
    store_close();
}

static void a_push_without_effect_uses_up_its_generations(void **state)
{
    struct store_change made;

    (void)state;
    store_open();
    store_push(0, 5);
    store_change(&made, 6);
    store.jobs[0].gen_last = 30;
    store_add(&made, 0, true);
    store_add(&made, 1, true);
    store_add_image(&made, X0, 10, 40, true);
    store_begin(&made);
    by_state_finish(store.state, false, false); /* its outcome is unknown */
    assert_false(by_state_is_settled(store.state));
    store_has_push(6, 1, X0);
    by_state_finish(store.state, false, true);
    assert_true(by_state_is_settled(store.state));
    store_has_push(0, 0, 0);
    store_has_jobs("1 generation 1 last 47");
    store_has_image(X0, 0, 0);
    assert_int_equal(store_ended(2), 1 + RESERVE);
    assert_int_equal(store_ended(1), 0);
    store_take(&made.jobs[0], false);
    store_take(&made.jobs[1], false);
    store_close();
}

static void an_open_push_is_settled_by_the_next_program(void **state)
{
    struct by_problem problem = {0};

    (void)state;
    for (unsigned forward = 0; forward < 2; forward++) {
        struct store_change made;

        store_open();
        store_push(0, 5);
        store_change(&made, 6);
        store_add(&made, 0, true);
        store_add_image(&made, X0, 10, 40, true);
        store_begin(&made);
        store_reopen();
        assert_int_equal(by_state_settle(store.state, forward, &problem), 0);
        assert_true(by_state_is_settled(store.state));
        store_has_push(0, 0, 0);
        store_has_jobs(forward ? "1 generation 2 last 18" : "1 generation 1 last 18");
        store_has_image(X0, forward ? 10 : 0, forward ? 40 : 0);
        store_take(&made.jobs[0], false);
        store_close();
    }
}

/* A switch may be the first node, and several may get tables. */
static void the_images_and_targets_of_a_push_are_all_recorded(void **state)
{
    struct by_state_open_push open;
    struct by_problem problem = {0};
    struct store_change made;

    (void)state;
    store_open();
    store_change(&made, 5);
    store_add_image(&made, H0, 9, 39, false);
    store_add_image(&made, X0, 10, 40, true);
    store_add_image(&made, X1, 11, 41, true);
    store_begin(&made);
    assert_int_equal(by_state_pending(store.state, &open, &problem), 0);
    assert_int_equal(open.count, 2);
    for (uint32_t i = 0; i < 2; i++)
        assert_true(open.targets[i].node == X0 + i && open.targets[i].nonce == 40 + i &&
                    open.targets[i].hash == made.images[X0 + i].hash);
    by_state_pending_free(&open);
    by_state_finish(store.state, true, true);
    store_has_image(H0, 9, 39);
    store_has_image(X0, 10, 40);
    store_has_image(X1, 11, 41);
    store_close();
}

static void the_record_of_an_open_push_is_replaced_by_that_of_the_next(void **state)
{
    struct store_change first, second;

    (void)state;
    store_open();
    store_change(&first, 5);
    store_add(&first, 0, true);
    store_add_image(&first, X0, 10, 40, true);
    store_begin(&first);
    by_state_finish(store.state, false, false);
    store_change(&second, 6);
    store_add(&second, 1, true);
    store_add_image(&second, X1, 11, 41, true);
    store_begin(&second);
    store_has_push(6, 1, X1);
    by_state_finish(store.state, true, true);
    store_has_jobs("2 generation 1 last 17");
    store_has_image(X0, 0, 0);
    assert_int_equal(store_ended(1), 17); /* a host may have got its tables */
    store_take(&first.jobs[0], false);
    store_take(&second.jobs[0], false);
    store_close();
}

static void a_job_that_ends_leaves_its_generation_and_no_property(void **state)
{
    struct store_change made;
    struct store_loaded loaded;

    (void)state;
    store_open();
    store.jobs[0].spec.is_group = true;
    store_push(0, 5);
    store_push(1, 6);
    store_change(&made, 7);
    made.change.ended = 1;
    store_add(&made, 1, false);
    store_begin(&made);
    by_state_finish(store.state, true, true);
    store_has_jobs("2 generation 1 last 17");
    assert_int_equal(store_ended(1), 17);
    by_job_tables_free(store.jobs[0].tables);
    store.jobs[0].tables = NULL;
    store.jobs[0].spec.is_group = false; /* another job of its number */
    store.jobs[0].gen_last = 17;
    store_push(0, 8);
    store_has_jobs("1 generation 18 last 34, 2 generation 1 last 17");
    loaded = store_load();
    assert_false(loaded.jobs[0]->spec.is_group);
    store_unload(&loaded);
    store_close();
}

static void a_job_that_has_failed_stays_with_its_reason_until_it_is_ended(void **state)
{
    struct store_change made;
    struct by_change_job *entry;
    struct store_loaded loaded;

    (void)state;
    store_open();
    store_push(0, 5);
    store_push(1, 6);
    store_change(&made, 7);
    entry = store_add(&made, 0, true);
    entry->error = BY_ENOENT;
    snprintf(entry->problem.text, sizeof(entry->problem.text), "switch x0 is lost");
    store_add(&made, 1, false);
    store_begin(&made);
    by_state_finish(store.state, true, true);
    store_take(entry, false);
    by_job_tables_free(store.jobs[0].tables);
    store.jobs[0].tables = NULL;
    store_has_jobs("1 failed last 18, 2 generation 1 last 17");
    store_push(1, 8); /* it is in no later change */
    store_has_jobs("1 failed last 18, 2 generation 2 last 18");
    loaded = store_load();
    assert_string_equal(loaded.jobs[0]->text, "switch x0 is lost");
    store_unload(&loaded);
    store_change(&made, 9);
    made.change.ended = 1;
    store_add(&made, 1, false);
    store_begin(&made);
    by_state_finish(store.state, true, true);
    store_has_jobs("2 generation 2 last 18");
    assert_int_equal(store_ended(1), 18);
    store_change(&made, 10); /* one that failed in a change that was not recorded */
    store_begin(&made);
    by_state_finish(store.state, true, true);
    store_has_jobs("2 failed last 18");
    loaded = store_load();
    assert_string_equal(loaded.jobs[0]->text, "it had no path");
    store_unload(&loaded);
    store_close();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_job_comes_back_as_it_was),
        cmocka_unit_test(a_push_counts_from_its_recorded_end),
        cmocka_unit_test(a_push_without_effect_uses_up_its_generations),
        cmocka_unit_test(an_open_push_is_settled_by_the_next_program),
        cmocka_unit_test(the_images_and_targets_of_a_push_are_all_recorded),
        cmocka_unit_test(the_record_of_an_open_push_is_replaced_by_that_of_the_next),
        cmocka_unit_test(a_job_that_ends_leaves_its_generation_and_no_property),
        cmocka_unit_test(a_job_that_has_failed_stays_with_its_reason_until_it_is_ended),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
