/* What the files of the store share: see state.h. */
#ifndef BY_SERVICE_DAEMON_STATE_INSIDE_H
#define BY_SERVICE_DAEMON_STATE_INSIDE_H

#include <sqlite3.h>

#include "control/service/daemon/state.h"

struct by_state {
    sqlite3 *db;
    int lock; /* the folder's */
    const struct by_topology *topology;
    struct by_lower_options lower;
    char folder[256];
};

/* Fills `problem` with what the database says; returns BY_EIO. */
int by_state_fail(struct by_state *state, struct by_problem *problem);
/* Runs statements without values. */
int by_state_run(struct by_state *state, struct by_problem *problem, const char *sql);
/* A statement with values: a letter each, n for int64_t, t for text (NULL is none), b for bytes and
 * a size_t. NULL when it cannot be made. */
sqlite3_stmt *by_state_ask(struct by_state *state, const char *sql, const char *kinds, ...);
/* Runs one that gives no rows, and frees it. */
int by_state_do(struct by_state *state, struct by_problem *problem, sqlite3_stmt *statement);

/* The wants of a job as by_job_want reads them, "allreduce,broadcast@host2"; its ranks with commas
 * between, or NULL: all. The caller's to free. */
char *by_state_wants(const struct by_job_spec *spec, const struct by_topology *topology);
char *by_state_ranks(const struct by_job_spec *spec, const struct by_topology *topology);

#endif
