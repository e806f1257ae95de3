/*
 * GSO batches: a kernel interface as a port on a packet socket of this process, which sends and
 * receives up to 64 frames in one piece, as segmentation offload carries them (virtio_net_hdr in
 * front, VIRTIO_NET_HDR_GSO_UDP_L4). If the link cuts batches (a network card, or the kernel before
 * a veth device whose peer cannot accept them), the cable carries ordinary frames. If it does not
 * (veth to veth), a batch crosses it by reference. DPDK's drivers have no such mode. The switch
 * sees single frames only. Loop's thread.
 */
#ifndef BY_DATAPLANE_GSO_H
#define BY_DATAPLANE_GSO_H

#include <stdbool.h>
#include <stdint.h>

#include <rte_mbuf.h>

#include "offload/linux/copies.h"
#include "offload/wire/frame.h"

struct by_gso;

/* Use of a socket: GSO batches in both directions; single frames received from a ring without
 * system calls, and sent batches that the link must cut; or only the latter. */
enum by_gso_kind { BY_GSO_BOTH = 1, BY_GSO_RING, BY_GSO_SENDS };

/* Opens a socket on the interface. 0, BY_ENOMEM or BY_EIO, reported. */
int by_gso_open(struct by_gso **gso, const char *interface, uint16_t mtu, enum by_gso_kind kind);
/* Starts to receive into buffers of `pool`. `payload_max` (bytes) is the expected segment size;
 * other sizes cost a copy. 0, BY_ENOMEM or BY_EIO, reported. */
int by_gso_start(struct by_gso *gso, struct rte_mempool *pool, uint16_t payload_max);
void by_gso_close(struct by_gso *gso);
/* Returns a descriptor that is readable when frames wait. */
int by_gso_fd(const struct by_gso *gso);

/* Receives up to `count` complete frames, each with its own headers. Never blocks. */
uint16_t by_gso_receive(struct by_gso *gso, struct rte_mbuf **frames, uint16_t count);
/* Sends the first of `count` frames, and with it all that fit the same GSO batch. Returns how many
 * it accepted and freed; 0 if the socket is full. */
uint16_t by_gso_send(struct by_gso *gso, struct rte_mbuf **frames, uint16_t count);
/*
 * Like by_gso_send, to `to_count` receivers at once, through copies that the kernel makes. `to`
 * supplies the receivers' addresses and UDP ports; `copies` already lists their interfaces. Returns
 * the number of frames sent, which the caller keeps, or the error of by_copies_send.
 */
int by_gso_copy(const struct by_gso *gso, struct rte_mbuf *const *frames, uint16_t count,
                struct by_copies *copies, const struct by_frame *const *to, unsigned to_count);
/* Whether the port sends batches, which its link cuts or passes on whole. */
bool by_gso_sends_batches(const struct by_gso *gso);
/* Number of received frames that were dropped: no buffer, or malformed. */
uint64_t by_gso_dropped(struct by_gso *gso);
/* Whether at least half of the receive ring is in use; false without a ring. */
bool by_gso_is_crowded(const struct by_gso *gso);
/* Arms the wake-up before the loop sleeps: the next frame will wake it. */
void by_gso_doze(struct by_gso *gso);

#endif
