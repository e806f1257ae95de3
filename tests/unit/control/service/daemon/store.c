/* Implements store.h. */
#include "tests/unit/control/service/daemon/store.h"

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

#include "control/base/alloc.h"
#include "control/planner/planner.h"
#include "offload/table/image.h"
#include "offload/wire/types.h"
#include "tests/unit/control/tables/bench.h"

struct store_bench store;

void store_reopen(void)
{
    struct by_problem problem = {0};

    by_state_close(store.state);
    if (by_state_open(store.folder, store.topology, &store.lower, &store.state, &problem) != 0)
        fail_msg("%s", problem.text);
}

void store_open(void)
{
    memset(&store, 0, sizeof(store));
    snprintf(store.folder, sizeof(store.folder), "/tmp/by-test-state-XXXXXX");
    assert_non_null(mkdtemp(store.folder));
    store.topology = bench_topology("h0 h1 x0* x1*", "h0-x0 x0-x1 x1-h1");
    for (unsigned i = 0; i < JOBS_MAX; i++)
        store.jobs[i].spec =
            (struct by_job_spec){.job = (uint16_t)(i + 1),
                                 .want_count = 1,
                                 .wants = {{.collective = BY_COLLECTIVE_ALLREDUCE, .root = -1}},
                                 .share = {0, 1}};
    store_reopen();
}

void store_close(void)
{
    static const char *const files[] = {"banyand.db", "banyand.db-wal", "banyand.db-shm", "lock"};
    char path[96];

    by_state_close(store.state);
    for (unsigned i = 0; i < JOBS_MAX; i++) {
        by_job_tables_free(store.jobs[i].tables);
        free(store.jobs[i].spec.member);
    }
    for (unsigned i = 0; i < 4; i++) {
        snprintf(path, sizeof(path), "%s/%s", store.folder, files[i]);
        unlink(path);
    }
    assert_int_equal(rmdir(store.folder), 0);
    by_topology_free(store.topology);
}

/* Tables of an allreduce, and of a broadcast if the job requests one. */
static struct by_job_tables *make_tables(const struct by_job *job, uint16_t gen)
{
    struct by_job_tables *tables = by_alloc(1, sizeof(*tables));
    struct by_problem problem = {0};

    tables->gen = gen;
    tables->window = 32;
    tables->plans = by_alloc(2, sizeof(struct by_plan *));
    for (uint32_t i = 0; i < job->spec.want_count; i++) {
        struct by_plan_options options = {
            .collective = job->spec.wants[i].collective, .root = job->spec.wants[i].root, .in_network = true};

        assert_int_equal(
            by_plan_make(store.topology, &options, &tables->plans[tables->plan_count++], &problem), 0);
    }
    tables->lost_links = by_alloc(LINKS, sizeof(bool));
    for (unsigned i = 0; i < sizeof(tables->secret); i++)
        tables->secret[i] = (uint8_t)(job->spec.job * 16u + i);
    snprintf(tables->note, sizeof(tables->note), "a note of job %u", job->spec.job);
    if (by_fabric_lower(store.topology, job->spec.job, &store.lower, tables, &problem) != 0)
        fail_msg("%s", problem.text);
    tables->slot_base[X1] = 100u * job->spec.job;
    return tables;
}

void store_change(struct store_change *made, uint64_t push_id)
{
    memset(made, 0, sizeof(*made));
    made->change.topology = store.topology;
    made->change.jobs = made->jobs;
    made->change.images = made->images;
    made->change.nonces = made->nonces;
    made->change.target_nodes = made->target_nodes;
    made->change.push_id = push_id;
}

struct by_change_job *store_add(struct store_change *made, unsigned place, bool anew)
{
    struct by_job *job = &store.jobs[place];
    struct by_change_job *entry = &made->jobs[made->change.job_count++];

    *entry = (struct by_change_job){.job = job, .anew = anew};
    if (anew) {
        entry->gen = job->gen_last = by_job_gen_next(job->gen_last);
        entry->tables = make_tables(job, entry->gen);
    }
    return entry;
}

void store_take(struct by_change_job *entry, bool adopted)
{
    if (adopted) {
        by_job_tables_free(entry->job->tables);
        entry->job->tables = entry->tables;
    } else {
        by_job_tables_free(entry->tables);
    }
    entry->tables = NULL;
}

