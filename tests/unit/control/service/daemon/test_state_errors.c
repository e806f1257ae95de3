/* Each call of the database may fail once, at each place: what fails is told with its remedy and
 * changes nothing, and the next attempt goes on from there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <sqlite3.h>

#include "control/service/daemon/say.h"
#include "offload/base/errors.h"
#include "tests/unit/control/service/daemon/record.h"
#include "tests/unit/control/service/daemon/store.h"

/* More calls than any step makes. */
#define CALLS_MAX 200

static int calls_left = -1;  /* until one fails; negative: none */
static unsigned checkpoints; /* of the journal */
static int binds_left = -1;  /* until a value cannot be bound; negative: all can */

/* ---- the database ---- */

int __wrap_sqlite3_step(sqlite3_stmt *statement);
int __real_sqlite3_step(sqlite3_stmt *statement);
int __wrap_sqlite3_prepare_v2(sqlite3 *db, const char *sql, int bytes, sqlite3_stmt **statement,
                              const char **tail);
int __real_sqlite3_prepare_v2(sqlite3 *db, const char *sql, int bytes, sqlite3_stmt **statement,
                              const char **tail);
int __wrap_sqlite3_exec(sqlite3 *db, const char *sql, int (*callback)(void *, int, char **, char **),
                        void *context, char **error);
int __real_sqlite3_exec(sqlite3 *db, const char *sql, int (*callback)(void *, int, char **, char **),
                        void *context, char **error);

int __wrap_sqlite3_bind_int64(sqlite3_stmt *statement, int place, sqlite3_int64 value);
int __real_sqlite3_bind_int64(sqlite3_stmt *statement, int place, sqlite3_int64 value);
int __wrap_sqlite3_bind_text(sqlite3_stmt *statement, int place, const char *text, int bytes,
                             void (*release)(void *));
int __real_sqlite3_bind_text(sqlite3_stmt *statement, int place, const char *text, int bytes,
                             void (*release)(void *));
int __wrap_sqlite3_bind_blob64(sqlite3_stmt *statement, int place, const void *value, sqlite3_uint64 bytes,
                               void (*release)(void *));
int __real_sqlite3_bind_blob64(sqlite3_stmt *statement, int place, const void *value, sqlite3_uint64 bytes,
                               void (*release)(void *));
int __wrap_sqlite3_close(sqlite3 *db);
int __real_sqlite3_close(sqlite3 *db);

static bool fails(void)
{
    return calls_left >= 0 && calls_left-- == 0;
}

int __wrap_sqlite3_step(sqlite3_stmt *statement)
{
    return fails() ? SQLITE_IOERR : __real_sqlite3_step(statement);
}

int __wrap_sqlite3_prepare_v2(sqlite3 *db, const char *sql, int bytes, sqlite3_stmt **statement,
                              const char **tail)
{
    return fails() ? SQLITE_IOERR : __real_sqlite3_prepare_v2(db, sql, bytes, statement, tail);
}

int __wrap_sqlite3_exec(sqlite3 *db, const char *sql, int (*callback)(void *, int, char **, char **),
                        void *context, char **error)
{
    checkpoints += strstr(sql, "wal_checkpoint(TRUNCATE)") != NULL;
    return fails() ? SQLITE_IOERR : __real_sqlite3_exec(db, sql, callback, context, error);
}

static bool bind_fails(void)
{
    return binds_left >= 0 && binds_left-- == 0;
}

int __wrap_sqlite3_bind_int64(sqlite3_stmt *statement, int place, sqlite3_int64 value)
{
    return bind_fails() ? SQLITE_NOMEM : __real_sqlite3_bind_int64(statement, place, value);
}

int __wrap_sqlite3_bind_text(sqlite3_stmt *statement, int place, const char *text, int bytes,
                             void (*release)(void *))
{
    return bind_fails() ? SQLITE_NOMEM : __real_sqlite3_bind_text(statement, place, text, bytes, release);
}

