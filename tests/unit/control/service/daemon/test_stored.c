/* What a daemon reads from its store when it starts again: jobs as they were, tables that are
 * damaged, and the keys of an earlier version; a store that does not answer. Switches are agents
 * without packets (rig.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <sqlite3.h>

#include "control/service/daemon/changes.h"
#include "control/service/daemon/daemon.h"
#include "control/service/daemon/state.h"
#include "control/tables/keyed.h"
#include "offload/base/bytes.h"
#include "offload/base/errors.h"
#include "offload/table/image.h"
#include "offload/wire/seal.h"
#include "tests/unit/control/service/daemon/rig.h"

/* Converts the store to the format of version 1, with `seed`. */
static void store_downgrade(const struct daemon_rig *rig, const uint8_t seed[16])
{
    char path[128], sql[400];
    sqlite3 *db;

    snprintf(path, sizeof(path), "%s/banyand.db", rig->state);
    snprintf(
        sql, sizeof(sql),
        "ALTER TABLE tables DROP COLUMN secret; DROP TABLE ended; UPDATE meta SET number = 1 WHERE key = "
        "'version'; INSERT INTO meta VALUES ('seed_high', %lld), ('seed_low', %lld);",
        (long long)by_get64(seed), (long long)by_get64(seed + 8));
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
}

static void a_store_with_a_seed_gives_jobs_their_keys_and_forgets_it(void **state)
{
    struct by_lower_options options = {.mtu = BY_LOWER_MTU, .cover = BY_COVER_HEADER, .seed = {1, 2, 3}};
    struct daemon_rig rig;
    struct rig_daemon daemon;
    struct by_state *store;
    struct by_problem problem = {0};
    struct by_image_key key;
    struct by_job **jobs;
    uint32_t count;

    (void)state;
    rig_open(&rig);
    daemon =
        rig_start(&rig, (const char *const[]){"--keyed", "--state", rig.state, "--job", "1=allreduce", NULL});
    rig_await(&daemon, "job 1 runs");
    assert_int_equal(rig_stop(&daemon), 0);
    store_downgrade(&rig, options.seed);
    for (unsigned i = 0; i < 2; i++) { /* the second time without the seed */
        if (by_state_open(rig.state, rig.topology, &options, &store, &problem) != 0 ||
            by_state_jobs(store, &jobs, &count, &problem) != 0)
            fail_msg("%s", problem.text);
        assert_int_equal(count, 1);
        by_lower_key(&options, &(struct by_image_job){.job = 1, .gen = jobs[0]->tables->gen}, NULL, &key);
        assert_memory_equal(jobs[0]->tables->lowering->keys[0].key, key.key, sizeof(key.key));
        by_job_tables_free(jobs[0]->tables);
        by_job_spec_free(&jobs[0]->spec);
        free(jobs[0]);
        free(jobs);
        by_state_close(store);
    }
    rig_close(&rig);
}

/* The reply to a request for `path` must contain all texts of a NULL-terminated list. */
static void shows(const struct daemon_rig *rig, const char *path, const char *const *texts)
{
    char *reply = rig_ask(rig, "GET", path, NULL, 200);

    for (; *texts != NULL; texts++)
        if (strstr(reply, *texts) == NULL)
            fail_msg("no '%s' in %s: %s", *texts, path, reply);
    free(reply);
}

