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
#include "dataplane/wrap.h"
#include "dataplane/xdp.h"
#include "dataplane/xdp_port.h"
#include "offload/base/limits.h"
#include "offload/wire/frame.h"

/* Packets per receive or transmit call (count): enough to amortise a system call, few enough for
 * the first-level cache. */
#define BY_PORT_BURST 64u
/* Retries of a transmit call that sent nothing (count); then the rest is dropped. */
#define BY_PORT_RETRIES 16u
/* Buffers of a port whose driver copies out of rings of its own (count). */
#define BY_PORT_FRAMES_COPIED 512u
/* File descriptors of one port that tell of packets (count). */
#define BY_PORT_BELLS 4u
/* Ethernet, IPv4 and UDP headers (bytes), rounded up; banyan's header, written afterwards,
 * overwrites the excess. */
#define BY_PORT_STENCIL_BYTES 48u
/* Ethernet, IPv4, UDP and banyan headers in a frame (bytes), and their part that counts against the
 * MTU. */
#define BY_PORT_FRAME_OVERHEAD 82u
#define BY_PORT_MTU_OVERHEAD   68u

enum by_port_kind { BY_PORT_IFACE = 1, BY_PORT_VDEV, BY_PORT_PCI, BY_PORT_SHM };

/* How received frames reach the workers that have their chunks (port_steer.h): there is one worker;
 * one of several receives, and hands over; the sender of a frame chooses the queue; RSS does. */
enum by_port_steer { BY_STEER_NONE = 0, BY_STEER_HANDED, BY_STEER_SENDER, BY_STEER_RSS };

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
    uint64_t marked;     /* of those received and sent, by ECN, since a queue was long (mark.h) */
};

struct by_port;

/*
 * What drives a port: one constant table for each driver, in a file port_<driver>.c. Only flush and
 * is_crowded may be NULL.
 */
struct by_port_ops {
    /* Configures and starts a probed port that receives into `pool`. 0, BY_ELIMIT or BY_EIO,
     * reported. */
    int (*start)(struct by_port *port, struct rte_mempool *pool, uint16_t payload_max, struct by_xdp *xdp);
    /* Up to `count` received frames, which the caller owns. Never blocks. */
    uint16_t (*receive)(struct by_port *port, struct rte_mbuf **frames, uint16_t count);
    /* Sends the first of `count` frames; returns how many it took and freed. Never blocks. */
    uint16_t (*send)(struct by_port *port, struct rte_mbuf **frames, uint16_t count);
    /* Whether at least half of the receive queue is in use; false if the driver cannot report it.
     * NULL: it never can. */
    bool (*is_crowded)(const struct by_port *port);
    /* After the queue was sent; NULL: nothing is left to do. */
    void (*flush)(struct by_port *port);
    /* As by_port_settle. */
    bool (*settle)(struct by_port *port);
    /* Adds what the driver has counted: frames lost before the switch saw them. */
    void (*count)(struct by_port *port, struct by_dp_port_counters *counters);
    /* As by_port_is_down. */
    bool (*is_down)(const struct by_port *port);
    void (*close)(struct by_port *port);
};

