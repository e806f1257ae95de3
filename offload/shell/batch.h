/*
 * The packet loop of a switch, as far as it is equal on every platform. A round polls each port
 * once, filters the frames, injects faults, collects banyan's packets into one batch, steps the
 * engine, and carries out its outputs: relays and holds here, sends through the platform. The
 * platform provides buffers and ports by a table of functions. Neighbours: dataplane/loop.c (DPDK),
 * firmware/baremetal/loop.c. Pure; one thread.
 */
#ifndef BY_SHELL_BATCH_H
#define BY_SHELL_BATCH_H

#include <stdbool.h>

#include "offload/base/park.h"
#include "offload/engine/engine.h"
#include "offload/shell/hold.h"
#include "offload/shell/neighbour.h"
#include "offload/wire/frame.h"
#include "offload/wire/lldp.h"

/* Packets of one batch: a round steps the engine when it has collected this many. And the maximum
 * of frames that a port may add per round: a GSO batch (count). The build of an image without an
 * operating system sets both lower, for all of its objects: memory is short, and there is no
 * GSO. */
#ifndef BY_BATCH_MAX
#define BY_BATCH_MAX   512u
#define BY_BATCH_BURST 64u
#endif
/* Frames that a round takes from all ports together unless the platform sets `burst` (count), and
 * the most and the least of one port. */
#define BY_BATCH_ROUND     128u
#define BY_BATCH_BURST_ONE 32u
#define BY_BATCH_BURST_MIN 8u
/* Packets per step of the engine (count). The outputs of a step are sent and its frames are freed
 * before the next step, so that copies are made in buffers that are still in the cache. */
#define BY_BATCH_STEP 16u
/* Capacity of a batch (count): with fault injection one received frame yields at most three. */
#define BY_BATCH_ROOM (BY_BATCH_MAX + 3u * BY_BATCH_BURST)
/* Classes of trees by which contributions to one chunk find each other (count). */
#define BY_BATCH_CLASSES 64u
/* Maximum outputs of one step of the engine (count). */
#define BY_TX_MAX (BY_FAMILY_MAX + 2u)

/* X(name, "help"): counters since the start, of every platform. */
#define BY_BATCH_COUNTER_LIST(X)                                                                             \
    X(loops, "rounds over all ports")                                                                        \
    X(sleeps, "times that the switch slept because no frame arrived")                                        \
    X(steps, "batches given to the engine")                                                                  \
    X(rx_other, "frames that are not banyan's: ignored")                                                     \
    X(rx_not_ours, "banyan frames for another MAC address or UDP port")                                      \
    X(rx_vlan, "frames of another VLAN than the port's")                                                     \
    X(rx_unaddressed, "frames on a port that the table does not name")                                       \
    X(arp_replies, "ARP requests answered")                                                                  \
    X(arp_requests, "ARP requests sent")                                                                     \
    X(arp_learned, "MAC addresses of neighbours learned or changed")                                         \
    X(arp_silent, "times that a neighbour was found not to answer ARP")                                      \
    X(fault_dropped, "frames dropped on purpose (--loss)")                                                   \
    X(fault_duplicated, "frames duplicated on purpose (--dup)")                                              \
    X(fault_held, "frames held back on purpose (--reorder)")                                                 \
    X(tx_shared, "packets sent as a header chained to a shared payload")                                     \
    X(tx_copied, "packets sent as a copy: the port accepts no chains, or the payload is not shared")         \
    X(tx_relayed, "packets relayed in the buffer in which they arrived")                                     \
    X(tx_no_memory, "packets dropped: no packet buffer, or the port was full")                               \
    X(tx_no_port, "packets dropped: the port does not exist or has no address")                              \
    X(tx_no_neighbour, "packets dropped: the receiver's MAC address has not been learned")

struct by_batch_counters {
#define X(name, help) uint64_t name;
    BY_BATCH_COUNTER_LIST(X)
#undef X
};

