/* The store. In all tables, push 0 is what the switches have, push 1 what an open push brings.
 * Neighbours: state_folder.c and state_etcd.c keep the database, state_jobs.c reads jobs; changes.c
 * records pushes. See state.h. */
#include "control/service/daemon/state.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control/base/alloc.h"
#include "control/base/fraction.h"
#include "control/fabric/build.h"
#include "control/service/daemon/say.h"
#include "control/service/daemon/state_inside.h"
#include "control/tables/keyed.h"
#include "offload/base/bytes.h"
#include "offload/base/errors.h"

/* Generations of a job that are recorded in advance with each push (count), so that hosts need not
 * wait for the store when something fails. */
#define RESERVE 16u
/* Version of the tables below. */
#define STATE_VERSION 2

static const char schema[] =
    "PRAGMA synchronous = FULL; PRAGMA secure_delete = ON;"
    "CREATE TABLE IF NOT EXISTS meta(key TEXT PRIMARY KEY, number INTEGER NOT NULL);"
    "CREATE TABLE IF NOT EXISTS job(push INTEGER, job INTEGER, failed INTEGER NOT NULL, text TEXT NOT NULL,"
    " gen_last INTEGER NOT NULL, name TEXT NOT NULL, wants TEXT NOT NULL, ranks TEXT, window INTEGER NOT "
    "NULL,"
    " share TEXT NOT NULL, PRIMARY KEY(push, job));"
    "CREATE TABLE IF NOT EXISTS tables(push INTEGER, job INTEGER, gen INTEGER NOT NULL, window INTEGER NOT "
    "NULL,"
    " note TEXT NOT NULL, lost_links BLOB NOT NULL, slot_base BLOB NOT NULL, secret BLOB NOT NULL,"
    " PRIMARY KEY(push, job));"
    "CREATE TABLE IF NOT EXISTS standby(push INTEGER, job INTEGER, gen INTEGER, base INTEGER NOT NULL,"
    " place INTEGER NOT NULL, first_tree INTEGER NOT NULL, window INTEGER NOT NULL, lost_links BLOB NOT NULL,"
    " slot_base BLOB NOT NULL, secret BLOB NOT NULL, replaces BLOB NOT NULL, PRIMARY KEY(push, job, gen));"
    "CREATE TABLE IF NOT EXISTS standby_plan(push INTEGER, job INTEGER, gen INTEGER, number INTEGER,"
    " text BLOB NOT NULL, PRIMARY KEY(push, job, gen, number));"
    "CREATE TABLE IF NOT EXISTS moved(push INTEGER, job INTEGER, gen INTEGER NOT NULL, first_tree INTEGER NOT"
    " NULL, PRIMARY KEY(push, job));"
    "CREATE TABLE IF NOT EXISTS grouped(job INTEGER PRIMARY KEY);"
    "CREATE TABLE IF NOT EXISTS ended(job INTEGER PRIMARY KEY, gen_last INTEGER NOT NULL);"
    "CREATE TABLE IF NOT EXISTS plan(push INTEGER, job INTEGER, number INTEGER, text BLOB NOT NULL,"
    " PRIMARY KEY(push, job, number));"
    "CREATE TABLE IF NOT EXISTS image(push INTEGER, node INTEGER, target INTEGER NOT NULL, hash INTEGER NOT "
    "NULL,"
    " nonce INTEGER NOT NULL, bytes BLOB NOT NULL, PRIMARY KEY(push, node));";

int by_state_fail(struct by_state *state, struct by_problem *problem)
{
    return by_problem_say(problem, BY_EIO, "%.200s%s: %.150s: %s", state->where, state->place->file,
                          sqlite3_errmsg(state->db), state->place->remedy);
}

int by_state_run(struct by_state *state, struct by_problem *problem, const char *sql)
{
    return sqlite3_exec(state->db, sql, NULL, NULL, NULL) == SQLITE_OK ? 0 : by_state_fail(state, problem);
}

