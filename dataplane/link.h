/*
 * A port without a wire: hosts on this machine share memory with the switch (offload/wire/shm.h).
 * The port is a Unix socket; each connecting process, one per job of the host, gets a cable.
 * Payloads are read from the host's memory and results from the engine's, so the switch copies
 * nothing. Loop's thread.
 */
#ifndef BY_DATAPLANE_LINK_H
#define BY_DATAPLANE_LINK_H

#include <stdbool.h>
#include <stdint.h>

#include <rte_mbuf.h>

#include "offload/engine/engine.h"
#include "offload/wire/frame.h"
#include "offload/wire/packet.h"

/* Packets of one port in a round (count): few enough that a slot is still in the cache when the
 * next host's value for it is added. */
#define BY_LINK_BURST 8u

struct by_dp_link;

/* Listens at `path`, unless another process does. 0, BY_EEXIST, BY_EINVAL, BY_ENOMEM or BY_EIO,
 * reported. */
int by_link_open(struct by_dp_link **link, const char *path);
/* Starts to accept hosts, at port `port`. Through `memory_fd` they see `memory`, which holds the
 * engine's payloads and nothing else. */
void by_link_start(struct by_dp_link *link, uint16_t port, struct by_engine *engine, const uint8_t *memory,
                   uint64_t memory_bytes, int memory_fd);
/* Closes all cables and removes the socket. */
void by_link_close(struct by_dp_link *link);
/* Returns a descriptor that is readable when by_link_serve has work, or a host has rung the
 * doorbell. */
int by_link_fd(const struct by_dp_link *link);
/* Accepts new hosts, and removes those that have disconnected. */
void by_link_serve(struct by_dp_link *link);

/* Receives up to `count` packets, as from port `port`; a different host is first each time.
 * Malformed packets are dropped, but count towards `count`. The data are valid until
 * by_link_done. */
uint32_t by_link_receive(struct by_dp_link *link, uint16_t port, struct by_rx *rx, uint32_t count);
void by_link_done(struct by_dp_link *link);
/* Sends an output of the engine from `src_ip`; false if it was dropped. The engine's reference is
 * released when the host has read the payload, or immediately if there is no receiver. */
bool by_link_send(struct by_dp_link *link, const struct by_tx *tx, uint32_t src_ip);
/* Sends frames that were built for another kind of port, by a copy, and frees them; drops frames
 * without a receiver. Returns `count`. */
uint16_t by_link_send_frames(struct by_dp_link *link, struct rte_mbuf **frames, uint16_t count);
/* Publishes sent packets to the hosts, and wakes sleeping hosts. */
void by_link_flush(struct by_dp_link *link);
/* Call before a sleep: from now on hosts ring the doorbell. If a packet is already waiting, the
 * descriptor becomes readable immediately. */
void by_link_doze(struct by_dp_link *link);
/* Adds the number of malformed packets received, and of frames without a receiver. */
void by_link_dropped(const struct by_dp_link *link, uint64_t *received, uint64_t *sent);

/* Copies the packet into a single buffer as a frame, with the headers of `carrier`. NULL if memory
 * is short. */
struct rte_mbuf *by_link_frame(const struct by_rx *rx, const struct by_frame *carrier,
                               struct rte_mempool *pool);

#endif