int __wrap_sqlite3_bind_blob64(sqlite3_stmt *statement, int place, const void *value, sqlite3_uint64 bytes,
                               void (*release)(void *))
{
    return bind_fails() ? SQLITE_TOOBIG : __real_sqlite3_bind_blob64(statement, place, value, bytes, release);
}

/* No statement is left. */
int __wrap_sqlite3_close(sqlite3 *db)
{
    assert_int_equal(__real_sqlite3_close(db), SQLITE_OK);
    return SQLITE_OK;
}

void by_daemon_say(const char *format, ...)
{
    char text[600];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    record("%s\n", text);
}

/* ---- steps ---- */

static struct store_change made;

/* Requires that the step fails at each of its calls in turn, with the text of the store, and that
 * `after` holds each time. The last time it succeeds. Returns how often it failed. */
static unsigned each_call(int (*step)(struct by_problem *problem), void (*after)(void))
{
    for (int call = 0; call < CALLS_MAX; call++) {
        struct by_problem problem = {0};
        int error;

        calls_left = call;
        error = step(&problem);
        if (error == 0) {
            assert_true(calls_left >= 0); /* it made fewer calls */
            calls_left = -1;
            return (unsigned)call;
        }
        calls_left = -1;
        assert_int_equal(error, BY_EIO);
        assert_non_null(strstr(problem.text, ": check the free space and the permissions"));
        after();
    }
    fail_msg("more than %d calls", CALLS_MAX);
    return 0;
}

/* Job 1 is in generation 1; a change brings its generation 2, and job 2. */
static void open_store(void)
{
    calls_left = -1;
    record_clear();
    store_open();
    store_push(0, 5);
    store_change(&made, 6);
    store_add(&made, 0, true);
    store_add(&made, 1, true);
    store_add_image(&made, X0, 10, 40, true);
}

static void close_store(void)
{
    store_take(&made.jobs[0], false);
    store_take(&made.jobs[1], false);
    store_close();
}

static void is_as_before(void)
{
    assert_true(by_state_is_settled(store.state));
    assert_false(by_state_may_follow(store.state, &made.change)); /* not before the next transaction */
    store_has_jobs("1 generation 1 last 17");
    store_has_push(0, 0, 0);
    store_has_image(X0, 0, 0);
    assert_int_equal(store_ended(2), 0);
}

static int begin(struct by_problem *problem)
{
    return by_state_begin(store.state, &made.change, problem);
}

static void a_push_whose_begin_fails_is_not_in_the_store(void **state)
{
    (void)state;
    open_store();
    assert_in_range(each_call(begin, is_as_before), 10, CALLS_MAX);
    assert_false(by_state_is_settled(store.state));
    store_has_push(6, 1, X0);
    by_state_finish(store.state, true, true);
    store_has_jobs("1 generation 2 last 18, 2 generation 1 last 17");
    close_store();
}

static int reserve(struct by_problem *problem)
{
    made.jobs[0].gen = 18;
    return by_state_reserve(store.state, &made.change, problem);
}

/* It would be NULL in the store. */
static void a_value_that_cannot_be_bound_is_an_error(void **state)
{
    struct by_problem problem = {0};
    int count = 0;

    (void)state;
    open_store();
    for (binds_left = 0; begin(&problem) != 0; binds_left = ++count)
        is_as_before();
    assert_in_range(count, 30, CALLS_MAX);
    binds_left = -1;
    store_has_push(6, 1, X0);
    close_store();
}

static void generations_that_are_not_recorded_are_not_reserved(void **state)
{
    (void)state;
    open_store();
    made.change.job_count = 1;
    assert_in_range(each_call(reserve, is_as_before), 3, CALLS_MAX);
    store_has_jobs("1 generation 1 last 34");
    close_store();
}

static int write_late(struct by_problem *problem)
{
    return by_state_write(store.state, &made.change, problem);
}

