/* The store, call by call: generations that are recorded in advance, records that follow their
 * push, and what it refuses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "control/service/daemon/state_inside.h"
#include "control/tables/keyed.h"
#include "offload/base/bytes.h"
#include "offload/base/errors.h"
#include "offload/wire/seal.h"
#include "tests/unit/control/service/daemon/store.h"
#include "tests/unit/control/tables/bench.h"

static int reserve(struct store_change *made)
{
    struct by_problem problem = {0};

    return by_state_reserve(store.state, &made->change, &problem);
}

static void generations_are_recorded_in_advance(void **state)
{
    struct store_change made;
    struct by_change_job *entry;

    (void)state;
    store_open();
    store_push(0, 5);
    store_push(1, 6);
    store_has_jobs("1 generation 1 last 17, 2 generation 1 last 17");
    store_change(&made, 7);
    entry = store_add(&made, 0, true);
    store_add(&made, 1, false);
    entry->gen = 17; /* within what is recorded */
    assert_int_equal(reserve(&made), 0);
    store_has_jobs("1 generation 1 last 17, 2 generation 1 last 17");
    entry->gen = 18;
    assert_int_equal(reserve(&made), 0);
    store_has_jobs("1 generation 1 last 34, 2 generation 1 last 17");
    entry->gen = 34;
    assert_int_equal(reserve(&made), 0);
    store_has_jobs("1 generation 1 last 34, 2 generation 1 last 17");
    store_reopen(); /* it has not read the records then */
    entry->gen = 20;
    assert_int_equal(reserve(&made), 0);
    store_has_jobs("1 generation 1 last 36, 2 generation 1 last 17");
    entry->gen = UINT16_MAX - 3; /* 1 follows 65535 */
    assert_int_equal(reserve(&made), 0);
    store_has_jobs("1 generation 1 last 13, 2 generation 1 last 17");
    entry->gen = 13;
    assert_int_equal(reserve(&made), 0);
    store_has_jobs("1 generation 1 last 13, 2 generation 1 last 17");
    entry->gen = 14;
    assert_int_equal(reserve(&made), 0);
    store_has_jobs("1 generation 1 last 30, 2 generation 1 last 17");
    entry->anew = false; /* it keeps its tables */
    entry->gen = 99;
    assert_int_equal(reserve(&made), 0);
    store_has_jobs("1 generation 1 last 30, 2 generation 1 last 17");
    entry->anew = true;
    store_take(entry, false);
    by_job_tables_free(store.jobs[0].tables);
    store.jobs[0].tables = NULL; /* a first push is recorded before it reaches a host */
    assert_int_equal(reserve(&made), 0);
    store_has_jobs("1 generation 1 last 30, 2 generation 1 last 17");
    store_close();
}

static void generations_of_each_job_are_recorded_in_advance(void **state)
{
    struct store_change made;

    (void)state;
    store_open();
    for (unsigned i = 0; i < 3; i++)
        store_push(i, 5 + i);
    store_change(&made, 8);
    for (unsigned i = 0; i < 3; i++)
        store_add(&made, i, true)->gen = 18;
    for (unsigned i = 0; i < 2; i++) { /* the second time they are within what is recorded */
        assert_int_equal(reserve(&made), 0);
        store_has_jobs("1 generation 1 last 34, 2 generation 1 last 34, 3 generation 1 last 34");
        for (unsigned k = 0; k < 3; k++)
            made.jobs[k].gen = 20;
    }
    for (unsigned i = 0; i < 3; i++)
        store_take(&made.jobs[i], false);
    store_close();
}

static void a_push_reserves_generations_of_each_of_its_jobs(void **state)
{
    struct store_change made;

    (void)state;
    store_open();
    for (unsigned push = 0; push < 2; push++) {
        store_change(&made, 5 + push);
        for (unsigned i = 0; i < 2; i++)
            store_add(&made, i, true);
        assert_int_equal(by_state_may_follow(store.state, &made.change), push);
        if (push == 0) {
            store_begin(&made);
            by_state_finish(store.state, true, true);
        }
        for (unsigned i = 0; i < 2; i++)
            store_take(&made.jobs[i], push == 0);
    }
    store_close();
}

