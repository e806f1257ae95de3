/* DPDK for unit tests: an EAL without hugepages, devices or root, and a shell on ring ports, whose
 * every sent frame is received by the same port. */
#ifndef BY_TESTS_UNIT_DATAPLANE_MEMORY_H
#define BY_TESTS_UNIT_DATAPLANE_MEMORY_H

#include "dataplane/state.h"
#include "tests/unit/firmware/star.h"

/* Group set-up and tear-down: starts and leaves the EAL. */
int memory_start(void **state);
int memory_stop(void **state);
/* A shell with `ports` ring ports, no control channel. */
struct by_shell *memory_shell(unsigned ports);
/* Loads the image of a star into it. */
void memory_load(struct by_shell *shell, const struct star *star);
/* Puts a frame where port `port` will receive it. Returns the buffer. */
struct rte_mbuf *memory_inject(struct by_shell *shell, unsigned port, const uint8_t *frame, size_t bytes);
/* The next frame that port `port` has sent, or NULL. To be called after a round, before the next.
 */
struct rte_mbuf *memory_sent(struct by_shell *shell, unsigned port);

#endif
