/*
 * Collectives of ranks that all run on one host, through memory that they share. A call is cut into
 * slices; each rank copies its input of a slice there and takes its result. Sums of few bytes are
 * added by every rank for itself, after one exchange; of more bytes each rank adds a part, and
 * copies the parts of the others. No rank leads, and up to BY_MATES_SLOTS slices are in different
 * stages at once. Sums are added in the order of the ranks, so that all ranks have equal bits.
 * Non-blocking but for the opening; one thread in each rank.
 */
#ifndef BY_HOST_LOCAL_SINGLE_H
#define BY_HOST_LOCAL_SINGLE_H

#include <stdbool.h>
#include <stdint.h>

#include "offload/endpoint/endpoint.h"

#define BY_SINGLE_RANKS_MAX 64u

struct by_single;
struct by_mates;

/* Connects the ranks, all of which call this. `key` is a random number under which rank 0 listens
 * (by_mates_listen). Takes over `mates`, also when it fails. 0, or an error with its text. */
int by_single_open(struct by_single **single, struct by_mates *mates, uint64_t key, uint32_t rank,
                   uint32_t rank_count, uint64_t deadline_ns);
void by_single_close(struct by_single *single);

/* Whether such a call can be posted. */
bool by_single_serves(const struct by_call *call);
/* Like by_endpoint_post and _test. */
int by_single_post(struct by_single *single, const struct by_call *call, uint32_t *id);
int by_single_test(struct by_single *single, uint32_t id);
/* Ends all calls with `error`, for which `culprit` is the reason; those of the other ranks end in
 * their next step. */
void by_single_end(struct by_single *single, int error, uint32_t culprit);
bool by_single_is_busy(const struct by_single *single);

/* Moves what it can; returns the number of slices moved. If *error is set, nothing will move:
 * BY_EMISMATCH if rank *culprit has called something else, or what another rank has ended its calls
 * with. */
uint32_t by_single_step(struct by_single *single, int *error, uint32_t *culprit);
/* Finds the first rank, from `from` on, without which this rank cannot go on; rank_count: none. */
uint32_t by_single_awaits(const struct by_single *single, uint32_t from);
/* Whether a rank has ended, or has closed this. What it has given before stays. */
bool by_single_has_left(const struct by_single *single, uint32_t rank);
uint32_t by_single_rank_count(const struct by_single *single);
/* Returns a descriptor to sleep on, which is readable if something has changed since the last
 * step. */
int by_single_fd(struct by_single *single);

#endif