static void only_repairs_within_the_recorded_generations_are_recorded_late(void **state)
{
    struct store_change made;
    struct by_change_job *entry;

    (void)state;
    store_open();
    store_push(0, 5);
    store_push(1, 6);
    store_change(&made, 7);
    entry = store_add(&made, 0, true);
    store_add(&made, 1, false);
    assert_true(by_state_may_follow(store.state, &made.change));
    entry->gen = 17;
    assert_true(by_state_may_follow(store.state, &made.change));
    entry->gen = 18;
    assert_false(by_state_may_follow(store.state, &made.change));
    entry->gen = 2;
    made.jobs[1].error = BY_ENOENT;
    assert_false(by_state_may_follow(store.state, &made.change));
    made.jobs[1].error = 0;
    made.change.ended = 3;
    assert_false(by_state_may_follow(store.state, &made.change));
    made.change.ended = 0;
    entry->anew = false; /* it keeps its tables */
    assert_false(by_state_may_follow(store.state, &made.change));
    entry->anew = true;
    store_take(entry, false);
    store_add(&made, 2, true); /* a new job */
    assert_false(by_state_may_follow(store.state, &made.change));
    store_take(&made.jobs[2], false);
    made.change.job_count = 2;
    store_reopen(); /* in doubt until the first transaction */
    assert_false(by_state_may_follow(store.state, &made.change));
    assert_false(by_state_may_follow(NULL, &made.change));
    store_push(0, 8);
    entry->gen = store.jobs[0].gen_last;
    made.change.job_count = 1;
    assert_true(by_state_may_follow(store.state, &made.change));
    store_begin(&made);
    assert_false(by_state_may_follow(store.state, &made.change)); /* a push is open */
    store_close();
}

static void a_late_record_counts_when_it_is_committed(void **state)
{
    struct by_problem problem = {0};

    (void)state;
    for (unsigned kept = 0; kept < 2; kept++) {
        struct store_change made;
        struct by_change_job *entry;

        store_open();
        store_push(0, 5);
        by_state_commit(store.state); /* nothing is open */
        by_state_discard(store.state);
        store_change(&made, 6);
        entry = store_add(&made, 0, true);
        store_add_image(&made, X0, 10, 40, true);
        assert_int_equal(by_state_write(store.state, &made.change, &problem), 0);
        assert_true(by_state_is_settled(store.state));
        if (kept)
            by_state_commit(store.state);
        else
            by_state_discard(store.state);
        store_has_jobs(kept ? "1 generation 2 last 18" : "1 generation 1 last 17");
        store_has_push(0, 0, 0);
        store_has_image(X0, kept ? 10 : 0, kept ? 40 : 0);
        entry->gen = 18; /* reserved with the record */
        assert_int_equal(by_state_may_follow(store.state, &made.change), kept);
        store_take(entry, kept);
        store_reopen();
        store_has_jobs(kept ? "1 generation 2 last 18" : "1 generation 1 last 17");
        store_close();
    }
}

static void a_late_record_reserves_generations_of_each_job(void **state)
{
    struct by_problem problem = {0};
    struct store_change made;

    (void)state;
    store_open();
    for (unsigned i = 0; i < 3; i++)
        store_push(i, 5 + i);
    store_change(&made, 8);
    for (unsigned i = 0; i < 3; i++)
        store_add(&made, i, true);
    assert_int_equal(by_state_write(store.state, &made.change, &problem), 0);
    by_state_commit(store.state);
    for (unsigned i = 0; i < 3; i++) {
        made.jobs[i].gen = 18;
        store_take(&made.jobs[i], true);
    }
    assert_true(by_state_may_follow(store.state, &made.change));
    assert_int_equal(store.state->coming_count, 3);
    store_change(&made, 9);
    for (unsigned i = 0; i < 3; i++)
        store_add(&made, i, false);
    assert_int_equal(by_state_write(store.state, &made.change, &problem), 0);
    assert_int_equal(store.state->coming_count, 3); /* of this record alone */
    store_close();
}

static void a_late_record_is_committed_at_the_end(void **state)
{
    struct by_problem problem = {0};
    struct store_change made;

    (void)state;
    store_open();
    store_push(0, 5);
    store_change(&made, 6);
    store_add(&made, 0, true);
    assert_int_equal(by_state_write(store.state, &made.change, &problem), 0);
    store_reopen();
    store_has_jobs("1 generation 2 last 18");
    store_take(&made.jobs[0], true);
    store_close();
}

static void the_election_id_is_of_the_last_run(void **state)
{
    struct by_problem problem = {0};

    (void)state;
    store_open();
    assert_true(by_state_election(store.state) == 0);
    assert_int_equal(by_state_elect(store.state, UINT64_MAX - 1, &problem), 0);
    assert_true(by_state_election(store.state) == UINT64_MAX - 1);
    store_reopen();
    assert_true(by_state_election(store.state) == UINT64_MAX - 1);
    store_close();
}

