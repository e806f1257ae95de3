/* Reading of jobs and tables from the store. See state.h; neighbour: state.c writes them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control/base/alloc.h"
#include "control/base/fraction.h"
#include "control/fabric/build.h"
#include "control/fabric/members.h"
#include "control/service/daemon/state_inside.h"
#include "offload/base/errors.h"

char *by_state_wants(const struct by_job_spec *spec, const struct by_topology *topology)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *stream = by_text_open(&text, &bytes);

    for (uint32_t i = 0; i < spec->want_count; i++)
        fprintf(stream, "%s%s%s%s", i ? "," : "", by_collective_name(spec->wants[i].collective),
                spec->wants[i].root >= 0 ? "@" : "",
                spec->wants[i].root >= 0 ? topology->nodes[spec->wants[i].root].name : "");
    fclose(stream);
    return text;
}

char *by_state_ranks(const struct by_job_spec *spec, const struct by_topology *topology)
{
    char *text = NULL;
    size_t bytes = 0;
    const char *between = "";
    FILE *stream;

    if (spec->member == NULL)
        return NULL;
    stream = by_text_open(&text, &bytes);
    for (uint32_t i = 0; i < topology->node_count; i++)
        if (spec->member[i]) {
            fprintf(stream, "%s%s", between, topology->nodes[i].name);
            between = ",";
        }
    fclose(stream);
    return text;
}

/* Returns the text of a column, "" if there is none. */
static const char *column(sqlite3_stmt *row, int number)
{
    const char *text = (const char *)sqlite3_column_text(row, number);

    return text != NULL ? text : "";
}

/* Reads a job from a row: job, failed, text, gen_last, name, wants, ranks, window, share and
 * grouped. */
static int read_spec(struct by_state *state, sqlite3_stmt *row, struct by_job *job,
                     struct by_problem *problem)
{
    struct by_job_spec *spec = &job->spec;
    const char *wants = column(row, 5), *ranks = column(row, 6), *share = column(row, 8);
    int error = 0;

    spec->job = (uint16_t)sqlite3_column_int64(row, 0);
    job->state = sqlite3_column_int64(row, 1) ? BY_JOB_FAILED : BY_JOB_RUNNING;
    snprintf(job->text, sizeof(job->text), "%s", column(row, 2));
    job->gen_last = (uint16_t)sqlite3_column_int64(row, 3);
    snprintf(spec->name, sizeof(spec->name), "%s", column(row, 4));
    spec->window = (uint32_t)sqlite3_column_int64(row, 7);
    spec->is_group = sqlite3_column_int64(row, 9) != 0;
    if (sqlite3_errcode(state->db) == SQLITE_NOMEM) /* of a column's text */
        return by_state_fail(state, problem);
    if (by_fraction_parse(share, strlen(share), &spec->share) != 0)
        spec->share = (struct by_fraction){0, 1};
    if (ranks[0] != 0)
        error = by_members_parse(ranks, strlen(ranks), state->topology, &spec->member, problem);
    if (error == 0)
        error = by_job_wants(spec, wants, state->topology, problem);
    return error;
}

/* Reads the plans of the rows that a statement selects, and frees it. */
static int read_plans(struct by_state *state, sqlite3_stmt *row, struct by_job_tables *tables,
                      struct by_problem *problem)
{
    int error = row == NULL ? by_state_fail(state, problem) : 0;

    tables->plans = by_alloc(BY_JOB_PLANS_MAX, sizeof(struct by_plan *));
    while (tables->plan_count < BY_JOB_PLANS_MAX && by_state_next(state, row, &error, problem)) {
        error = by_plan_parse(sqlite3_column_blob(row, 0), (size_t)sqlite3_column_bytes(row, 0),
                              state->topology, &tables->plans[tables->plan_count], problem);
        tables->plan_count += error == 0;
    }
    sqlite3_finalize(row);
    return error;
}

/* Copies a blob, which must have exactly this size. */
static int copy_blob(sqlite3_stmt *row, int number, void *to, size_t bytes, const struct by_job *job,
                     struct by_problem *problem)
{
    if ((size_t)sqlite3_column_bytes(row, number) != bytes)
        return by_problem_say(problem, BY_EFORMAT,
                              "job %u: its tables in --state are damaged: start with another --state, which "
                              "ends the job",
                              job->spec.job);
    memcpy(to, sqlite3_column_blob(row, number), bytes);
    return 0;
}