static void status_and_metrics_show_jobs_as_before_a_restart(void **state)
{
    static const char *const metrics[] = {"banyan_switch_up{switch=\"x0\"} 1\n",
                                          "banyan_switch_silence_seconds{switch=\"x1\"} 0\n",
                                          "banyan_switch_slots{switch=\"x0\"} 300\n",
                                          "banyan_job_state{job=\"1\",state=\"running\"} 1\n",
                                          "banyan_job_state{job=\"2\",state=\"failed\"} 0\n",
                                          "banyan_job_generation{job=\"1\"} 1\n",
                                          "banyan_job_ranks{job=\"2\"} 2\n",
                                          NULL};
    struct daemon_rig rig;
    struct rig_daemon daemon;
    char path[96], ready[200];

    (void)state;
    rig_open(&rig);
    rig_resize(&rig, 300);
    snprintf(path, sizeof(path), "%s/http", rig.folder);
    snprintf(ready, sizeof(ready), "socket %s, http off", path);
    for (unsigned i = 0; i < 2; i++) {
        daemon = rig_start(&rig, (const char *const[]){"--state", rig.state, "--socket", path, "--job",
                                                       "1=allreduce", "--job", "2=allreduce", NULL});
        rig_await(&daemon, ready);
        if (i == 0)
            rig_await(&daemon, "job 2 runs");
        shows(&rig, "/v1/jobs/1",
              (const char *const[]){"\"state\": \"running\"", "\"note\": null", "\"window\": 256", NULL});
        shows(&rig, "/v1/jobs/2",
              (const char *const[]){"\"note\": \"its windows are 32 slots instead of 256", NULL});
        shows(&rig, "/metrics", metrics);
        assert_false(
            rig_has_said(&daemon, "the end of a push is recorded")); /* only later, after a failure */
        assert_int_equal(rig_stop(&daemon), 0);
    }
    rig_close(&rig);
}

/* The generation recorded for job 1, and a number that changes with each write of another
 * connection. */
static void look_at_store(sqlite3 *db, int64_t *gen, int64_t *version)
{
    static const char *const questions[] = {"SELECT gen_last FROM job WHERE job = 1 AND push = 0",
                                            "PRAGMA data_version"};
    int64_t *const answers[] = {gen, version};

    for (unsigned i = 0; i < 2; i++) {
        sqlite3_stmt *row;

        assert_int_equal(sqlite3_prepare_v2(db, questions[i], -1, &row, NULL), SQLITE_OK);
        assert_int_equal(sqlite3_step(row), SQLITE_ROW);
        *answers[i] = sqlite3_column_int64(row, 0);
        sqlite3_finalize(row);
    }
}

/* The store of a daemon that has ended, with job 1, and a change that makes new tables for it. */
struct stored_change {
    struct daemon_rig rig;
    struct by_state *store;
    struct by_job **jobs;
    struct by_change change;
    struct by_change_job entry;
    sqlite3 *db; /* another connection, which sees what is committed */
};

static void stored_open(struct stored_change *stored)
{
    static const struct by_lower_options options = {.mtu = BY_LOWER_MTU};
    struct by_problem problem = {0};
    struct rig_daemon daemon;
    uint32_t count = 0;
    char path[128];

    *stored = (struct stored_change){.entry = {.anew = true}};
    rig_open(&stored->rig);
    daemon = rig_start(&stored->rig,
                       (const char *const[]){"--state", stored->rig.state, "--job", "1=allreduce", NULL});
    rig_await(&daemon, "job 1 runs");
    assert_int_equal(rig_stop(&daemon), 0);
    if (by_state_open(stored->rig.state, stored->rig.topology, &options, &stored->store, &problem) != 0 ||
        by_state_jobs(stored->store, &stored->jobs, &count, &problem) != 0)
        fail_msg("%s", problem.text);
    assert_int_equal(count, 1);
    snprintf(path, sizeof(path), "%s/banyand.db", stored->rig.state);
    assert_int_equal(sqlite3_open(path, &stored->db), SQLITE_OK);
    stored->change.topology = stored->rig.topology;
    stored->change.images = calloc(stored->rig.topology->node_count, sizeof(*stored->change.images));
    stored->change.jobs = &stored->entry;
    stored->change.job_count = 1;
    stored->change.push_id = 1;
    stored->entry.job = stored->jobs[0];
    stored->entry.tables = stored->jobs[0]->tables;
    assert_non_null(stored->change.images);
}