static void a_store_is_opened_only_as_it_was_made(void **state)
{
    static const struct by_lower_options others[] = {{.mtu = 1}, {.det = 1}, {.cover = BY_COVER_HEADER}};
    struct by_state *second;
    struct by_problem problem = {0};
    struct by_topology *other;

    (void)state;
    store_open();
    by_state_close(store.state);
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        assert_int_equal(by_state_open(store.folder, store.topology, &others[i], &second, &problem),
                         BY_EMISMATCH);
        assert_non_null(strstr(problem.text,
                               " was made with another --mtu, --det or --keyed, which the tables "
                               "of running jobs need: give the same ones, or another folder"));
    }
    other = bench_topology("h0 h1 x0*", "h0-x0 x0-h1");
    assert_int_equal(by_state_open(store.folder, other, &store.lower, &second, &problem), BY_EMISMATCH);
    assert_non_null(
        strstr(problem.text, " belongs to another fabric: start with its topology, or give another folder"));
    by_topology_free(other);
    store_sql("UPDATE meta SET number = 3 WHERE key = 'version'");
    assert_int_equal(by_state_open(store.folder, store.topology, &store.lower, &second, &problem),
                     BY_EVERSION);
    assert_non_null(strstr(problem.text,
                           " has version 3, and this banyand writes 2: use the banyand that wrote "
                           "it, or another folder"));
    store_sql("UPDATE meta SET number = 2 WHERE key = 'version'");
    store.state = NULL;
    store_reopen();
    store_close();
}

/* As earlier programs wrote it: 1500 << 9, the coverage << 1, and det. */
static void the_options_of_tables_are_kept_as_one_number(void **state)
{
    struct by_state *other;
    struct by_problem problem = {0};

    (void)state;
    store_open();
    by_state_close(store.state);
    store.state = NULL;
    store.lower = (struct by_lower_options){.mtu = 1500, .cover = BY_COVER_HEADER, .det = true};
    store_sql("UPDATE meta SET number = 768003 WHERE key = 'lower'");
    store_reopen();
    by_state_close(store.state);
    store.state = NULL;
    store_sql("DELETE FROM meta"); /* a new one */
    store_reopen();
    store_reopen();
    by_state_close(store.state);
    store.state = NULL;
    store_sql("UPDATE meta SET number = number - 768003 WHERE key = 'lower'");
    assert_int_equal(by_state_open(store.folder, store.topology, &store.lower, &other, &problem),
                     BY_EMISMATCH);
    store.lower = (struct by_lower_options){0}; /* so that nothing is left */
    store_reopen();
    store_close();
}

/* Version 1 derived the keys of all jobs from one seed. */
static void a_store_of_version_1_gives_jobs_the_keys_of_its_seed(void **state)
{
    struct by_lower_options lower = {.seed = {0xf1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}};

    (void)state;
    store_open();
    store_push(0, 5);
    store_push(0, 6);
    store_push(1, 7);
    store_downgrade(by_get64(lower.seed), by_get64(lower.seed + 8));
    for (unsigned i = 0; i < 2; i++) { /* the second time without the seed */
        struct store_loaded loaded;

        store_reopen();
        loaded = store_load();
        assert_int_equal(loaded.count, 2);
        for (uint32_t j = 0; j < 2; j++) {
            struct by_image_key key;

            assert_int_equal(loaded.jobs[j]->tables->gen, 2 - j);
            by_lower_key(&lower, &(struct by_image_job){.job = (uint16_t)(1 + j), .gen = (uint16_t)(2 - j)},
                         NULL, &key);
            assert_memory_equal(loaded.jobs[j]->tables->secret, key.key, sizeof(key.key));
        }
        store_unload(&loaded);
    }
    store_sql("INSERT INTO meta VALUES ('seed_high', 0), ('seed_low', 0)"); /* they are gone */
    store_close();
}

static void files_that_are_no_files_of_this_user_are_refused(void **state)
{
    struct by_problem problem = {0};
    char path[96], other[96];

    (void)state;
    store_open();
    by_state_close(store.state);
    store.state = NULL;
    snprintf(path, sizeof(path), "%s/banyand.db", store.folder);
    snprintf(other, sizeof(other), "%s/lock", store.folder);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(symlink(other, path), 0); /* banyand follows no link to another file */
    assert_int_equal(by_state_open(store.folder, store.topology, &store.lower, &store.state, &problem),
                     BY_EIO);
    assert_non_null(strstr(problem.text, "/banyand.db: "));
    assert_non_null(strstr(problem.text, ": it must be a file of this user with mode 0600"));
    assert_int_equal(unlink(path), 0);
    store_close();
}

static void damage_is_reported_with_its_remedy(void **state)
{
    static const char *const damages[] = {"UPDATE tables SET lost_links = x'0000'",
                                          "UPDATE tables SET slot_base = x'00000000'",
                                          "UPDATE tables SET secret = x''"};
    struct by_job **jobs;
    uint32_t count;

    (void)state;
    for (size_t i = 0; i < sizeof(damages) / sizeof(damages[0]); i++) {
        struct by_problem problem = {0};
        struct store_loaded loaded;

        store_open();
        store_push(0, 5);
        store_sql(damages[i]);
        assert_int_equal(by_state_jobs(store.state, &jobs, &count, &problem), BY_EFORMAT);
        assert_string_equal(problem.text, "job 1: its tables in --state are damaged: start with another "
                                          "--state, which ends the job");
        loaded = (struct store_loaded){jobs, count};
        store_unload(&loaded);
        store_close();
    }
}

