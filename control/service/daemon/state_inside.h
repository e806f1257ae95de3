/* Internal declarations of the store. See state.h. */
#ifndef BY_SERVICE_DAEMON_STATE_INSIDE_H
#define BY_SERVICE_DAEMON_STATE_INSIDE_H

#include <sqlite3.h>

#include "control/service/daemon/state.h"

/*
 * Where the database is kept. `open` opens state->db with what was kept last, which may be nothing.
 * `keep` makes the changes of the open transaction durable; when it fails, they are rolled back,
 * although a place that others share may have kept them: the next transaction replaces them.
 * `confirm`, of places that others share (else NULL): whether `keep` may be expected to succeed.
 * All return 0 or an error with `problem`.
 */
struct by_state_place {
    const char *option;  /* that names it, for texts; */
    const char *file;    /* of the database, after its name; */
    const char *remedy;  /* after a failure; */
    const char *another; /* what to give for another state */
    int (*open)(struct by_state *state, struct by_problem *problem);
    int (*keep)(struct by_state *state, struct by_problem *problem);
    int (*confirm)(struct by_state *state, struct by_problem *problem);
    void (*close)(struct by_state *state);
};

struct by_state {
    const struct by_state_place *place;
    char where[500]; /* its folder, or the addresses of etcd */
    sqlite3 *db;
    uint64_t election; /* as in the database */
    const struct by_topology *topology;
    struct by_lower_options lower;
    bool
        doubt; /* since the start, and after an error: the disk may not have what the journal seems to hold */
    bool open; /* a push is recorded, but not its end */
    bool late; /* a transaction is open that records a push as done; `coming` is for `reserved` */
    bool took; /* the last push has ended, but recording that failed: it is not to be forgotten */
    /* by number: the generation up to which those of a job are recorded, 0: unknown */
    uint16_t reserved[BY_JOBS_MAX];
    struct by_state_coming {
        uint16_t job, gen;
    } * coming;
    uint32_t coming_count, coming_room;
    int lock; /* a folder: a descriptor of its lock file, or -1 */
    /* etcd: */
    struct by_lead *lead;
    int64_t revision; /* of the key `state` */
    uint64_t writes;
};

/* Opens a store at a place, as by_state_open does. */
int by_state_start(const struct by_state_place *place, const char *where, struct by_lead *lead,
                   const struct by_topology *topology, const struct by_lower_options *options,
                   struct by_state **state, struct by_problem *problem);
/* Fills `problem` with the error of the database; returns BY_EIO. */
int by_state_fail(struct by_state *state, struct by_problem *problem);
/* Runs statements without values. */
int by_state_run(struct by_state *state, struct by_problem *problem, const char *sql);
/* Prepares a statement with values. `kinds` has a letter for each: n for int64_t, t for text (NULL:
 * none), b for bytes and a size_t. Returns NULL on failure. */
sqlite3_stmt *by_state_ask(struct by_state *state, const char *sql, const char *kinds, ...);
/* Steps to the next row. Returns false after the last one, and after an error, which is then in
 * *error; if that is set already, it does nothing. */
bool by_state_next(struct by_state *state, sqlite3_stmt *row, int *error, struct by_problem *problem);
/* Runs a statement without result rows and frees it. */
int by_state_do(struct by_state *state, struct by_problem *problem, sqlite3_stmt *statement);

/* state_tables.c: records tables, plans and standbys of a job for a push. */
int by_state_put_tables(struct by_state *state, const struct by_change *change,
                        const struct by_change_job *entry, const struct by_job_tables *tables,
                        struct by_problem *problem);
/* The wants of a job in the form of by_job_want, "allreduce,broadcast@host2"; its ranks, separated
 * by commas, or NULL: all. The caller frees the text. */
char *by_state_wants(const struct by_job_spec *spec, const struct by_topology *topology);
char *by_state_ranks(const struct by_job_spec *spec, const struct by_topology *topology);

#endif