/* What each frame touches comes first. */
struct by_port {
    const struct by_port_ops *ops;
    struct by_gso *gso;      /* of port_gso.c, else NULL */
    struct by_dp_link *link; /* of port_link.c, else NULL: its packets are no frames */
    struct by_xdp_port *xsk; /* of port_xdp.c, else NULL */
    uint16_t id;             /* DPDK's */
    uint16_t lane_queue;     /* of port_dpdk.c: the queue of this worker, in both directions */
    uint16_t queued;
    bool wraps;      /* frames change before they leave (wrap.c): a tag, or headers of IPv6 */
    uint16_t extra;  /* bytes of the headers of IPv6 beyond those of IPv4, if its address is IPv6's */
    bool multi_segs; /* takes chains of mbufs */
    bool copies;     /* the driver has copied a frame when its send call returns, so its memory is free */
    /* of port_hand.c: the ring to the port's owner, and the word in which its bit is set */
    struct rte_ring *to_owner;
    uint64_t *touched, owner;
    bool unsettled; /* of port_dpdk.c: frames were sent since by_port_settle */
    /* of frames sent: the MAC and IP address of this port, the peer's MAC, if the active table
     * names the port; the rest is each frame's own */
    struct by_frame carrier;
    uint16_t lane_port; /* of the stencil's tree: the source port without the lane; 0: it has none */
    uint8_t lane_first;
    uint64_t stencil_receiver,
        stencil_tree; /* what the stencil is for: address and length; job, tree and class */
    uint8_t stencil[BY_PORT_STENCIL_BYTES]; /* the headers of the last frame sent */
    uint64_t queued_bytes;
    struct by_wrap wrap;
    /* a frame of packets without payload, sent after the queue; or NULL */
    struct rte_mbuf *gathered;
    unsigned gathered_count; /* packets in it */
    struct by_frame gathered_frame;
    struct by_dp_port_counters counters;
    struct rte_mbuf *queue[BY_PORT_BURST];
    char name[BY_NAME_MAX + 1];
    char device[64];           /* DPDK's name */
    uint8_t mac[BY_MAC_BYTES]; /* of the interface or card */
    uint8_t kind;
    uint8_t driver;  /* of an interface: enum by_port_driver */
    bool automatic;  /* the driver was selected automatically, so another may replace it */
    bool hotplugged; /* a virtual device created by this process */
    bool started;
    uint16_t index;                    /* position on the command line */
    uint16_t mtu;                      /* bytes of an IP packet */
    uint64_t rx_offloads, tx_offloads; /* of port_dpdk.c: DPDK's bits of those in use */
    uint8_t steer;                     /* enum by_port_steer */
    uint16_t rx_descriptors;           /* of port_dpdk.c: of a receive queue */
    uint16_t rx_queues, tx_queues;     /* one, or one for each worker */
    char steer_why[96];                /* why frames are handed over, else "" */
    unsigned bell_count;
    int bells[BY_PORT_BELLS];
    unsigned frames_held;     /* buffers that its rings may hold (count) */
    unsigned headers_held;    /* headers of chained packets that its ring may hold (count) */
    uint64_t lost;            /* frames that its packet sockets have reported lost */
    const struct by_xdp *xdp; /* with xsk: what the kernel has counted */
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
/* Returns the name of the DPDK driver of a probed port, or "". */
const char *by_port_pmd(const struct by_port *port);
/* Raises the MTU of a probed card, as far as it can, to 9000 or what the payload needs. Other ports
 * keep theirs. */
void by_port_raise(struct by_port *port, uint32_t payload_max);
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
static inline bool by_port_settle(struct by_port *port);
/* The port has no carrier: its cable is gone, or what was at the other end. Where hosts share
 * memory there is no cable that could be. */
static inline bool by_port_is_down(const struct by_port *port);
/* The port's counters, with what was lost before the switch saw it. */
void by_port_read(struct by_port *port, struct by_dp_port_counters *counters);

/*
 * For the drivers. Each opens port->name, and sets `ops` and what belongs to it; 0 or an error,
 * reported. `driver` is an enum by_port_driver.
 */
bool by_port_is_device(const struct by_port *port); /* of DPDK: its `id` is valid */
int by_port_dpdk_interface(struct by_port *port, unsigned driver);
int by_port_dpdk_vdev(struct by_port *port, const char *text); /* the text may be longer than a name */
int by_port_dpdk_pci(struct by_port *port);
int by_port_gso_open(struct by_port *port, unsigned driver);
int by_port_xdp_open(struct by_port *port);
int by_port_link_open(struct by_port *port);
/* Make `port` another worker's view of `from`, a started port: what does not differ; and of a
 * device with a queue for that worker, which it uses. Views are not started. */
void by_port_view(struct by_port *port, const struct by_port *from);
void by_port_dpdk_view(struct by_port *port, const struct by_port *from, uint16_t queue);
/* A port that sends through a socket of another owner, and is not closed. */
void by_port_gso_borrow(struct by_port *port, struct by_gso *gso);
/* Frames for which the port's sockets had no room, since the start. A packet socket forgets what it
 * has reported. */
uint64_t by_port_count_sockets(struct by_port *port);

#include "dataplane/port_inline.h"

#endif