static void a_record_that_cannot_be_written_is_not_there(void **state)
{
    (void)state;
    open_store();
    assert_in_range(each_call(write_late, is_as_before), 10, CALLS_MAX);
    by_state_commit(store.state);
    record_expect("");
    store_has_jobs("1 generation 2 last 18, 2 generation 1 last 17");
    close_store();
}

/* The switches have the tables by then. */
static void a_record_that_is_not_committed_is_told_and_recorded_with_the_next_change(void **state)
{
    struct by_problem problem = {0};

    (void)state;
    open_store();
    assert_int_equal(write_late(&problem), 0);
    calls_left = 0;
    by_state_commit(store.state);
    calls_left = -1;
    assert_non_null(strstr(recorded,
                           ": check the free space and the permissions; the tables on the switches are "
                           "recorded at the next change, or replaced at the next start\n"));
    is_as_before();
    made.jobs[0].gen = 18;
    assert_int_equal(begin(&problem), 0);
    by_state_finish(store.state, true, true);
    store_has_jobs("1 generation 2 last 18, 2 generation 1 last 17");
    close_store();
}

static int elect(struct by_problem *problem)
{
    return by_state_elect(store.state, 77, problem);
}

static void has_no_election(void)
{
    is_as_before();
    assert_true(by_state_election(store.state) == 0);
}

static void an_election_id_that_is_not_recorded_is_not_used(void **state)
{
    (void)state;
    open_store();
    assert_in_range(each_call(elect, has_no_election), 3, CALLS_MAX);
    assert_true(by_state_election(store.state) == 77);
    close_store();
}

static bool forward;

static int settle(struct by_problem *problem)
{
    return by_state_settle(store.state, forward, problem);
}

static void is_open(void)
{
    assert_false(by_state_is_settled(store.state));
    store_has_push(6, 1, X0);
    store_has_jobs("1 generation 1 last 17");
}

static void an_open_push_stays_open_until_it_can_be_settled(void **state)
{
    struct by_problem problem = {0};

    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        forward = i == 1;
        open_store();
        assert_int_equal(begin(&problem), 0);
        assert_in_range(each_call(settle, is_open), 3, CALLS_MAX);
        assert_true(by_state_is_settled(store.state));
        store_has_push(0, 0, 0);
        store_has_jobs(forward ? "1 generation 2 last 18, 2 generation 1 last 17" : "1 generation 1 last 18");
        close_store();
    }
}

/* The next record decides as the end would have. */
static void an_end_that_cannot_be_recorded_is_recorded_with_the_next_push(void **state)
{
    (void)state;
    for (unsigned done = 0; done < 2; done++)
        for (int call = 0; call < 3; call++) {
            struct by_problem problem = {0};
            struct store_change next;

            open_store();
            assert_int_equal(begin(&problem), 0);
            calls_left = call;
            by_state_finish(store.state, done, true);
            calls_left = -1;
            assert_non_null(strstr(recorded,
                                   "; the end of a push is recorded at the next change, or decided at "
                                   "the next start\n"));
            is_open();
            store_change(&next, 7); /* of job 1 alone, as it is */
            store_add(&next, 0, false);
            store_begin(&next);
            store_has_push(7, 0, 0);
            store_has_jobs(done ? "1 generation 2 last 18, 2 generation 1 last 17"
                                : "1 generation 1 last 18");
            by_state_finish(store.state, true, true);
            store_has_jobs(done ? "1 generation 1 last 18, 2 failed last 17" : "1 generation 1 last 18");
            assert_int_equal(store_ended(2), done ? 0 : 17);
            close_store();
        }
}

/* ---- reading ---- */

static void nothing(void)
{
}

static int read_push(struct by_problem *problem)
{
    struct by_state_open_push open;
    int error = by_state_pending(store.state, &open, problem);

    if (error == 0)
        assert_int_equal(open.count, 1);
    by_state_pending_free(&open);
    return error;
}

