/*
 * Packet buffers. If no real device reads them, buffers may cross page boundaries: net_af_xdp
 * passes the whole pool to the kernel as one range of count x size bytes. If buffers were moved to
 * page boundaries, some would lie beyond that range, and frames in them would be dropped silently.
 * Start-up.
 */
#include "dataplane/pool.h"

#include <rte_errno.h>
#include <rte_mempool.h>

#include "dataplane/say.h"

/* Buffers cached per thread (count), in pools of at least eight times as many. */
#define CACHE_COUNT 256u

struct rte_mempool *by_pool_make(const char *name, unsigned count, size_t private_bytes, size_t room,
                                 bool device)
{
    struct rte_pktmbuf_pool_private private = {.mbuf_data_room_size = (uint16_t)room,
                                               .mbuf_priv_size = (uint16_t)private_bytes};
    unsigned element = (unsigned)(sizeof(struct rte_mbuf) + private_bytes + room);
    struct rte_mempool *pool =
        rte_mempool_create_empty(name, count, element, count >= 8 * CACHE_COUNT ? CACHE_COUNT : 0,
                                 sizeof private, SOCKET_ID_ANY, device ? 0 : RTE_MEMPOOL_F_NO_IOVA_CONTIG);
    int result = pool ? 0 : -rte_errno;

    if (pool) {
        /* The buffer that was freed last is still in the cache. Without the driver, buffers are
         * used in turn. */
        (void)rte_mempool_set_ops_byname(pool, "stack", NULL);
        rte_pktmbuf_pool_init(pool, &private);
        result = rte_mempool_populate_default(pool);
    }
    if (result < 0) {
        by_say("no memory for %u packet buffers of %zu bytes (%s): %s; provide more hugepages (`sysctl "
               "vm.nr_hugepages=512`) or run with --no-huge",
               count, room, name, rte_strerror(-result));
        rte_mempool_free(pool);
        return NULL;
    }
    rte_mempool_obj_iter(pool, rte_pktmbuf_init, NULL);
    return pool;
}
