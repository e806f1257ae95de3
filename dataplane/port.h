/*
 * A port of the switch: any DPDK port, or a kernel interface through a virtual device. Handles
 * opening, queues, counters, and the descriptors that wake an idle switch. One thread: the loop's.
 */
#ifndef BY_DATAPLANE_PORT_H
#define BY_DATAPLANE_PORT_H

#include <stdbool.h>
#include <stdint.h>

#include <rte_mbuf.h>

#include "dataplane/gso.h"
#include "dataplane/interface.h"
#include "dataplane/link.h"
#include "dataplane/xdp.h"
#include "dataplane/xdp_port.h"
#include "offload/base/limits.h"
#include "offload/wire/frame.h"

/* Packets per receive or transmit call (count): enough to amortise a system call, few enough for
 * the first-level cache. */
#define BY_PORT_BURST 64u
/* Retries of a transmit call that sent nothing (count); then the rest is dropped. */
#define BY_PORT_RETRIES 16u
/* Maximum number of file descriptors of one port that signal packets. */
#define BY_PORT_BELLS 4u
/* Ethernet, IPv4 and UDP headers (bytes), rounded up; banyan's header, written afterwards,
 * overwrites the excess. */
#define BY_PORT_STENCIL_BYTES 48u
/* Ethernet, IPv4, UDP and banyan headers in a frame (bytes), and their part that counts against the
 * MTU. */
#define BY_PORT_FRAME_OVERHEAD 82u
#define BY_PORT_MTU_OVERHEAD   68u

enum by_port_kind { BY_PORT_IFACE = 1, BY_PORT_VDEV, BY_PORT_PCI, BY_PORT_SHM };

/* A port as specified by the user. */
struct by_port_spec {
    uint8_t kind;
    /* interface name, "net_ring0,...", "0000:01:00.0" or a socket's path */
    const char *text;
};

/* Packets and bytes of whole Ethernet frames without FCS. */
struct by_dp_port_counters {
    uint64_t rx_packets, rx_bytes, tx_packets, tx_bytes;
    /* lost at the port before the switch received them (from the driver), and frames for other
     * receivers */
    uint64_t rx_dropped;
    uint64_t tx_dropped; /* refused by the port */
};

/* Fields used for every frame are first. */
struct by_port {
    /* drives the port instead of DPDK (BY_DRIVER_GSO), or NULL */
    struct by_gso *gso;
    /* drives it if hosts share memory (BY_PORT_SHM), or NULL */
    struct by_dp_link *link;
    /* drives it if the kernel processes a part (BY_DRIVER_XDP), or NULL */
    struct by_xdp_port *xsk;
    uint16_t id; /* DPDK's number */
    uint16_t queued;
    bool addressed;  /* the active table contains this port: carrier is valid */
    bool multi_segs; /* accepts chains of mbufs */
    bool unsettled;  /* frames were sent since by_port_settle */
    /* of sent frames: own MAC and IP address, and the peer's MAC; the other fields differ per
     * frame */
    struct by_frame carrier;
    /* key of the stencil: address and length; job, tree and class */
    uint64_t stencil_receiver, stencil_tree;
    uint8_t stencil[BY_PORT_STENCIL_BYTES]; /* headers of the last sent frame */
    uint64_t queued_bytes;
    /* a frame of packets without payload, sent after the queue; or NULL */
    struct rte_mbuf *gathered;
    unsigned gathered_count; /* packets in it */
    struct by_frame gathered_frame;
    struct by_dp_port_counters counters;
    struct rte_mbuf *queue[BY_PORT_BURST];
    char name[BY_NAME_MAX + 1];
    char device[64]; /* DPDK's name */
    uint8_t kind;
    uint8_t driver;  /* of an interface: enum by_port_driver */
    bool automatic;  /* the driver was selected automatically, so another may replace it */
    bool hotplugged; /* a virtual device created by this process */
    bool started;
    uint16_t index; /* position on the command line */
    uint16_t mtu;   /* bytes of an IP packet */
    unsigned bell_count;
    int bells[BY_PORT_BELLS];
    /* sum of losses that the packet sockets have reported */
    uint64_t lost;
    const struct by_xdp *xdp; /* with xsk: the kernel's counters */
};

/* Returns the payload bytes that fit the port's MTU: mtu - 68, at least 0. */
uint32_t by_port_payload_max(const struct by_port *port);
/* Returns the size of a receive buffer of this port, without headroom (bytes). */
uint32_t by_port_buffer_bytes(const struct by_port *port);

/*
 * Checks the ports as far as possible before DPDK starts: duplicate names, missing interfaces and
 * PCI addresses (the text lists the existing ones), permission for raw sockets. 0, BY_EINVAL,
 * BY_ENOENT or BY_EPERM, reported.
 */
int by_port_check_all(const struct by_port_spec *specs, unsigned count);
/*
 * Finds or creates the device and reads its MTU. BY_ENOENT (no such interface, device or address;
 * the text lists the existing ones), BY_EPERM (no permission for raw sockets), BY_EIO. Reported by
 * by_say.
 */
int by_port_probe(struct by_port *port, unsigned index, const struct by_port_spec *spec, unsigned driver);
/* Configures and starts a probed port that receives into `pool`. `xdp` is the switch's XDP part if
 * a port has one, else NULL. 0, BY_ELIMIT (frames do not fit) or BY_EIO, reported. */
int by_port_start(struct by_port *port, struct rte_mempool *pool, uint16_t payload_max, struct by_xdp *xdp);
/* Reverses by_port_start and by_port_probe. */
void by_port_close(struct by_port *port);

/* Receives up to `count` frames. */
static inline uint16_t by_port_receive(struct by_port *port, struct rte_mbuf **frames, uint16_t count);
/* Queues one frame, which the port then owns. Sends a full queue. */
static inline void by_port_send(struct by_port *port, struct rte_mbuf *frame);
/* Sends an output of the engine on a shared-memory port. */
void by_port_send_shared(struct by_port *port, const struct by_tx *tx);
/* Sends the queue: retries a bounded number of times, then drops and counts the rest. */
void by_port_flush(struct by_port *port);
/*
 * Makes the kernel send the frames that are still in a packet socket's ring: a transmit call may
 * leave frames there if receivers are slow, and only the next call would send them. Call before a
 * sleep. False if some are still left.
 */
bool by_port_settle(struct by_port *port);
/* Whether the port has no carrier: its cable or its peer is gone. Always false for a port of shared
 * memory, which has no cable. */
bool by_port_is_down(const struct by_port *port);
/* Reads the port's counters, including losses before the switch received the frames. */
void by_port_read(struct by_port *port, struct by_dp_port_counters *counters);

#include "dataplane/port_inline.h"

#endif
