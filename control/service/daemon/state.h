/*
 * What banyand must not forget: jobs, their plans and places, the tables of the switches, the
 * election. One SQLite file in WAL mode, whose transactions are whole or not there. A push is
 * written down before it begins and after it has come out, so that a daemon that starts again knows
 * what was on its way. From the first change on this belongs to the worker's thread; before, to the
 * main thread. `state` may be NULL everywhere: then nothing is kept.
 */
#ifndef BY_SERVICE_DAEMON_STATE_H
#define BY_SERVICE_DAEMON_STATE_H

#include "control/service/daemon/change.h"

struct by_state;

/*
 * Opens folder/banyand.db, and makes both where they are missing. The folder is this process's
 * alone until by_state_close: BY_EBUSY with `problem` when another banyand has it. BY_EMISMATCH
 * when what is there is of another fabric, or was lowered by other options; BY_EVERSION; BY_EPERM
 * when the folder is another user's or others may write there; BY_EIO. Folder and files that others
 * may read are made this user's alone, and that is said.
 */
int by_state_open(const char *folder, const struct by_topology *topology,
                  const struct by_lower_options *options, struct by_state **state,
                  struct by_problem *problem);
void by_state_close(struct by_state *state);

/* The election id of the last life, 0 = none; and that of this one. */
uint64_t by_state_election(const struct by_state *state);
int by_state_elect(struct by_state *state, uint64_t election_id, struct by_problem *problem);

/* Writes down all of a change whose push is about to begin. 0 or BY_EIO: then nothing may be
 * pushed. */
int by_state_begin(struct by_state *state, const struct by_change *change, struct by_problem *problem);
/* The push came out: `done`, or not at all. When it is not `settled` it stays as it is, for the
 * next life. */
void by_state_finish(struct by_state *state, bool done, bool settled);

/* A push that the last life began: its switches and what they were to get. */
struct by_state_open_push {
    uint64_t push_id; /* 0: there is none */
    uint32_t count;
    uint32_t *nodes;
    uint64_t *hashes;
};

int by_state_pending(struct by_state *state, struct by_state_open_push *push, struct by_problem *problem);
void by_state_pending_free(struct by_state_open_push *push);
/* It has come out, one way or the other. */
int by_state_settle(struct by_state *state, bool forward, struct by_problem *problem);

/* Jobs with their tables, ascending: `*jobs` and each are the caller's, also after an error. They
 * are lowered again, which gives what they had. */
int by_state_jobs(struct by_state *state, struct by_job ***jobs, uint32_t *count, struct by_problem *problem);
/* By number: the last generation of jobs that have ended, which is left as it is where none has. */
int by_state_ended(struct by_state *state, uint16_t gens[BY_JOBS_MAX], struct by_problem *problem);
/* The table that a switch shall have, and the boot nonce by which it got it; bytes NULL: none. */
int by_state_image(struct by_state *state, uint32_t node, struct by_change_image *image, uint64_t *boot_nonce,
                   struct by_problem *problem);

#endif