/* Where packets of a port go. */
enum by_batch_reach {
    BY_REACH_NONE = 0, /* the table does not name this port */
    BY_REACH_PEER,     /* to peer_mac */
    BY_REACH_BRIDGE,   /* to the MAC address of each receiver */
    BY_REACH_WAITS,    /* nowhere: the peer's MAC address has not been learned */
};

/* The last frame that was taken at a port. A frame with the same headers before the UDP checksum
 * yields the same packet, except for its contents, and is not parsed again. */
struct by_batch_last {
    uint8_t headers[BY_FRAME_AT_UDP_CHECKSUM];
    struct by_rx rx; /* bytes 0: there is none since the port got its addresses */
};

/* What the active table tells about a port. */
struct by_batch_port {
    bool addressed; /* the table names this port: the rest is valid */
    uint8_t reach;  /* enum by_batch_reach */
    uint16_t vlan;  /* of frames on the wire, whose tags the platform writes and strips; 0: no tags */
    uint32_t ip;
    uint8_t mac[BY_MAC_BYTES], peer_mac[BY_MAC_BYTES];
    /* Of the platform, set before the first table. */
    uint8_t hardware_mac[BY_MAC_BYTES]; /* used where the table states none */
    bool is_memory;                     /* packets of this port are no frames and need no MAC address */
    bool is_untagged;                   /* the platform sees no tags: it adds and removes them below */
    struct by_batch_last last;
};

/* The neighbour that a port has heard last. */
struct by_batch_neighbour {
    uint64_t until_ns; /* 0: none; then what it stated is out of date */
    struct by_lldp lldp;
};

/* What a platform does with frames; a frame is a pointer in the platform's representation. */
struct by_batch_ops {
    /* Polls a port or another source: calls by_batch_receive for each of at most batch->burst
     * frames of a port. Returns their count. */
    uint32_t (*receive)(void *context, uint16_t source);
    /* Returns the frame's bytes, which may be changed. */
    uint8_t *(*data)(void *context, void *frame, uint32_t *bytes);
    /* Adds a reference to a frame. */
    void (*share)(void *context, void *frame);
    /* Removes a reference from each of `count` frames; NULLs are skipped. */
    void (*drop)(void *context, void **frames, uint32_t count);
    /* Creates a frame for a packet that was received without one, with the headers of `port`.
     * NULL: not possible. */
    void *(*make)(void *context, const struct by_rx *rx, uint16_t port);
    /* Sends a whole frame, and then removes a reference from it. */
    void (*forward)(void *context, uint16_t port, void *frame);
    /* Sends a copy of `bytes` bytes, at most BY_LLDP_BYTES_MAX. False: no buffer, or (for more
     * than BY_FRAME_HEADER_BYTES) more than the platform's hold. */
    bool (*reply)(void *context, uint16_t port, const uint8_t *frame, uint32_t bytes);
    /* Carries out `count` outputs of kind BY_TX_SEND to addressed ports; returns the references
     * of their payloads to the engine when they have been sent, or cannot be. */
    void (*send)(void *context, const struct by_tx *tx, uint32_t count);
    /* A neighbour does not answer (neighbour->silent), or answers again. NULL: not reported. */
    void (*neighbour)(void *context, const struct by_shell_neighbour *neighbour);
    /* The batch is consumed: the data of packets without a frame are no longer in use. NULL: all
     * packets have frames. */
    void (*done)(void *context);
};

/* A contribution in the sort of a batch, by indices in by_batch.arrived. */
struct by_batch_sorted {
    uint32_t tree, seq; /* of the chunk: job and tree, and the sequence number */
    uint16_t next;      /* the first packet of the next chunk of the class */
    uint16_t with;      /* the next packet of the same chunk */
    uint16_t last;      /* of a chunk's first packet: its last one, */
    uint16_t count;     /* and the number of its packets */
};