sqlite3_stmt *by_state_ask(struct by_state *state, const char *sql, const char *kinds, ...)
{
    sqlite3_stmt *statement = NULL;
    va_list arguments;
    int error = SQLITE_OK;

    if (sqlite3_prepare_v2(state->db, sql, -1, &statement, NULL) != SQLITE_OK)
        return NULL;
    va_start(arguments, kinds);
    for (int i = 1; kinds[i - 1] != 0 && error == SQLITE_OK; i++) {
        const char *text;
        const void *bytes;

        switch (kinds[i - 1]) {
        case 'n':
            error = sqlite3_bind_int64(statement, i, va_arg(arguments, int64_t));
            break;
        case 't':
            text = va_arg(arguments, const char *);
            error = sqlite3_bind_text(statement, i, text, -1, SQLITE_TRANSIENT);
            break;
        default: /* b: bytes and their count */
            bytes = va_arg(arguments, const void *);
            error = sqlite3_bind_blob64(statement, i, bytes, va_arg(arguments, size_t), SQLITE_TRANSIENT);
        }
    }
    va_end(arguments);
    if (error == SQLITE_OK)
        return statement;
    sqlite3_finalize(statement); /* a value that is not bound would be NULL */
    return NULL;
}

bool by_state_next(struct by_state *state, sqlite3_stmt *row, int *error, struct by_problem *problem)
{
    int step = *error == 0 ? sqlite3_step(row) : SQLITE_DONE;

    if (step != SQLITE_ROW && step != SQLITE_DONE)
        *error = by_state_fail(state, problem);
    return step == SQLITE_ROW;
}

int by_state_do(struct by_state *state, struct by_problem *problem, sqlite3_stmt *statement)
{
    int done = statement != NULL ? sqlite3_step(statement) : SQLITE_ERROR;

    if (done == SQLITE_DONE) {
        sqlite3_finalize(statement);
        return 0;
    }
    by_state_fail(state, problem);
    sqlite3_finalize(statement);
    return BY_EIO;
}

/* Reads a number of meta; 0 if there is none. */
static int get_number(struct by_state *state, const char *key, uint64_t *number, struct by_problem *problem)
{
    sqlite3_stmt *row = by_state_ask(state, "SELECT number FROM meta WHERE key = ?", "t", key);
    int error = row == NULL ? by_state_fail(state, problem) : 0;

    *number = 0;
    if (error == 0 && by_state_next(state, row, &error, problem))
        *number = (uint64_t)sqlite3_column_int64(row, 0);
    sqlite3_finalize(row);
    return error;
}

static int put_number(struct by_state *state, const char *key, uint64_t number, struct by_problem *problem)
{
    return by_state_do(
        state, problem,
        by_state_ask(state, "REPLACE INTO meta(key, number) VALUES (?, ?)", "tn", key, (int64_t)number));
}

/* After a failed sync the system does not write again what it could not write, although reads show
 * it. So the journal is emptied into the database, and starts empty. */
static int begin_transaction(struct by_state *state, struct by_problem *problem)
{
    int error = state->doubt ? by_state_run(state, problem, "PRAGMA wal_checkpoint(TRUNCATE)") : 0;

    if (error != 0)
        return error;
    state->doubt = false;
    return by_state_run(state, problem, "BEGIN IMMEDIATE");
}

/* Keeps and commits a transaction, or rolls it back after an error. */
static int end_transaction(struct by_state *state, int error, struct by_problem *problem)
{
    struct by_problem ignored;

    if (error == 0)
        error = state->place->keep(state, problem);
    if (error == 0)
        error = by_state_run(state, problem, "COMMIT");
    if (error != 0) {
        by_state_run(state, &ignored, "ROLLBACK");
        state->doubt = true;
    }
    return error;
}

/* Identifies the fabric: a hash of its normalized topology. */
static uint64_t fabric_of(const struct by_topology *topology)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *stream = by_text_open(&text, &bytes);
    uint64_t hash;

    by_topology_write(topology, stream);
    fclose(stream);
    hash = by_image_hash((const uint8_t *)text, bytes);
    free(text);
    return hash;
}

/* Version 1 derived the keys of all jobs from one seed. Running jobs keep their keys until their
 * next generation; the seed is deleted. */
