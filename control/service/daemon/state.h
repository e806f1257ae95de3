/*
 * The persistent state of banyand: jobs, their plans and slots, the tables of the switches, the
 * election. An SQLite database, which is kept in a folder (state_folder.c) or in etcd
 * (state_etcd.c); transactions are atomic in both. A push is recorded before a switch commits and
 * after its end, so that a restarted daemon finds an open push; a repair of running jobs, which
 * the next daemon can repeat, only after its end. The worker's thread owns it from the first change
 * on; before, the main thread. `state` may be NULL everywhere: then nothing is stored.
 */
#ifndef BY_SERVICE_DAEMON_STATE_H
#define BY_SERVICE_DAEMON_STATE_H

#include "control/service/daemon/change.h"

struct by_lead;
struct by_state;

/*
 * Opens folder/banyand.db, and creates folder and file if necessary. Locks the folder until
 * by_state_close. Returns BY_EBUSY with `problem` when another banyand has it, BY_EMISMATCH when
 * the state belongs to another fabric or was lowered with other options, BY_EVERSION, BY_EPERM when
 * the folder belongs to another user or others can write to it, or BY_EIO. If others can read
 * folder or files, it removes their access and logs that.
 */
int by_state_open(const char *folder, const struct by_topology *topology,
                  const struct by_lower_options *options, struct by_state **state,
                  struct by_problem *problem);
/*
 * Opens the state that banyands share in etcd, as the leader: `store` is the address list of `lead`
 * (etcd.h), which must outlive the state. Returns the same errors; a change then fails with
 * BY_EPERM once another one leads, and with BY_EIO while most members of etcd are unreachable.
 */
int by_state_open_etcd(struct by_lead *lead, const char *store, const struct by_topology *topology,
                       const struct by_lower_options *options, struct by_state **state,
                       struct by_problem *problem);
void by_state_close(struct by_state *state);

/* The election id of the last run, 0 = none; and that of this run. */
uint64_t by_state_election(const struct by_state *state);
int by_state_elect(struct by_state *state, uint64_t election_id, struct by_problem *problem);

/*
 * Records the generations of a change's running jobs, before a host gets their tables: a later run
 * does not use them again. by_state_begin has done so already for some after its own; only beyond
 * these does this write. In etcd it else confirms that this banyand still leads: hosts that stop
 * for tables that it cannot record would wait for the next leader. Returns 0, or an error: then
 * hosts may have the tables once by_state_begin has recorded them.
 */
int by_state_reserve(struct by_state *state, const struct by_change *change, struct by_problem *problem);
/* Whether no earlier push is recorded without its end. */
bool by_state_is_settled(const struct by_state *state);
/* Records a change before a switch commits its table. Returns 0, or BY_EIO: then none may. */
int by_state_begin(struct by_state *state, const struct by_change *change, struct by_problem *problem);
/*
 * For a push that only repairs running jobs, whose generations are reserved. Whether its record may
 * follow it; if so, by_state_write writes it, which does not wait for the disk, by_state_commit
 * makes it durable once all switches have committed, and by_state_discard forgets it. If the
 * program ends before, the next one finds other tables on the switches than in the store and
 * replaces them, with generations above the reserved ones.
 */
bool by_state_may_follow(const struct by_state *state, const struct by_change *change);
int by_state_write(struct by_state *state, const struct by_change *change, struct by_problem *problem);
/* A failure is reported: then the next push records its jobs. */
void by_state_commit(struct by_state *state);
void by_state_discard(struct by_state *state);
/* Records the end of the push: `done`, or without effect. Unless it is `settled`, its record stays
 * for the next run; so it does, with a message, if it cannot be written. */
void by_state_finish(struct by_state *state, bool done, bool settled);

/* A push that the last run began: its switches, their new tables, and their boot nonces when it
 * began. */
struct by_state_open_push {
    uint64_t push_id; /* 0: there is none */
    uint32_t count;
    struct by_state_target {
        uint32_t node;
        uint64_t hash, nonce;
    } * targets;
};

int by_state_pending(struct by_state *state, struct by_state_open_push *push, struct by_problem *problem);
void by_state_pending_free(struct by_state_open_push *push);
/* Records that it is settled, forward or back. */
int by_state_settle(struct by_state *state, bool forward, struct by_problem *problem);

/* Loads jobs with their tables, ascending. The caller frees `*jobs` and each job, also after an
 * error. Lowering their plans again gives the same tables. */
int by_state_jobs(struct by_state *state, struct by_job ***jobs, uint32_t *count, struct by_problem *problem);
/* By number: loads the last generations of ended jobs. Other elements are unchanged. */
int by_state_ended(struct by_state *state, uint16_t gens[BY_JOBS_MAX], struct by_problem *problem);
/* Loads the table that a switch should have, and its boot nonce at that push; bytes NULL: none. */
int by_state_image(struct by_state *state, uint32_t node, struct by_change_image *image, uint64_t *boot_nonce,
                   struct by_problem *problem);

#endif
