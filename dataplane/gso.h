/*
 * Trains: a kernel interface as a port on a packet socket of our own, which takes and gives up to
 * 64 frames in one piece, as segmentation offload carries them (virtio_net_hdr in front,
 * VIRTIO_NET_HDR_GSO_UDP_L4). Where the link cuts (a network card, or the kernel before a veth
 * device whose peer cannot), frames on the cable are the same as ever; where it does not (veth to
 * veth), a train crosses it by reference. DPDK's drivers know no such thing. The switch sees single
 * frames only. Loop's thread.
 */
#ifndef BY_DATAPLANE_GSO_H
#define BY_DATAPLANE_GSO_H

#include <stdbool.h>
#include <stdint.h>

#include <rte_mbuf.h>

#include "offload/linux/copies.h"
#include "offload/wire/frame.h"

struct by_gso;

/* What a socket is for: trains both ways; single frames in, out of a ring, without a system call
 * for any, and trains out that the link must cut; or these alone. */
enum by_gso_kind { BY_GSO_BOTH = 1, BY_GSO_RING, BY_GSO_SENDS };

/* Opens a socket on the interface. 0, BY_ENOMEM or BY_EIO, reported. */
int by_gso_open(struct by_gso **gso, const char *interface, uint16_t mtu, enum by_gso_kind kind);
/* Begins to receive into buffers of `pool`; `payload_max` (bytes) is the size of the segments that
 * are expected, others cost a copy. 0, BY_ENOMEM or BY_EIO, reported. */
int by_gso_start(struct by_gso *gso, struct rte_mempool *pool, uint16_t payload_max);
void by_gso_close(struct by_gso *gso);
/* Readable when frames wait. */
int by_gso_fd(const struct by_gso *gso);

/* Up to `count` frames, each whole, with headers of its own. Never blocks. */
uint16_t by_gso_receive(struct by_gso *gso, struct rte_mbuf **frames, uint16_t count);
/* Sends the first of `count` frames, as many in one train as belong together; returns how many it
 * took and freed, 0 when the socket has no room now. */
uint16_t by_gso_send(struct by_gso *gso, struct rte_mbuf **frames, uint16_t count);
/*
 * The same for `to_count` receivers at once, by copies that the kernel makes: of `to` addresses and
 * UDP port of the receiver count, and the copies' interfaces are in the list already. Returns how
 * many frames it took, which stay the caller's, or by_copies_send's error.
 */
int by_gso_copy(const struct by_gso *gso, struct rte_mbuf *const *frames, uint16_t count,
                struct by_copies *copies, const struct by_frame *const *to, unsigned to_count);
/* Single frames come and go: a train that it sends is cut before the link. */
bool by_gso_cuts(const struct by_gso *gso);
/* Frames that came and were dropped: no buffer, or malformed. */
uint64_t by_gso_dropped(struct by_gso *gso);
/* The loop is about to sleep: the next frame is to wake it. */
void by_gso_doze(struct by_gso *gso);

#endif