static void stored_close(struct stored_change *stored)
{
    sqlite3_close(stored->db);
    free(stored->change.images);
    by_job_tables_free(stored->jobs[0]->tables);
    by_job_spec_free(&stored->jobs[0]->spec);
    free(stored->jobs[0]);
    free(stored->jobs);
    by_state_close(stored->store);
    rig_close(&stored->rig);
}

/* Gives the change's job this generation. */
static void stored_gen(struct stored_change *stored, uint16_t gen)
{
    stored->jobs[0]->gen_last = stored->entry.gen = gen;
}

/* Hosts freeze for the next generations without a write; numbers beyond those that a push has
 * reserved are written first. */
static void generations_are_recorded_before_they_are_needed(void **state)
{
    struct stored_change stored;
    struct by_problem problem = {0};
    int64_t recorded, version, before;
    uint32_t writes = 0;

    (void)state;
    stored_open(&stored);
    look_at_store(stored.db, &recorded, &version);
    assert_true(recorded > stored.jobs[0]->tables->gen);
    /* A push, after which 40 attempts fail before their push. */
    stored_gen(&stored, (uint16_t)(recorded + 1));
    assert_int_equal(by_state_begin(stored.store, &stored.change, &problem), 0);
    by_state_finish(stored.store, true, true);
    look_at_store(stored.db, &recorded, &version);
    for (unsigned i = 0; i < 40; i++) {
        stored_gen(&stored, by_job_gen_next(stored.entry.gen));
        before = version;
        assert_int_equal(by_state_reserve(stored.store, &stored.change, &problem), 0);
        look_at_store(stored.db, &recorded, &version);
        assert_true(recorded >= stored.entry.gen);
        writes += version != before;
        assert_true(i > 0 || writes == 0);
    }
    assert_in_range(writes, 2, 3);
    stored_close(&stored);
}

static void a_repair_is_recorded_whole_after_its_push(void **state)
{
    struct stored_change stored;
    struct by_state_open_push pending;
    struct by_problem problem = {0};
    int64_t recorded, version, before, first;

    (void)state;
    stored_open(&stored);
    look_at_store(stored.db, &first, &before);
    stored_gen(&stored, (uint16_t)(stored.jobs[0]->tables->gen + 1));
    assert_int_equal(by_state_reserve(stored.store, &stored.change, &problem), 0);
    look_at_store(stored.db, &first, &before);
    /* No reader sees it before the commit, and no push is open after it. */
    assert_true(by_state_may_follow(stored.store, &stored.change));
    assert_int_equal(by_state_write(stored.store, &stored.change, &problem), 0);
    look_at_store(stored.db, &recorded, &version);
    assert_true(recorded == first && version == before);
    by_state_commit(stored.store);
    look_at_store(stored.db, &recorded, &version);
    assert_true(recorded > stored.entry.gen && version != before);
    assert_int_equal(by_state_pending(stored.store, &pending, &problem), 0);
    assert_int_equal(pending.push_id, 0);
    assert_true(by_state_is_settled(stored.store));
    /* A push that failed leaves no trace. */
    before = version;
    first = recorded;
    stored_gen(&stored, (uint16_t)(stored.entry.gen + 1));
    assert_true(by_state_may_follow(stored.store, &stored.change));
    assert_int_equal(by_state_write(stored.store, &stored.change, &problem), 0);
    by_state_discard(stored.store);
    by_state_commit(stored.store);
    look_at_store(stored.db, &recorded, &version);
    assert_true(recorded == first && version == before);
    /* Generations that are not reserved, and what a user waits for, are recorded first. */
    stored_gen(&stored, (uint16_t)(recorded + 1));
    assert_false(by_state_may_follow(stored.store, &stored.change));
    stored_gen(&stored, (uint16_t)recorded);
    assert_true(by_state_may_follow(stored.store, &stored.change));
    stored.change.ended = 2;
    assert_false(by_state_may_follow(stored.store, &stored.change));
    stored.change.ended = 0;
    stored.entry.error = BY_ENOENT;
    assert_false(by_state_may_follow(stored.store, &stored.change));
    stored.entry.error = 0;
    stored.entry.anew = false;
    assert_false(by_state_may_follow(stored.store, &stored.change));
    stored.entry.anew = true;
    stored.jobs[0]->tables = NULL;
    assert_false(by_state_may_follow(stored.store, &stored.change));
    stored.jobs[0]->tables = stored.entry.tables;
    assert_int_equal(by_state_begin(stored.store, &stored.change, &problem), 0);
    assert_false(by_state_may_follow(stored.store, &stored.change)); /* an open push */
    by_state_finish(stored.store, true, true);
    /* The end of the program commits what its worker has not. */
    look_at_store(stored.db, &first, &before);
    stored_gen(&stored, (uint16_t)(stored.entry.gen + 1));
    assert_int_equal(by_state_write(stored.store, &stored.change, &problem), 0);
    by_state_close(stored.store);
    stored.store = NULL;
    look_at_store(stored.db, &recorded, &version);
    assert_int_equal(recorded, first + 1);
    stored_close(&stored);
}

