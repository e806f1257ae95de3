/*
 * A rank's standbys: complete sets of trees in generations of their own, which all switches have in
 * their tables, and to which the ranks of a job move without the controller when trees stop
 * (PROTOCOL.md, "Standby generations"; offload/endpoint/standby.h chooses one, and rounds.h does
 * the levelling). Neighbours: member.c receives the tables and reports the move; survive.c
 * exchanges the parts; host-driver/sim/standby.c is the same shell in the simulator. Thread: the
 * communicator's.
 */
#ifndef BY_HOST_STANDBY_H
#define BY_HOST_STANDBY_H

#include <stdbool.h>
#include <stdint.h>

#include "offload/endpoint/standby.h"
#include "offload/wire/member.h"

struct banyan_comm;
struct by_level_rounds;
struct by_progress_side;
struct by_survive;

struct by_standby {
    uint16_t gen, base;
    uint8_t *image; /* this rank's table, with `bytes` */
    size_t bytes;
    uint8_t *mask; /* a bit for each tree of the base that it replaces, with `mask_bytes` */
    uint32_t mask_bytes;
    struct by_progress_side *side; /* its tree of rounds; NULL: not open yet, or `refused` */
    bool refused;                  /* its table is wrong */
};

struct by_standbys {
    uint32_t count;
    struct by_standby list[BY_STANDBYS_MAX]; /* in the order of their generations */
    struct by_standby_move move;
    struct by_level_rounds *rounds; /* of the move under way; NULL: none, or it has failed */
    void *rounds_memory;
    bool ended; /* the controller's attempt supersedes them */
};

/* Keeps the standby of a STANDBY frame, or ends those of the base. Frames that are late are
 * ignored. */
void by_standby_take(struct banyan_comm *comm, struct by_standbys *standbys,
                     const struct by_member_frame *frame);
/*
 * Runs one round; cheap if there are no standbys. A chunk that has waited for `patience_ns` in a
 * tree that no node reports as waiting for a rank begins a move. Returns 0 if nothing has changed,
 * 1 if the node must be stepped at once, 2 when the calls continue in a standby, which is then no
 * longer in the list; else an error with its text: the calls cannot continue. `now_ns` is
 * that of by_comm_now.
 */
int by_standby_step(struct banyan_comm *comm, struct by_standbys *standbys, struct by_survive *survive,
                    uint64_t patience_ns, uint64_t now_ns);
/* Whether a move has come to no end for long, and no standby is left: the controller must supply
 * tables. */
bool by_standby_is_stuck(const struct banyan_comm *comm, struct by_standbys *standbys, uint64_t patience_ns);
/* Ends a move for an attempt of the controller, before by_survive_freeze. No other one begins. */
void by_standby_end(struct banyan_comm *comm, struct by_standbys *standbys);
/* Forgets all standbys. Their trees leave the node. */
void by_standby_clear(struct banyan_comm *comm, struct by_standbys *standbys);
/* Latest time of the next step (of by_comm_now). */
uint64_t by_standby_deadline(const struct banyan_comm *comm, const struct by_standbys *standbys,
                             uint64_t patience_ns);

#endif