static int store_keys(struct by_state *state, struct by_problem *problem)
{
    sqlite3_stmt *row;
    uint64_t high = 0, low = 0;
    int error =
        by_state_run(state, problem, "ALTER TABLE tables ADD COLUMN secret BLOB NOT NULL DEFAULT x''");

    if (error == 0)
        error = get_number(state, "seed_high", &high, problem);
    if (error == 0)
        error = get_number(state, "seed_low", &low, problem);
    if (error != 0)
        return error;
    by_put64(state->lower.seed, high);
    by_put64(state->lower.seed + 8, low);
    row = by_state_ask(state, "SELECT job, gen FROM tables GROUP BY job, gen", "");
    if (row == NULL)
        return by_state_fail(state, problem);
    while (by_state_next(state, row, &error, problem)) {
        struct by_image_job job = {.job = (uint16_t)sqlite3_column_int64(row, 0),
                                   .gen = (uint16_t)sqlite3_column_int64(row, 1)};
        struct by_image_key key;

        by_lower_key(&state->lower, &job, NULL, &key);
        error =
            by_state_do(state, problem,
                        by_state_ask(state, "UPDATE tables SET secret = ? WHERE job = ? AND gen = ?", "bnn",
                                     key.key, sizeof(key.key), (int64_t)job.job, (int64_t)job.gen));
    }
    sqlite3_finalize(row);
    if (error == 0)
        error = by_state_run(state, problem, "DELETE FROM meta WHERE key IN ('seed_high', 'seed_low')");
    return error;
}

static int upgrade(struct by_state *state, struct by_problem *problem)
{
    int error = begin_transaction(state, problem);

    if (error != 0)
        return error;
    error = store_keys(state, problem);
    if (error == 0)
        error = put_number(state, "version", STATE_VERSION, problem);
    return end_transaction(state, error, problem);
}

/* Initializes an empty database. */
static int begin_state(struct by_state *state, uint64_t lower, struct by_problem *problem)
{
    int error = begin_transaction(state, problem);

    if (error != 0)
        return error;
    error = put_number(state, "fabric", fabric_of(state->topology), problem);
    if (error == 0)
        error = put_number(state, "lower", lower, problem);
    if (error == 0)
        error = put_number(state, "version", STATE_VERSION, problem);
    return end_transaction(state, error, problem);
}

/* Checks that the database has a supported version and belongs to this fabric; initializes a new
 * one. */
static int check(struct by_state *state, struct by_problem *problem)
{
    uint64_t version, fabric = 0, before = 0;
    uint64_t lower = (uint64_t)state->lower.mtu << 9 | (uint64_t)state->lower.cover << 1 | state->lower.det;
    const struct by_state_place *place = state->place;
    int error = get_number(state, "version", &version, problem);

    if (error == 0)
        error = get_number(state, "fabric", &fabric, problem);
    if (error == 0)
        error = get_number(state, "lower", &before, problem);
    if (error != 0)
        return error;
    if (version == 0)
        return begin_state(state, lower, problem);
    if (version != STATE_VERSION && version != 1)
        return by_problem_say(problem, BY_EVERSION,
                              "%s %.200s has version %" PRIu64 ", and this banyand writes %d: use the "
                              "banyand that wrote it, or %s",
                              place->option, state->where, version, STATE_VERSION, place->another);
    if (fabric != fabric_of(state->topology))
        return by_problem_say(problem, BY_EMISMATCH,
                              "%s %.200s belongs to another fabric: start with its topology, or give %s",
                              place->option, state->where, place->another);
    if (before != lower)
        return by_problem_say(
            problem, BY_EMISMATCH,
            "%s %.200s was made with another --mtu, --det or --keyed, which the tables of running jobs "
            "need: give the same ones, or %s",
            place->option, state->where, place->another);
    return version == 1 ? upgrade(state, problem) : 0;
}

int by_state_start(const struct by_state_place *place, const char *where, struct by_lead *lead,
                   const struct by_topology *topology, const struct by_lower_options *options,
                   struct by_state **result, struct by_problem *problem)
{
    struct by_state *state = by_alloc(1, sizeof(*state));
    int error;

    state->place = place;
    state->lead = lead;
    state->topology = topology;
    state->lower = *options;
    state->lock = -1;
    state->doubt = true;
    snprintf(state->where, sizeof(state->where), "%s", where);
    error = place->open(state, problem);
    if (error == 0)
        error = by_state_run(state, problem, schema);
    if (error == 0)
        error = check(state, problem);
    if (error == 0)
        error = get_number(state, "election", &state->election, problem);
    if (error != 0) {
        by_state_close(state);
        return error;
    }
    *result = state;
    return 0;
}