static void a_table_that_is_damaged_in_the_store_is_named_and_made_again(void **state)
{
    struct daemon_rig rig;
    struct rig_daemon daemon;
    char path[128];
    sqlite3 *db;

    (void)state;
    rig_open(&rig);
    daemon = rig_start(&rig, (const char *const[]){"--state", rig.state, "--job", "1=allreduce", NULL});
    rig_await(&daemon, "job 1 runs");
    assert_int_equal(rig_stop(&daemon), 0);
    snprintf(path, sizeof(path), "%s/banyand.db", rig.state);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db,
                                  "UPDATE image SET bytes = zeroblob(length(bytes)) WHERE node ="
                                  " (SELECT max(node) FROM image)",
                                  NULL, NULL, NULL),
                     SQLITE_OK);
    sqlite3_close(db);
    for (unsigned i = 0; i < 2; i++) { /* the next change makes it */
        daemon = rig_start(&rig, (const char *const[]){"--state", rig.state, "--job", "2=allreduce", NULL});
        rig_await(&daemon, "ready, 2 of 2 switches are up");
        assert_int_equal(rig_has_said(&daemon, "in --state is damaged: it is rebuilt"), i == 0);
        if (i == 0)
            rig_await(&daemon, "job 2 runs");
        assert_int_equal(rig_stop(&daemon), 0);
    }
    rig_close(&rig);
}

/* Nothing listens at this port. Each attempt fails for the same reason, ten times a second. */
static void an_etcd_that_does_not_answer_is_reported_once(void **state)
{
    char line[512];
    struct daemon_rig rig;
    struct rig_daemon daemon;
    unsigned times = 0;
    FILE *log;

    (void)state;
    rig_open(&rig);
    daemon = rig_start(&rig, (const char *const[]){"--store", "etcd:http://127.0.0.1:1", NULL});
    rig_await(&daemon, "no member of etcd serves the request");
    usleep(500000);
    log = fopen(daemon.log, "r");
    assert_non_null(log);
    while (fgets(line, sizeof(line), log) != NULL)
        times += strstr(line, "no member of etcd serves the request") != NULL;
    fclose(log);
    assert_int_equal(times, 1);
    assert_int_equal(rig_stop(&daemon), 0);
    rig_close(&rig);
}

/* Started as "banyand", this program is the daemon of rig_start. */
int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(generations_are_recorded_before_they_are_needed),
        cmocka_unit_test(a_repair_is_recorded_whole_after_its_push),
        cmocka_unit_test(an_etcd_that_does_not_answer_is_reported_once),
        cmocka_unit_test(a_store_with_a_seed_gives_jobs_their_keys_and_forgets_it),
        cmocka_unit_test(a_table_that_is_damaged_in_the_store_is_named_and_made_again),
        cmocka_unit_test(status_and_metrics_show_jobs_as_before_a_restart),
    };

    if (strcmp(argv[0], "banyand") == 0)
        return by_daemon_main(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