void store_add_image(struct store_change *made, uint32_t node, uint8_t byte, uint64_t nonce, bool target)
{
    memset(store.bytes[node], byte, sizeof(store.bytes[node]));
    made->images[node] =
        (struct by_change_image){.bytes = store.bytes[node],
                                 .size = sizeof(store.bytes[node]),
                                 .hash = by_image_hash(store.bytes[node], sizeof(store.bytes[node]))};
    made->nonces[node] = nonce;
    if (target)
        made->target_nodes[made->change.target_count++] = node;
}

void store_begin(struct store_change *made)
{
    struct by_problem problem = {0};

    if (by_state_begin(store.state, &made->change, &problem) != 0)
        fail_msg("%s", problem.text);
}

void store_push(unsigned place, uint64_t push_id)
{
    struct store_change made;
    struct by_change_job *anew = NULL;

    store_change(&made, push_id);
    for (unsigned i = 0; i < JOBS_MAX; i++) {
        if (i == place)
            anew = store_add(&made, i, true);
        else if (store.jobs[i].tables != NULL)
            store_add(&made, i, false);
    }
    store_begin(&made);
    by_state_finish(store.state, true, true);
    store_take(anew, true);
}

struct store_loaded store_load(void)
{
    struct store_loaded loaded;
    struct by_problem problem = {0};

    if (by_state_jobs(store.state, &loaded.jobs, &loaded.count, &problem) != 0)
        fail_msg("%s", problem.text);
    return loaded;
}

void store_unload(struct store_loaded *loaded)
{
    for (uint32_t i = 0; i < loaded->count; i++) {
        by_job_tables_free(loaded->jobs[i]->tables);
        by_job_spec_free(&loaded->jobs[i]->spec);
        free(loaded->jobs[i]);
    }
    free(loaded->jobs);
}

void store_has_jobs(const char *expected)
{
    struct store_loaded loaded = store_load();
    char text[300] = "";

    for (uint32_t i = 0; i < loaded.count; i++) {
        const struct by_job *job = loaded.jobs[i];
        size_t used = strlen(text);

        snprintf(text + used, sizeof(text) - used, "%s%u %s", i ? ", " : "", job->spec.job,
                 job->state == BY_JOB_RUNNING ? "" : by_job_state_name(job->state));
        used = strlen(text);
        if (job->tables != NULL)
            snprintf(text + used, sizeof(text) - used, "generation %u", job->tables->gen);
        used = strlen(text);
        snprintf(text + used, sizeof(text) - used, " last %u", job->gen_last);
    }
    assert_string_equal(text, expected);
    store_unload(&loaded);
}

uint16_t store_ended(uint16_t job)
{
    static uint16_t gens[BY_JOBS_MAX];
    struct by_problem problem = {0};

    memset(gens, 0, sizeof(gens));
    assert_int_equal(by_state_ended(store.state, gens, &problem), 0);
    return gens[job];
}

void store_has_image(uint32_t node, uint8_t byte, uint64_t nonce)
{
    struct by_change_image image;
    struct by_problem problem = {0};
    uint64_t found;

    assert_int_equal(by_state_image(store.state, node, &image, &found, &problem), 0);
    assert_true(found == nonce);
    assert_int_equal(image.bytes != NULL, byte != 0);
    if (byte != 0) {
        assert_int_equal(image.size, 3);
        for (unsigned i = 0; i < 3; i++)
            assert_int_equal(image.bytes[i], byte);
        assert_true(image.hash == by_image_hash(image.bytes, image.size));
    }
    free(image.bytes);
}

void store_has_push(uint64_t push_id, uint32_t count, uint32_t first)
{
    struct by_state_open_push open;
    struct by_problem problem = {0};

    assert_int_equal(by_state_pending(store.state, &open, &problem), 0);
    assert_true(open.push_id == push_id);
    assert_int_equal(open.count, count);
    if (count > 0)
        assert_int_equal(open.targets[0].node, first);
    by_state_pending_free(&open);
    assert_int_equal(open.count, 0);
}

void store_sql(const char *sql)
{
    char path[96];
    sqlite3 *db;

    snprintf(path, sizeof(path), "%s/banyand.db", store.folder);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
}

void store_downgrade(uint64_t high, uint64_t low)
{
    char sql[400];

    by_state_close(store.state);
    store.state = NULL;
    snprintf(
        sql, sizeof(sql),
        "ALTER TABLE tables DROP COLUMN secret; DROP TABLE ended; UPDATE meta SET number = 1 WHERE key = "
        "'version'; INSERT INTO meta VALUES ('seed_high', %lld), ('seed_low', %lld);",
        (long long)high, (long long)low);
    store_sql(sql);
}