void by_state_close(struct by_state *state)
{
    if (state == NULL)
        return;
    by_state_commit(state);
    sqlite3_close(state->db);
    state->place->close(state);
    free(state->coming);
    free(state);
}

uint64_t by_state_election(const struct by_state *state)
{
    return state != NULL ? state->election : 0;
}

int by_state_elect(struct by_state *state, uint64_t election_id, struct by_problem *problem)
{
    int error;

    if (state == NULL)
        return 0;
    error = begin_transaction(state, problem);
    if (error == 0)
        error = end_transaction(state, put_number(state, "election", election_id, problem), problem);
    if (error == 0)
        state->election = election_id;
    return error;
}

/* Returns the generation to record for a job that is in `gen`: the next ones are reserved. */
static uint16_t reserve_from(uint16_t gen)
{
    for (unsigned i = 0; i < RESERVE; i++)
        gen = by_job_gen_next(gen);
    return gen;
}

/* Whether a later run begins above this generation. */
static bool is_reserved(const struct by_state *state, uint16_t job, uint16_t gen)
{
    for (unsigned i = 0; i <= RESERVE; i++, gen = by_job_gen_next(gen))
        if (gen == state->reserved[job])
            return true;
    return false;
}

static int put_job(struct by_state *state, const struct by_change_job *entry, struct by_problem *problem)
{
    const struct by_job_spec *spec = &entry->job->spec;
    char *wants = by_state_wants(spec, state->topology), *ranks = by_state_ranks(spec, state->topology);
    char share[BY_FRACTION_TEXT_BYTES];
    int error =
        by_state_do(state, problem,
                    by_state_ask(state, "INSERT INTO job VALUES (1, ?, ?, ?, ?, ?, ?, ?, ?, ?)", "nntntttnt",
                                 (int64_t)spec->job, (int64_t)(entry->error != 0), entry->problem.text,
                                 (int64_t)reserve_from(entry->job->gen_last), spec->name, wants, ranks,
                                 (int64_t)spec->window, by_fraction_text(spec->share, share)));

    /* the number of a job keeps this property as long as the job exists */
    if (error == 0)
        error = by_state_do(state, problem,
                            by_state_ask(state,
                                         spec->is_group ? "REPLACE INTO grouped VALUES (?)"
                                                        : "DELETE FROM grouped WHERE job = ?",
                                         "n", (int64_t)spec->job));
    free(wants);
    free(ranks);
    return error;
}

/* Records the jobs of the push: new tables for planned jobs, the present ones for the others. */
static int put_jobs(struct by_state *state, const struct by_change *change, struct by_problem *problem)
{
    int error = 0;

    for (uint32_t i = 0; i < change->job_count && error == 0; i++) {
        const struct by_change_job *entry = &change->jobs[i];
        const struct by_job_tables *tables = entry->anew ? entry->tables : entry->job->tables;

        error = put_job(state, entry, problem);
        if (error == 0 && entry->error == 0 && tables != NULL)
            error = by_state_put_tables(state, change, entry, tables, problem);
    }
    return error;
}

static int put_images(struct by_state *state, const struct by_change *change, struct by_problem *problem)
{
    int error = 0;

    for (uint32_t i = 0; i < state->topology->node_count && error == 0; i++) {
        const struct by_change_image *image = &change->images[i];
        bool target = false;

        if (image->bytes == NULL)
            continue;
        for (uint32_t j = 0; j < change->target_count; j++)
            target |= change->target_nodes[j] == i;
        error = by_state_do(state, problem,
                            by_state_ask(state, "INSERT INTO image VALUES (1, ?, ?, ?, ?, ?)", "nnnnb",
                                         (int64_t)i, (int64_t)target, (int64_t)image->hash,
                                         (int64_t)change->nonces[i], image->bytes, image->size));
    }
    return error;
}