static void a_damaged_image_is_no_image(void **state)
{
    struct by_change_image image;
    struct by_problem problem = {0};
    struct store_change made;
    uint64_t nonce;

    (void)state;
    store_open();
    store_change(&made, 5);
    store_add_image(&made, X0, 10, 40, true);
    store_add_image(&made, X1, 11, 41, true);
    store_begin(&made);
    by_state_finish(store.state, true, true);
    store_sql("UPDATE image SET bytes = x'0a0a0b' WHERE node = 2");
    assert_int_equal(by_state_image(store.state, X0, &image, &nonce, &problem), BY_ECHECKSUM);
    assert_string_equal(problem.text, "the table of x0 in --state is damaged: it is rebuilt");
    assert_true(image.bytes == NULL && image.hash == 0);
    store_has_image(X1, 11, 41);
    store_close();
}

static void generations_of_numbers_that_no_job_can_have_are_ignored(void **state)
{
    char sql[200];
    uint16_t gens[BY_JOBS_MAX] = {7};
    struct by_problem problem = {0};

    (void)state;
    store_open();
    snprintf(sql, sizeof(sql), "INSERT INTO ended VALUES (-1, 1), (0, 2), (1, 3), (%u, 4), (%u, 5)",
             BY_JOBS_MAX - 1, BY_JOBS_MAX);
    store_sql(sql);
    assert_int_equal(by_state_ended(store.state, gens, &problem), 0);
    assert_true(gens[0] == 7 && gens[1] == 3 && gens[2] == 0 && gens[BY_JOBS_MAX - 1] == 4);
    store_close();
}

static void without_a_store_nothing_is_kept_and_nothing_fails(void **state)
{
    struct by_state_open_push open = {.push_id = 1};
    struct by_change_image image = {.hash = 1};
    struct by_problem problem = {0};
    struct store_change made;
    struct by_job **jobs;
    uint16_t gens[BY_JOBS_MAX] = {0};
    uint64_t nonce = 1;
    uint32_t count;

    (void)state;
    store_change(&made, 5);
    assert_true(by_state_election(NULL) == 0 && by_state_is_settled(NULL));
    assert_int_equal(by_state_elect(NULL, 5, &problem), 0);
    assert_int_equal(by_state_reserve(NULL, &made.change, &problem), 0);
    assert_int_equal(by_state_begin(NULL, &made.change, &problem), 0);
    by_state_finish(NULL, true, true);
    by_state_commit(NULL);
    by_state_discard(NULL);
    assert_int_equal(by_state_pending(NULL, &open, &problem), 0);
    assert_true(open.push_id == 0);
    assert_int_equal(by_state_settle(NULL, true, &problem), 0);
    assert_int_equal(by_state_jobs(NULL, &jobs, &count, &problem), 0);
    assert_int_equal(count, 0);
    assert_int_equal(by_state_ended(NULL, gens, &problem), 0);
    assert_int_equal(by_state_image(NULL, X0, &image, &nonce, &problem), 0);
    assert_true(image.hash == 0 && nonce == 0);
    by_state_close(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(generations_are_recorded_in_advance),
        cmocka_unit_test(generations_of_each_job_are_recorded_in_advance),
        cmocka_unit_test(a_push_reserves_generations_of_each_of_its_jobs),
        cmocka_unit_test(only_repairs_within_the_recorded_generations_are_recorded_late),
        cmocka_unit_test(a_late_record_counts_when_it_is_committed),
        cmocka_unit_test(a_late_record_reserves_generations_of_each_job),
        cmocka_unit_test(a_late_record_is_committed_at_the_end),
        cmocka_unit_test(the_election_id_is_of_the_last_run),
        cmocka_unit_test(a_store_is_opened_only_as_it_was_made),
        cmocka_unit_test(the_options_of_tables_are_kept_as_one_number),
        cmocka_unit_test(a_store_of_version_1_gives_jobs_the_keys_of_its_seed),
        cmocka_unit_test(files_that_are_no_files_of_this_user_are_refused),
        cmocka_unit_test(damage_is_reported_with_its_remedy),
        cmocka_unit_test(a_damaged_image_is_no_image),
        cmocka_unit_test(generations_of_numbers_that_no_job_can_have_are_ignored),
        cmocka_unit_test(without_a_store_nothing_is_kept_and_nothing_fails),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
