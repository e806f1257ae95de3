/*
 * Several ranks on a host of the table: finds out whether a job has them, and connects the ranks of
 * each host (host-driver/local). The first rank of a host leads it: it alone opens the transport
 * and the trees, as the host of the table; the others answer queries from a copy of its table. All
 * functions are collective over the job where the job has several ranks on a host. Thread: the
 * communicator's.
 */
#ifndef BY_HOST_RANKS_H
#define BY_HOST_RANKS_H

#include <stdbool.h>
#include <stdint.h>

struct banyan_bootstrap;
struct banyan_comm;
struct by_call;
struct by_ranks; /* state while a communicator opens */

/* Exchanges the hosts of all ranks of a group, or if the launcher started more ranks than the
 * table has hosts, or if the controller will supply the table. *out is NULL if this rank has its
 * host to itself and is in no group. A group has exactly three exchanges: this one,
 * by_ranks_grant and by_ranks_connect. 0, or an error with its text. */
int by_ranks_meet(struct banyan_comm *comm, uint32_t job, struct by_ranks **out);
/* For a group: whether this is its first rank. */
bool by_ranks_is_first(const struct by_ranks *ranks);
/* For a group: the reason against it, of any rank, with its text; alike on all ranks. 0: none. */
int by_ranks_refusal(const struct by_ranks *ranks);
/* For a group: distributes the job of its first rank, or the error of that rank, which is `error`
 * with the text of the last error. 0, or that error on all ranks. */
int by_ranks_grant(struct banyan_comm *comm, struct by_ranks *ranks, int error, uint32_t *job);
/* Takes part in the exchanges of other groups, over an allgather that all of them share; this rank
 * is in none. 0, or an error with its text. */
int by_ranks_stand_by(const struct banyan_bootstrap *all);
/* Whether this rank leads its host, and so opens the trees. */
bool by_ranks_lead(const struct by_ranks *ranks);
/* Tells the other ranks the result of opening the trees, which is `error`, with the text of the
 * last error; then connects the ranks of the host. Frees `ranks`. 0, or the first error of all
 * ranks with its text. */
int by_ranks_connect(struct banyan_comm *comm, struct by_ranks *ranks, uint32_t job, int error);
/* For a group: whether all its ranks run on one host, whose memory they will share. They need no
 * job. */
bool by_ranks_are_near(const struct by_ranks *ranks);
void by_ranks_free(struct by_ranks *ranks);

/* Returns `call` as the endpoint sees it: the call itself, or with several ranks on a host the one
 * between hosts, made in `outer` and `offsets`, an array of rank_count + 1. */
const struct by_call *by_ranks_outer(const struct banyan_comm *comm, const struct by_call *call,
                                     struct by_call *outer, uint64_t *offsets);

#endif