/* A generation is used only once, even if its push failed or its job has ended. */
static const char forget_push[] =
    "REPLACE INTO ended SELECT job, gen_last FROM job WHERE push = 1 AND job NOT IN"
    " (SELECT job FROM job WHERE push = 0);"
    "UPDATE job SET gen_last = COALESCE((SELECT new.gen_last FROM job new WHERE new.push = 1 AND new.job = "
    "job.job),"
    " gen_last) WHERE push = 0;"
    "DELETE FROM job WHERE push = 1; DELETE FROM tables WHERE push = 1; DELETE FROM plan WHERE push = 1;"
    "DELETE FROM standby WHERE push = 1; DELETE FROM standby_plan WHERE push = 1;"
    "DELETE FROM moved WHERE push = 1;"
    "DELETE FROM image WHERE push = 1; DELETE FROM meta WHERE key = 'push';";
static const char take_push[] =
    "REPLACE INTO ended SELECT job, gen_last FROM job WHERE push = 0 AND job NOT IN"
    " (SELECT job FROM job WHERE push = 1);"
    "DELETE FROM job WHERE push = 0; DELETE FROM tables WHERE push = 0; DELETE FROM plan WHERE push = 0;"
    "DELETE FROM standby WHERE push = 0; DELETE FROM standby_plan WHERE push = 0;"
    "DELETE FROM moved WHERE push = 0; DELETE FROM image WHERE push = 0;"
    "UPDATE standby SET push = 0; UPDATE standby_plan SET push = 0; UPDATE moved SET push = 0;"
    "UPDATE job SET push = 0; UPDATE tables SET push = 0; UPDATE plan SET push = 0; UPDATE image SET push = "
    "0;"
    "DELETE FROM meta WHERE key = 'push';";
/* Failed jobs are in no change. They stay until they are ended. The change in which one has failed
 * may not have been recorded. */
static const char keep_failed[] =
    "INSERT INTO job SELECT 1, job, 1, CASE failed WHEN 1 THEN text ELSE 'it had no path' END, gen_last,"
    " name, wants, ranks, window, share FROM job old WHERE push = 0 AND job <> ? AND NOT EXISTS"
    " (SELECT 1 FROM job new WHERE new.push = 1 AND new.job = old.job)";

int by_state_reserve(struct by_state *state, const struct by_change *change, struct by_problem *problem)
{
    bool some = false;
    int error;

    if (state == NULL)
        return 0;
    for (uint32_t i = 0; i < change->job_count; i++)
        some |= change->jobs[i].anew && change->jobs[i].job->tables != NULL &&
                !is_reserved(state, change->jobs[i].job->spec.job, change->jobs[i].gen);
    if (!some)
        return state->place->confirm != NULL ? state->place->confirm(state, problem) : 0;
    error = begin_transaction(state, problem);
    if (error != 0)
        return error;
    for (uint32_t i = 0; i < change->job_count && error == 0; i++)
        if (change->jobs[i].anew)
            error = by_state_do(state, problem,
                                by_state_ask(state, "UPDATE job SET gen_last = ? WHERE job = ?", "nn",
                                             (int64_t)reserve_from(change->jobs[i].gen),
                                             (int64_t)change->jobs[i].job->spec.job));
    error = end_transaction(state, error, problem);
    for (uint32_t i = 0; i < change->job_count && error == 0; i++)
        if (change->jobs[i].anew)
            state->reserved[change->jobs[i].job->spec.job] = reserve_from(change->jobs[i].gen);
    return error;
}

bool by_state_is_settled(const struct by_state *state)
{
    return state == NULL || !state->open;
}

/* Writes the push, in a transaction. */
static int put_push(struct by_state *state, const struct by_change *change, struct by_problem *problem)
{
    int error = by_state_run(state, problem, state->took ? take_push : forget_push);

    if (error == 0)
        error = put_jobs(state, change, problem);
    if (error == 0)
        error = by_state_do(state, problem, by_state_ask(state, keep_failed, "n", (int64_t)change->ended));
    if (error == 0)
        error = put_images(state, change, problem);
    return error;
}

int by_state_begin(struct by_state *state, const struct by_change *change, struct by_problem *problem)
{
    int error;

    if (state == NULL)
        return 0;
    error = begin_transaction(state, problem);
    if (error != 0)
        return error;
    error = put_push(state, change, problem);
    if (error == 0)
        error = put_number(state, "push", change->push_id, problem);
    error = end_transaction(state, error, problem);
    if (error != 0)
        return error;
    state->took = false;
    state->open = true;
    for (uint32_t i = 0; i < change->job_count; i++)
        state->reserved[change->jobs[i].job->spec.job] = reserve_from(change->jobs[i].job->gen_last);
    return 0;
}

