/* Pools of packet buffers. Start-up; the loop's thread takes and gives. */
#ifndef BY_DATAPLANE_POOL_H
#define BY_DATAPLANE_POOL_H

#include <stdbool.h>
#include <stddef.h>

#include <rte_mbuf.h>

/*
 * `count` buffers with `room` bytes of data (with headroom) and `private_bytes` of the user's.
 * `device`: real devices will reach them by bus addresses. NULL when memory does not suffice,
 * reported.
 */
struct rte_mempool *by_pool_make(const char *name, unsigned count, size_t private_bytes, size_t room,
                                 bool device);

#endif