/* Reads lost_links, slot_base and secret from the columns of a row from `number` on. */
static int read_places(sqlite3_stmt *row, int number, const struct by_topology *topology,
                       const struct by_job *job, struct by_job_tables *tables, struct by_problem *problem)
{
    int error;

    tables->lost_links = by_alloc(topology->link_count, sizeof(*tables->lost_links));
    tables->slot_base = by_alloc(topology->node_count, sizeof(*tables->slot_base));
    error = copy_blob(row, number, tables->lost_links, topology->link_count * sizeof(*tables->lost_links),
                      job, problem);
    if (error == 0)
        error = copy_blob(row, number + 1, tables->slot_base,
                          topology->node_count * sizeof(*tables->slot_base), job, problem);
    if (error == 0)
        error = copy_blob(row, number + 2, tables->secret, sizeof(tables->secret), job, problem);
    return error;
}

/* Reads a standby from a row: gen, first_tree, window, lost_links, slot_base, secret, replaces. */
static int read_standby(struct by_state *state, sqlite3_stmt *row, const struct by_job *job,
                        struct by_job_tables *tables, struct by_problem *problem)
{
    uint32_t trees = job->tables->lowering->tree_count;
    int error;

    tables->gen = (uint16_t)sqlite3_column_int64(row, 0);
    tables->first_tree = (uint16_t)sqlite3_column_int64(row, 1);
    tables->window = (uint32_t)sqlite3_column_int64(row, 2);
    tables->replaces = by_alloc(trees, sizeof(*tables->replaces));
    error = read_places(row, 3, state->topology, job, tables, problem);
    if (error == 0)
        error = copy_blob(row, 6, tables->replaces, trees * sizeof(*tables->replaces), job, problem);
    if (error == 0)
        error = read_plans(state,
                           by_state_ask(state,
                                        "SELECT text FROM standby_plan WHERE push = 0 AND job = ? AND gen = ?"
                                        " ORDER BY number",
                                        "nn", (int64_t)job->spec.job, (int64_t)tables->gen),
                           tables, problem);
    if (error == 0)
        error = by_fabric_lower(state->topology, job->spec.job, &state->lower, tables, problem);
    return error;
}

/* Reads the standbys of a job's tables. */
static int read_standbys(struct by_state *state, struct by_job *job, struct by_problem *problem)
{
    struct by_job_tables *base = job->tables;
    sqlite3_stmt *row = by_state_ask(state,
                                     "SELECT gen, first_tree, window, lost_links, slot_base, secret, replaces"
                                     " FROM standby WHERE push = 0 AND job = ? AND base = ? ORDER BY place",
                                     "nn", (int64_t)job->spec.job, (int64_t)base->gen);
    int error = row == NULL ? by_state_fail(state, problem) : 0;

    while (base->standby_count < BY_STANDBYS_MAX && by_state_next(state, row, &error, problem)) {
        struct by_job_tables *tables = by_alloc(1, sizeof(*tables));

        error = read_standby(state, row, job, tables, problem);
        base->standbys[base->standby_count++] = tables;
    }
    sqlite3_finalize(row);
    job->standby_gen = base->standby_count > 0 ? base->gen : 0;
    return error;
}

/* Reads the tables of a job: gen, window, note, lost_links, slot_base, secret, first_tree. Leaves
 * them NULL if it has none. */
