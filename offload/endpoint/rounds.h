/*
 * Levelling in rounds (PROTOCOL.md, "Standby generations"): the messages of resume.h travel through
 * a tree that the failure has not hit, without a controller. A round is one allreduce (bor, u8) of
 * a region for each rank. It gives the messages of all ranks to all ranks, completely and in the
 * same order, or it does not complete. In the round after which every rank has reported that it is
 * level, the attempt is over at every rank that has the round's result.
 *
 * The tree is an endpoint of its own (by_endpoint_config.rounds), which the shell steps and whose
 * packets it separates from those of calls by generation and tree. An attempt that takes too long
 * is abandoned for one with a later generation, whose tree and memory are others: the shell begins
 * again with by_resume_begin. Pure; the endpoint's thread.
 */
#ifndef BY_ENDPOINT_ROUNDS_H
#define BY_ENDPOINT_ROUNDS_H

#include "offload/endpoint/resume.h"

struct by_level_rounds;

/* Returns the bytes (64-byte aligned) for levelling `endpoint`, whose calls stop: some 4 MiB, or 16
 * KiB for each rank if that is more; 0 if one of its messages may be longer than a region. */
size_t by_level_rounds_size(const struct by_endpoint *endpoint);
/*
 * Posts the first round. `resume` is an attempt that has just begun, and `tree` an endpoint of its
 * generation without calls; both must outlive the rounds. Returns BY_EINVAL if they do not belong
 * together, BY_EUNSUPPORTED if by_level_rounds_size returns 0, else as by_endpoint_post.
 */
int by_level_rounds_begin(struct by_level_rounds **rounds, void *memory, struct by_resume *resume,
                          struct by_endpoint *tree);
/*
 * Evaluates the round that `tree` has completed, if there is one, and posts the next. Call it after
 * each step of `tree`. Returns 1 if it has posted one, so that `tree` must be stepped at once; 0 if
 * there is nothing to do; BY_ESTATE when the ranks cannot be levelled; else the error with which
 * the round has ended.
 */
int by_level_rounds_step(struct by_level_rounds *rounds);
/* Returns 1 when every rank is level (by_resume_is_level): the calls may be carried over, and
 * `tree` is no longer needed. */
int by_level_rounds_is_over(const struct by_level_rounds *rounds);
/* Returns the number of rounds that are complete. */
uint32_t by_level_rounds_count(const struct by_level_rounds *rounds);

#endif
