/* Internal declarations of the store. See state.h. */
#ifndef BY_SERVICE_DAEMON_STATE_INSIDE_H
#define BY_SERVICE_DAEMON_STATE_INSIDE_H

#include <sqlite3.h>

#include "control/service/daemon/state.h"

struct by_state {
    sqlite3 *db;
    int lock; /* a descriptor of the folder's lock file */
    const struct by_topology *topology;
    struct by_lower_options lower;
    char folder[256];
};

/* Fills `problem` with the error of the database; returns BY_EIO. */
int by_state_fail(struct by_state *state, struct by_problem *problem);
/* Runs statements without values. */
int by_state_run(struct by_state *state, struct by_problem *problem, const char *sql);
/* Prepares a statement with values. `kinds` has a letter for each: n for int64_t, t for text (NULL:
 * none), b for bytes and a size_t. Returns NULL on failure. */
sqlite3_stmt *by_state_ask(struct by_state *state, const char *sql, const char *kinds, ...);
/* Runs a statement without result rows and frees it. */
int by_state_do(struct by_state *state, struct by_problem *problem, sqlite3_stmt *statement);

/* The wants of a job in the form of by_job_want, "allreduce,broadcast@host2"; its ranks, separated
 * by commas, or NULL: all. The caller frees the text. */
char *by_state_wants(const struct by_job_spec *spec, const struct by_topology *topology);
char *by_state_ranks(const struct by_job_spec *spec, const struct by_topology *topology);

#endif
