/*
 * Calls that outlive a node: generation + 1, and resume by copy (PROTOCOL.md, "When a node dies").
 * When a table of another generation is to replace one whose nodes have lost chunks, the ranks
 * first freeze, report what they have, and level: a result that some rank has is copied to those
 * that lack it, since its input may be gone (in-place buffers). Then each goes on in the new trees
 * with what no rank has.
 *
 * This is one rank's side as a step: the shell carries messages between the ranks of a job, over
 * whatever it has. Messages may be lost (by_resume_repeat), doubled and out of order. Pure; the
 * endpoint's thread.
 */
#ifndef BY_ENDPOINT_RESUME_H
#define BY_ENDPOINT_RESUME_H

#include "offload/endpoint/endpoint.h"

struct by_resume;

/* Bytes (64-byte aligned) for resuming the calls of `endpoint`, and of the longest message. */
size_t by_resume_size(const struct by_endpoint *endpoint);
size_t by_resume_message_max(const struct by_endpoint *endpoint);

/*
 * Freezes `endpoint`, whose config has `resume`: it takes and sends no packet from now on; calls
 * may still be posted and collected. `attempt` is the generation that will be installed: of a later
 * one, should a node die meanwhile, the shell begins again with the same endpoint. BY_ESTATE when
 * the endpoint has ended or keeps nothing, BY_EINVAL when it is of that generation already.
 */
int by_resume_begin(struct by_resume **resume, void *memory, struct by_endpoint *endpoint, uint16_t attempt);
/*
 * A message from another rank: 0, or BY_EFORMAT or BY_ECHECKSUM when it is damaged, or BY_ESTATE
 * when ranks cannot be made level: then calls cannot go on. Those of another attempt, and old ones,
 * are passed over. Then by_resume_say until it has nothing more to say.
 */
int by_resume_take(struct by_resume *resume, const uint8_t *data, size_t bytes);
/* What is to be said next, to rank *to: its bytes, at most by_resume_message_max; 0: nothing, until
 * the next message is taken. */
size_t by_resume_say(struct by_resume *resume, uint8_t *data, uint16_t *to);
/* Says again what may have been lost; over connections that lose nothing there is no need. */
void by_resume_repeat(struct by_resume *resume);
/* 1 when every rank has what any had: the endpoint may be carried over. */
int by_resume_is_level(const struct by_resume *resume);

/* A rank whose word is still awaited, the lowest; BY_RANK_NONE when it is not level for want of
 * none, or it is. */
uint16_t by_resume_awaited(const struct by_resume *resume);

/* Bytes (64-byte aligned) for the endpoint that goes on; 0 as by_endpoint_size. */
size_t by_resume_copy_size(const struct by_resume *resume, const struct by_endpoint_config *config);
/*
 * The endpoint that goes on: every rank is level; `config` has another generation's image, in which
 * the rank is the same. Calls keep their ids, buffers and numbers. From the first step on it sends
 * what is left of them. The old endpoint, which must still be there, is used up; `resume` must stay
 * while others may still wait for its word. BY_EUNSUPPORTED when the new trees do not serve a call
 * that runs; then, and with the errors of by_endpoint_init, the old one is as it was.
 */
int by_resume_copy(struct by_resume *resume, struct by_endpoint **endpoint, void *memory, size_t bytes,
                   const struct by_endpoint_config *config);

#endif
