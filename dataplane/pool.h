/* Pools of packet buffers. Created at start-up; used by the loop's thread. */
#ifndef BY_DATAPLANE_POOL_H
#define BY_DATAPLANE_POOL_H

#include <stdbool.h>
#include <stddef.h>

#include <rte_mbuf.h>

/*
 * Creates a pool of `count` buffers with `room` bytes of data (with headroom) and `private_bytes`
 * for the user. `device`: real devices access them by bus addresses. NULL if memory is short,
 * reported.
 */
struct rte_mempool *by_pool_make(const char *name, unsigned count, size_t private_bytes, size_t room,
                                 bool device);

#endif