static int read_jobs(struct by_problem *problem)
{
    struct store_loaded loaded;
    int error = by_state_jobs(store.state, &loaded.jobs, &loaded.count, problem);

    if (error == 0)
        assert_int_equal(loaded.count, 1);
    store_unload(&loaded);
    return error;
}

static int read_ended(struct by_problem *problem)
{
    static uint16_t gens[BY_JOBS_MAX];

    return by_state_ended(store.state, gens, problem);
}

static int read_image(struct by_problem *problem)
{
    struct by_change_image image;
    uint64_t nonce;
    int error = by_state_image(store.state, X0, &image, &nonce, problem);

    assert_null(image.bytes);
    return error;
}

static void what_cannot_be_read_is_an_error(void **state)
{
    struct by_problem problem = {0};

    (void)state;
    open_store();
    assert_int_equal(begin(&problem), 0);
    assert_int_equal(each_call(read_push, nothing), 2 + 3); /* a number; a row and the end */
    assert_int_equal(each_call(read_jobs, nothing), 3 + 2 + 3 + 2);
    assert_int_equal(each_call(read_ended, nothing), 2);
    assert_int_equal(each_call(read_image, nothing), 2);
    close_store();
}

static int reopen(struct by_problem *problem)
{
    int error = by_state_open(store.folder, store.topology, &store.lower, &store.state, problem);

    if (error != 0)
        store.state = NULL;
    return error;
}

static void a_store_that_cannot_be_opened_is_opened_the_next_time(void **state)
{
    (void)state;
    open_store();
    by_state_close(store.state);
    store.state = NULL;
    assert_in_range(each_call(reopen, nothing), 4, CALLS_MAX);
    store_has_jobs("1 generation 1 last 17");
    by_state_close(store.state);
    store_sql("DELETE FROM meta"); /* as before its first use */
    store.state = NULL;
    assert_in_range(each_call(reopen, nothing), 8, CALLS_MAX);
    store_downgrade(1, 2);
    assert_in_range(each_call(reopen, nothing), 12, CALLS_MAX);
    store_has_jobs("1 generation 1 last 17");
    close_store();
}

/* The system does not write again what it could not write: the journal is emptied first. */
static void a_transaction_after_one_that_failed_begins_with_an_empty_journal(void **state)
{
    struct by_problem problem = {0};

    (void)state;
    open_store();
    checkpoints = 0;
    assert_int_equal(by_state_elect(store.state, 6, &problem), 0);
    assert_int_equal(checkpoints, 0);
    calls_left = 1;
    assert_int_equal(by_state_elect(store.state, 7, &problem), BY_EIO);
    for (unsigned i = 0; i < 2; i++) { /* once */
        assert_int_equal(by_state_elect(store.state, 8, &problem), 0);
        assert_int_equal(checkpoints, 1);
    }
    close_store();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_push_whose_begin_fails_is_not_in_the_store),
        cmocka_unit_test(a_value_that_cannot_be_bound_is_an_error),
        cmocka_unit_test(generations_that_are_not_recorded_are_not_reserved),
        cmocka_unit_test(a_record_that_cannot_be_written_is_not_there),
        cmocka_unit_test(a_record_that_is_not_committed_is_told_and_recorded_with_the_next_change),
        cmocka_unit_test(an_election_id_that_is_not_recorded_is_not_used),
        cmocka_unit_test(an_open_push_stays_open_until_it_can_be_settled),
        cmocka_unit_test(an_end_that_cannot_be_recorded_is_recorded_with_the_next_push),
        cmocka_unit_test(what_cannot_be_read_is_an_error),
        cmocka_unit_test(a_store_that_cannot_be_opened_is_opened_the_next_time),
        cmocka_unit_test(a_transaction_after_one_that_failed_begins_with_an_empty_journal),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
