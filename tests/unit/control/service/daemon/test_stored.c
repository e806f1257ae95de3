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

/* Hosts freeze for the next generations without a write; numbers beyond those that a push has
 * reserved are written first. */
static void generations_are_recorded_before_they_are_needed(void **state)
{
    static const struct by_lower_options options = {.mtu = BY_LOWER_MTU};
    struct by_problem problem = {0};
    struct daemon_rig rig;
    struct rig_daemon daemon;
    struct by_state *store = NULL;
    struct by_job **jobs = NULL;
    struct by_change change = {0};
    struct by_change_job entry = {.anew = true};
    uint32_t count = 0, writes = 0;
    int64_t recorded, version, before;
    char path[128];
    sqlite3 *db;

    (void)state;
    rig_open(&rig);
    daemon = rig_start(&rig, (const char *const[]){"--state", rig.state, "--job", "1=allreduce", NULL});
    rig_await(&daemon, "job 1 runs");
    assert_int_equal(rig_stop(&daemon), 0);
    if (by_state_open(rig.state, rig.topology, &options, &store, &problem) != 0 ||
        by_state_jobs(store, &jobs, &count, &problem) != 0)
        fail_msg("%s", problem.text);
    assert_int_equal(count, 1);
    snprintf(path, sizeof(path), "%s/banyand.db", rig.state);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    look_at_store(db, &recorded, &version);
    assert_true(recorded > jobs[0]->tables->gen);
    change.topology = rig.topology;
    change.images = calloc(rig.topology->node_count, sizeof(*change.images));
    change.jobs = &entry;
    change.job_count = 1;
    change.push_id = 1;
    entry.job = jobs[0];
    entry.tables = jobs[0]->tables;
    assert_non_null(change.images);
    /* A push, after which 40 attempts fail before their push. */
    jobs[0]->gen_last = entry.gen = (uint16_t)(recorded + 1);
    assert_int_equal(by_state_begin(store, &change, &problem), 0);
    by_state_finish(store, true, true);
    look_at_store(db, &recorded, &version);
    for (unsigned i = 0; i < 40; i++) {
        jobs[0]->gen_last = entry.gen = by_job_gen_next(entry.gen);
        before = version;
        assert_int_equal(by_state_reserve(store, &change, &problem), 0);
        look_at_store(db, &recorded, &version);
        assert_true(recorded >= entry.gen);
        writes += version != before;
        assert_true(i > 0 || writes == 0);
    }
    assert_in_range(writes, 2, 3);
    sqlite3_close(db);
    free(change.images);
    by_job_tables_free(jobs[0]->tables);
    by_job_spec_free(&jobs[0]->spec);
    free(jobs[0]);
    free(jobs);
    by_state_close(store);
    rig_close(&rig);
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
        cmocka_unit_test(an_etcd_that_does_not_answer_is_reported_once),
        cmocka_unit_test(a_store_with_a_seed_gives_jobs_their_keys_and_forgets_it),
        cmocka_unit_test(a_table_that_is_damaged_in_the_store_is_named_and_made_again),
        cmocka_unit_test(status_and_metrics_show_jobs_as_before_a_restart),
    };

    if (strcmp(argv[0], "banyand") == 0)
        return by_daemon_main(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