struct by_batch {
    const struct by_batch_ops *ops;
    void *context; /* of ops */
    struct by_engine *engine;
    uint64_t now_ns; /* set by the platform before each round */
    bool timeless;   /* the engine gets no clock, so that a trace is repeatable */
    uint32_t port_count;
    uint32_t first_port; /* first port of the next round; rotates for fairness */
    /* Of the platform: ports of other workers, as bits. Their workers ask and answer ARP there;
     * this one only learns. */
    uint64_t late;
    uint32_t source_count; /* what is polled: the ports, and behind them what the platform adds */
    uint32_t burst; /* frames that a port may add per round: those of all ports fit a batch, if there are few
                       ports, so that the packets of a chunk meet in it */
    uint32_t step_packets; /* packets per step: BY_BATCH_STEP, unless the platform sets it */
    struct by_batch_port port[BY_PORTS_MAX];
    struct by_batch_neighbour neighbour[BY_PORTS_MAX];
    struct by_neighbours neighbours;
    uint32_t moves; /* counts changes of peers' MAC addresses: what was built from them is invalid */
    struct by_hold hold;
    struct by_park park; /* frames that wait for the shares of their jobs */
    struct by_batch_counters counters;
    uint32_t count; /* of packets that have arrived */
    struct by_rx arrived[BY_BATCH_ROOM];
    void *arrived_frame[BY_BATCH_ROOM];           /* NULL: the packet came without a frame */
    struct by_rx rx[BY_BATCH_ROOM];               /* the same packets in the order of their chunks */
    void *frame[BY_BATCH_ROOM];                   /* of rx; NULL: there is none, or a relay has it */
    uint8_t class[BY_BATCH_ROOM];                 /* of arrived: the class of its tree in the sort */
    struct by_batch_sorted sorted[BY_BATCH_ROOM]; /* of arrived */
    /* Of a class, while a batch is sorted: */
    uint16_t first[BY_BATCH_CLASSES];  /* the first packet of its next chunk, */
    uint16_t latest[BY_BATCH_CLASSES]; /* that of the chunk entered last, */
    uint16_t due[BY_BATCH_CLASSES];    /* and the contributions passed since its last run */
    struct by_tx tx[BY_TX_MAX];
};

/* Initialises a batch for ports 0 to `port_count` - 1, without addresses, faults, or frames that
 * wait: by_park_open gives memory for these. `ops` must live as long as the batch. */
void by_batch_open(struct by_batch *batch, const struct by_batch_ops *ops, void *context,
                   struct by_engine *engine, uint32_t port_count);
/* Frees all frames that are held or wait. */
void by_batch_close(struct by_batch *batch);
/* Sets the ports' addresses and neighbours from the engine's active table. */
void by_batch_address(struct by_batch *batch);
/* Returns the MAC address to which packets for `ip` leave by a port, or NULL: it is unknown. */
const uint8_t *by_batch_mac(struct by_batch *batch, uint16_t port, uint32_t ip);
/* Returns a neighbour at `port` that does not answer, or NULL. */
const struct by_shell_neighbour *by_batch_silent(const struct by_batch *batch, uint16_t port);
/* Runs one round over all ports. Returns the number of frames received. */
uint32_t by_batch_round(struct by_batch *batch);
/* Adds a frame that a port has received, of `bytes` bytes at `data`; takes ownership. For
 * ops->receive. */
void by_batch_receive(struct by_batch *batch, uint16_t port, void *frame, const uint8_t *data,
                      uint32_t bytes);
/* Sends an LLDP frame on a port, which states `own` (`own->source` is the port's MAC address).
 * False: the port cannot send it now. */
bool by_batch_announce(struct by_batch *batch, uint16_t port, const struct by_lldp *own);
/* Returns the neighbour that the port has heard last; NULL if it has heard none within the time
 * that the neighbour's frame states. */
const struct by_lldp *by_batch_neighbour(const struct by_batch *batch, uint16_t port);
/* Returns the time for which the loop may sleep (ns), at most `most_ns`: until a held or waiting
 * frame is due. */
uint64_t by_batch_idle_ns(const struct by_batch *batch, uint64_t most_ns);

#endif
