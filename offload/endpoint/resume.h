/*
 * Calls that survive the failure of a node: generation + 1, and copy on resume (PROTOCOL.md, "When
 * a node dies"). Before a table of another generation replaces one whose nodes have lost chunks,
 * the ranks freeze, report what they have, and level: a result that some rank has is copied to
 * those that lack it, because its input may be gone (in-place buffers). Then each rank continues in
 * the new trees with the chunks that no rank has.
 *
 * This is one rank's side as a state machine; the shell carries the messages between the ranks of a
 * job over any transport. Messages may be lost (by_resume_repeat), duplicated and reordered. Pure;
 * the endpoint's thread.
 */
#ifndef BY_ENDPOINT_RESUME_H
#define BY_ENDPOINT_RESUME_H

#include "offload/endpoint/endpoint.h"

struct by_resume;

/* Returns the bytes (64-byte aligned) for resuming the calls of `endpoint`; the next function
 * returns the size of the longest message. */
size_t by_resume_size(const struct by_endpoint *endpoint);
size_t by_resume_message_max(const struct by_endpoint *endpoint);

/*
 * Freezes `endpoint`, whose config has `resume`: it receives and sends no packets from now on;
 * calls may still be posted and collected. `attempt` is the generation that will be installed. If
 * another node dies meanwhile, the shell begins again with the same endpoint and a later
 * generation. Returns BY_ESTATE when the endpoint has ended or does not keep data for resuming,
 * BY_EINVAL when it is of that generation already.
 */
int by_resume_begin(struct by_resume **resume, void *memory, struct by_endpoint *endpoint, uint16_t attempt);
/*
 * Handles a message from another rank. Returns 0; BY_EFORMAT or BY_ECHECKSUM when it is damaged; or
 * BY_ESTATE when the ranks cannot be levelled, so that the calls cannot continue. Messages of
 * another attempt and old messages are ignored. Afterwards call by_resume_say until it returns 0.
 */
int by_resume_take(struct by_resume *resume, const uint8_t *data, size_t bytes);
/* Writes the next message to send and its receiver `*to`. Returns its bytes, at most
 * by_resume_message_max; 0: nothing to send until the next message is handled. */
size_t by_resume_say(struct by_resume *resume, uint8_t *data, uint16_t *to);
/* Every message of this attempt will reach all ranks, and none is lost (rounds.h): REPORT and LEVEL
 * are written once, to BY_RANK_NONE. Call it before by_resume_say. */
void by_resume_share(struct by_resume *resume);
/* Repeats messages that may have been lost; unnecessary over reliable connections. If messages are
 * shared, it repeats only the requests for what is still missing. */
void by_resume_repeat(struct by_resume *resume);
/* Returns 1 when every rank has every result that any rank had, so that the endpoint may be carried
 * over. */
int by_resume_is_level(const struct by_resume *resume);

/* Returns the lowest rank whose message is still awaited; BY_RANK_NONE when this rank is level, or
 * is not level for another reason. */
uint16_t by_resume_awaited(const struct by_resume *resume);

/* Returns the bytes (64-byte aligned) for the endpoint that continues; 0 as by_endpoint_size. */
size_t by_resume_copy_size(const struct by_resume *resume, const struct by_endpoint_config *config);
/*
 * Creates the endpoint that continues. Every rank must be level; `config` has an image of another
 * generation, in which the rank is the same. Calls keep their ids, buffers and numbers. From its
 * first step on, the endpoint sends what is left of them. The old endpoint, which must still exist,
 * is consumed; `resume` must remain while others may still wait for its message. Returns
 * BY_EUNSUPPORTED when the new trees do not serve a running call; then, and with the errors of
 * by_endpoint_init, the old endpoint is unchanged.
 */
int by_resume_copy(struct by_resume *resume, struct by_endpoint **endpoint, void *memory, size_t bytes,
                   const struct by_endpoint_config *config);

#endif
