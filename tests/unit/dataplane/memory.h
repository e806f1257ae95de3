/* DPDK for unit tests: an EAL without hugepages, devices or root, and a shell on ring ports. Each
 * port receives the frames that it sends. */
#ifndef BY_TESTS_UNIT_DATAPLANE_MEMORY_H
#define BY_TESTS_UNIT_DATAPLANE_MEMORY_H

#include "dataplane/state.h"
#include "tests/unit/firmware/star.h"

/* Elements of a contribution. */
#define MEMORY_COUNT 16u

/* Group set-up and tear-down: start and end the EAL. */
int memory_start(void **state);
int memory_stop(void **state);
/* Opens a shell with `ports` ring ports and no control channel. */
struct by_shell *memory_shell(unsigned ports);
/* Loads the image of a star into it. */
void memory_load(struct by_shell *shell, const struct star *star);
/* Puts a frame into the receive queue of port `port`. Returns the buffer. */
struct rte_mbuf *memory_inject(struct by_shell *shell, unsigned port, const uint8_t *frame, size_t bytes);
/* Returns the next frame that port `port` has sent, or NULL. Call this after a round, before the
 * next. */
struct rte_mbuf *memory_sent(struct by_shell *shell, unsigned port);
/* Lets the switch receive every host's contribution to chunk `seq`, except that of `skip`. */
void memory_contribute(struct by_shell *shell, const struct star *star, uint32_t seq, unsigned skip);
/* The frame must be the result of `seq` for `host`. Returns its payload, which has one or two
 * segments. */
const uint8_t *memory_check_result(const struct star *star, struct rte_mbuf *frame, unsigned host,
                                   uint32_t seq, uint8_t room[2048]);
/* Returns the packets that point into the payload of chunk `seq`. */
unsigned memory_references(struct by_shell *shell, const struct star *star, uint32_t seq);
/* Returns the buffers that are not in their pools. */
unsigned memory_buffers(const struct by_shell *shell);

#endif
