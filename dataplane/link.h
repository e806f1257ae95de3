/*
 * A port without a wire: hosts of this machine share memory with the switch (offload/wire/shm.h).
 * The port is a Unix socket; each process that connects to it, one for each job of the host, gets a
 * cable. Payloads are read where the host has them and sums where the engine has them, so that the
 * switch copies nothing. Loop's thread.
 */
#ifndef BY_DATAPLANE_LINK_H
#define BY_DATAPLANE_LINK_H

#include <stdbool.h>
#include <stdint.h>

#include <rte_mbuf.h>

#include "offload/engine/engine.h"
#include "offload/wire/frame.h"
#include "offload/wire/packet.h"

/* Packets of one port in a round (count): so few that a slot is still in the cache when the next
 * host's value for it is added. */
#define BY_LINK_BURST 8u

struct by_dp_link;

/* Listens at `path`, where nobody else does. 0, BY_EEXIST, BY_EINVAL, BY_ENOMEM or BY_EIO,
 * reported. */
int by_link_open(struct by_dp_link **link, const char *path);
/* From now on hosts are let in, at port `port`. They see `memory`, the engine's payloads and
 * nothing else, through `memory_fd`. */
void by_link_start(struct by_dp_link *link, uint16_t port, struct by_engine *engine, const uint8_t *memory,
                   uint64_t memory_bytes, int memory_fd);
/* Ends all cables and removes the socket. */
void by_link_close(struct by_dp_link *link);
/* Readable when by_link_serve has something to do, or a host has rung. */
int by_link_fd(const struct by_dp_link *link);
/* Lets hosts in, and forgets those that have gone. */
void by_link_serve(struct by_dp_link *link);

/* Up to `count` packets, as from port `port`, beginning with another host each time; malformed
 * ones, which are dropped, are among each host's `count`. Their data hold until by_link_done. */
uint32_t by_link_receive(struct by_dp_link *link, uint16_t port, struct by_rx *rx, uint32_t count);
void by_link_done(struct by_dp_link *link);
/* Sends an action of the engine from `src_ip`; false when it was dropped. The engine's reference is
 * released when the host has read the payload, or at once when there is nobody to read it. */
bool by_link_send(struct by_dp_link *link, const struct by_tx *tx, uint32_t src_ip);
/* Sends frames that were made for another kind of port by a copy, and frees them; those that no
 * host takes are dropped. Returns `count`. */
uint16_t by_link_send_frames(struct by_dp_link *link, struct rte_mbuf **frames, uint16_t count);
/* Shows the hosts what was sent, and wakes those that sleep. */
void by_link_flush(struct by_dp_link *link);
/* Before a sleep: hosts ring from now on, and where a packet is there already the bell rings at
 * once. */
void by_link_doze(struct by_dp_link *link);
/* Adds packets that came and were malformed, and frames that no host took. */
void by_link_dropped(const struct by_dp_link *link, uint64_t *received, uint64_t *sent);

/* The packet as a frame in one buffer, for those who want that: headers from `carrier`. NULL
 * without memory.
 */
struct rte_mbuf *by_link_frame(const struct by_rx *rx, const struct by_frame *carrier,
                               struct rte_mempool *pool);

#endif