static int read_tables(struct by_state *state, struct by_job *job, struct by_problem *problem)
{
    struct by_job_tables *tables = by_alloc(1, sizeof(*tables));
    sqlite3_stmt *row =
        by_state_ask(state,
                     "SELECT gen, window, note, lost_links, slot_base, secret, COALESCE((SELECT first_tree"
                     " FROM moved WHERE moved.push = 0 AND moved.job = tables.job AND moved.gen ="
                     " tables.gen), 0) FROM tables WHERE push = 0 AND job = ?",
                     "n", (int64_t)job->spec.job);
    int error = row == NULL ? by_state_fail(state, problem) : 0;

    if (!by_state_next(state, row, &error, problem)) {
        sqlite3_finalize(row);
        free(tables);
        return error;
    }
    tables->gen = (uint16_t)sqlite3_column_int64(row, 0);
    tables->window = (uint32_t)sqlite3_column_int64(row, 1);
    snprintf(tables->note, sizeof(tables->note), "%s", column(row, 2));
    error = read_places(row, 3, state->topology, job, tables, problem);
    tables->first_tree = (uint16_t)sqlite3_column_int64(row, 6);
    sqlite3_finalize(row);
    if (error == 0)
        error =
            read_plans(state,
                       by_state_ask(state, "SELECT text FROM plan WHERE push = 0 AND job = ? ORDER BY number",
                                    "n", (int64_t)job->spec.job),
                       tables, problem);
    if (error == 0)
        error = by_fabric_lower(state->topology, job->spec.job, &state->lower, tables, problem);
    if (error != 0)
        by_job_tables_free(tables);
    else
        job->tables = tables;
    return error == 0 ? read_standbys(state, job, problem) : error;
}

int by_state_jobs(struct by_state *state, struct by_job ***jobs, uint32_t *count, struct by_problem *problem)
{
    sqlite3_stmt *row;
    uint32_t room = 0;
    int error = 0;

    *jobs = NULL;
    *count = 0;
    if (state == NULL)
        return 0;
    row =
        by_state_ask(state,
                     "SELECT job, failed, text, gen_last, name, wants, ranks, window, share, job IN (SELECT "
                     "job FROM grouped) FROM job WHERE push = 0 ORDER BY job",
                     "");
    if (row == NULL)
        return by_state_fail(state, problem);
    while (by_state_next(state, row, &error, problem)) {
        struct by_job *job = by_alloc(1, sizeof(*job));

        BY_GROW(*jobs, *count, room);
        (*jobs)[(*count)++] = job;
        error = read_spec(state, row, job, problem);
        if (error == 0)
            error = read_tables(state, job, problem);
    }
    sqlite3_finalize(row);
    return error;
}

int by_state_ended(struct by_state *state, uint16_t gens[BY_JOBS_MAX], struct by_problem *problem)
{
    sqlite3_stmt *row = state != NULL ? by_state_ask(state, "SELECT job, gen_last FROM ended", "") : NULL;
    int error = 0;

    if (row == NULL)
        return state != NULL ? by_state_fail(state, problem) : 0;
    while (by_state_next(state, row, &error, problem)) {
        int64_t job = sqlite3_column_int64(row, 0);

        if (job > 0 && job < BY_JOBS_MAX)
            gens[job] = (uint16_t)sqlite3_column_int64(row, 1);
    }
    sqlite3_finalize(row);
    return error;
}

int by_state_image(struct by_state *state, uint32_t node, struct by_change_image *image, uint64_t *boot_nonce,
                   struct by_problem *problem)
{
    sqlite3_stmt *row;
    int error = 0;

    *image = (struct by_change_image){0};
    *boot_nonce = 0;
    if (state == NULL)
        return 0;
    row = by_state_ask(state, "SELECT hash, nonce, bytes FROM image WHERE push = 0 AND node = ?", "n",
                       (int64_t)node);
    if (row == NULL)
        return by_state_fail(state, problem);
    if (by_state_next(state, row, &error, problem)) {
        image->hash = (uint64_t)sqlite3_column_int64(row, 0);
        *boot_nonce = (uint64_t)sqlite3_column_int64(row, 1);
        image->size = (size_t)sqlite3_column_bytes(row, 2);
        image->bytes = by_alloc(image->size, 1);
        memcpy(image->bytes, sqlite3_column_blob(row, 2), image->size);
    }
    sqlite3_finalize(row);
    if (image->bytes != NULL && by_image_hash(image->bytes, image->size) != image->hash) {
        free(image->bytes);
        *image = (struct by_change_image){0};
        return by_problem_say(problem, BY_ECHECKSUM, "the table of %s in --state is damaged: it is rebuilt",
                              state->topology->nodes[node].name);
    }
    return error;
}