/* Places that are shared record first: another controller may take over at any time, and must find
 * what this one has done. */
bool by_state_may_follow(const struct by_state *state, const struct by_change *change)
{
    bool may = state != NULL && state->lead == NULL && !state->open && !state->doubt && change->ended == 0;
    bool some = false;

    for (uint32_t i = 0; i < change->job_count && may; i++) {
        const struct by_change_job *entry = &change->jobs[i];

        may = entry->error == 0 && entry->job->tables != NULL &&
              (!entry->anew || is_reserved(state, entry->job->spec.job, entry->gen));
        some |= entry->anew;
    }
    return may && some;
}

int by_state_write(struct by_state *state, const struct by_change *change, struct by_problem *problem)
{
    int error = begin_transaction(state, problem);

    if (error != 0)
        return error;
    error = put_push(state, change, problem);
    if (error == 0)
        error = by_state_run(state, problem, take_push);
    if (error != 0)
        return end_transaction(state, error, problem);
    state->late = true;
    state->coming_count = 0;
    for (uint32_t i = 0; i < change->job_count; i++) {
        BY_GROW(state->coming, state->coming_count, state->coming_room);
        state->coming[state->coming_count++] = (struct by_state_coming){
            .job = change->jobs[i].job->spec.job, .gen = reserve_from(change->jobs[i].job->gen_last)};
    }
    return 0;
}

void by_state_commit(struct by_state *state)
{
    struct by_problem problem = {0};

    if (state == NULL || !state->late)
        return;
    state->late = false;
    if (end_transaction(state, 0, &problem) != 0) {
        by_daemon_say("%s; the tables on the switches are recorded at the next change, or replaced at the "
                      "next start",
                      problem.text);
        return;
    }
    for (uint32_t i = 0; i < state->coming_count; i++)
        state->reserved[state->coming[i].job] = state->coming[i].gen;
}

void by_state_discard(struct by_state *state)
{
    struct by_problem ignored = {0};

    if (state == NULL || !state->late)
        return;
    state->late = false;
    by_state_run(state, &ignored, "ROLLBACK");
}

void by_state_finish(struct by_state *state, bool done, bool settled)
{
    struct by_problem problem = {0};
    int error;

    if (state == NULL || (!done && !settled))
        return;
    error = begin_transaction(state, &problem);
    if (error == 0)
        error =
            end_transaction(state, by_state_run(state, &problem, done ? take_push : forget_push), &problem);
    state->took = done && error != 0;
    state->open = error != 0;
    if (error != 0)
        by_daemon_say("%s; the end of a push is recorded at the next change, or decided at the next start",
                      problem.text);
}

int by_state_pending(struct by_state *state, struct by_state_open_push *push, struct by_problem *problem)
{
    sqlite3_stmt *statement;
    uint32_t room = 0;
    int error;

    *push = (struct by_state_open_push){0};
    if (state == NULL)
        return 0;
    error = get_number(state, "push", &push->push_id, problem);
    if (error != 0)
        return error;
    statement = by_state_ask(
        state, "SELECT node, hash, nonce FROM image WHERE push = 1 AND target = 1 ORDER BY node", "");
    if (statement == NULL)
        return by_state_fail(state, problem);
    while (by_state_next(state, statement, &error, problem)) {
        BY_GROW(push->targets, push->count, room);
        push->targets[push->count++] =
            (struct by_state_target){.node = (uint32_t)sqlite3_column_int64(statement, 0),
                                     .hash = (uint64_t)sqlite3_column_int64(statement, 1),
                                     .nonce = (uint64_t)sqlite3_column_int64(statement, 2)};
    }
    sqlite3_finalize(statement);
    return error;
}

void by_state_pending_free(struct by_state_open_push *push)
{
    free(push->targets);
    *push = (struct by_state_open_push){0};
}

int by_state_settle(struct by_state *state, bool forward, struct by_problem *problem)
{
    int error;

    if (state == NULL)
        return 0;
    error = begin_transaction(state, problem);
    if (error == 0)
        error =
            end_transaction(state, by_state_run(state, problem, forward ? take_push : forget_push), problem);
    state->open = error != 0;
    return error;
}
