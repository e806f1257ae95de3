/* Writing of tables to the store. See state.h; neighbours: state.c writes the rest of a push,
 * state_jobs.c reads tables. */
#include <stdio.h>
#include <stdlib.h>

#include "control/base/alloc.h"
#include "control/service/daemon/state_inside.h"

/* Writes each plan of the tables by a statement with the values job, number, text and, if `kinds`
 * has a fourth letter, generation. */
static int put_plans(struct by_state *state, const char *sql, const char *kinds, const struct by_job *job,
                     const struct by_job_tables *tables, struct by_problem *problem)
{
    int error = 0;

    for (uint32_t i = 0; i < tables->plan_count && error == 0; i++) {
        char *text = NULL;
        size_t bytes = 0;
        FILE *stream = by_text_open(&text, &bytes);

        error = by_plan_write(tables->plans[i], state->topology, stream);
        fclose(stream);
        if (error == 0)
            error = by_state_do(state, problem,
                                by_state_ask(state, sql, kinds, (int64_t)job->spec.job, (int64_t)i, text,
                                             bytes, (int64_t)tables->gen));
        free(text);
    }
    return error;
}

/* Records a standby of `base`. */
static int put_standby(struct by_state *state, const struct by_job *job, const struct by_job_tables *base,
                       const struct by_job_tables *tables, uint32_t place, struct by_problem *problem)
{
    const struct by_topology *topology = state->topology;
    int error = by_state_do(
        state, problem,
        by_state_ask(state, "INSERT INTO standby VALUES (1, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", "nnnnnnbbbb",
                     (int64_t)job->spec.job, (int64_t)tables->gen, (int64_t)base->gen, (int64_t)place,
                     (int64_t)tables->first_tree, (int64_t)tables->window, tables->lost_links,
                     topology->link_count * sizeof(*tables->lost_links), tables->slot_base,
                     topology->node_count * sizeof(*tables->slot_base), tables->secret,
                     sizeof(tables->secret), tables->replaces,
                     base->lowering->tree_count * sizeof(*tables->replaces)));

    return error != 0
               ? error
               : put_plans(state,
                           "INSERT INTO standby_plan(push, job, number, text, gen) VALUES (1, ?, ?, ?, ?)",
                           "nnbn", job, tables, problem);
}

int by_state_put_tables(struct by_state *state, const struct by_change *change,
                        const struct by_change_job *entry, const struct by_job_tables *tables,
                        struct by_problem *problem)
{
    const struct by_topology *topology = state->topology;
    const struct by_job *job = entry->job;
    uint32_t count;
    struct by_job_tables *const *standbys = by_change_standbys(change, entry, &count);
    int error = by_state_do(state, problem,
                            by_state_ask(state, "INSERT INTO tables VALUES (1, ?, ?, ?, ?, ?, ?, ?)",
                                         "nnntbbb", (int64_t)job->spec.job, (int64_t)tables->gen,
                                         (int64_t)tables->window, tables->note, tables->lost_links,
                                         topology->link_count * sizeof(*tables->lost_links),
                                         tables->slot_base, topology->node_count * sizeof(*tables->slot_base),
                                         tables->secret, sizeof(tables->secret)));

    if (error == 0 && tables->first_tree > 0)
        error = by_state_do(state, problem,
                            by_state_ask(state, "INSERT INTO moved VALUES (1, ?, ?, ?)", "nnn",
                                         (int64_t)job->spec.job, (int64_t)tables->gen,
                                         (int64_t)tables->first_tree));
    if (error == 0)
        error = put_plans(state, "INSERT INTO plan VALUES (1, ?, ?, ?)", "nnb", job, tables, problem);
    for (uint32_t i = 0; i < count && error == 0; i++)
        error = put_standby(state, job, tables, standbys[i], i, problem);
    return error;
}
