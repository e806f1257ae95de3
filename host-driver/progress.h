/*
 * The parts of one node, as DPDK firmware has them in a switch: a transport; the engine, if the
 * image makes the node an inner node of some tree; the endpoint, if it is a rank. A step receives
 * packets, runs the core and sends its output. It never blocks and takes no protocol decisions.
 * Packets between this node's endpoint and its own engine (BY_PORT_LOCAL) pass through the two
 * lanes here. One thread per node.
 */
#ifndef BY_HOST_PROGRESS_H
#define BY_HOST_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "host-driver/faults.h"
#include "host-driver/transport.h"
#include "offload/endpoint/endpoint.h"
#include "offload/engine/engine.h"
#include "offload/wire/datagram.h"

/* Maximum number of packets that one step of the core may emit. */
#define BY_TX_BATCH 256u
/* Packets in a lane: one received batch, and what the other half sent in one step. */
#define BY_LANE_MAX (BY_FAULTS_OUT_MAX + BY_TX_BATCH)

/* Maximum number of datagrams with several packets in one step; further packets are sent singly. */
#define BY_GATHERED_MAX 32u

/* Packets without a payload that share one datagram: the other packets are the payload of the
 * first. */
struct by_gathered {
    struct by_tx *first; /* of this step */
    unsigned count;      /* packets, including `first` */
    uint8_t others[(BY_DATAGRAM_PACKETS_MAX - 1) * BY_WIRE_HEADER_BYTES];
};

/* Packets that wait for the engine or the endpoint. Packets from the other half are copied, header
 * and payload in one piece. */
struct by_host_lane {
    uint32_t first, count;
    struct by_rx rx[BY_LANE_MAX];
    uint8_t *memory; /* ring of BY_LANE_MAX packets, or NULL if nothing is local */
    uint32_t packet_bytes;
    /* next slot of the ring; the order is first in, first out, so the next slot is always free */
    uint32_t slot;
};

/* A second endpoint of the node, for the tree of rounds of one standby generation
 * (offload/endpoint/rounds.h). It gets the packets of this generation and tree. */
struct by_progress_side {
    struct by_endpoint *endpoint;
    void *memory;
    uint16_t gen, tree;
    bool busy; /* step it in each round: something may be posted */
    struct by_host_lane lane;
};

struct by_progress {
    struct by_transport *transport; /* not owned */
    struct by_engine *engine;       /* or NULL */
    struct by_endpoint *endpoint;   /* or NULL: a switch */
    void *engine_memory, *endpoint_memory;
    void *next_memory; /* for the endpoint of the next generation: by_progress_prepare; else NULL */
    size_t next_bytes;
    uint16_t job;
    /* one bit per tree of `job` in which this node is inner or root; NULL = none */
    uint8_t *inner;
    struct by_faults faults;
    struct by_rx batch[BY_RX_BATCH], faulty[BY_FAULTS_OUT_MAX];
    struct by_tx tx[BY_TX_BATCH];
    const struct by_tx *out[BY_TX_BATCH];
    unsigned datagram_room; /* maximum number of packets without a payload in one datagram */
    unsigned gathered_count;
    struct by_gathered gathered[BY_GATHERED_MAX];
    struct by_host_lane to_engine, to_endpoint;
    struct by_progress_side *sides[BY_STANDBYS_MAX]; /* not owned; in no particular order */
    unsigned side_count;
};

struct by_resume;

struct by_progress_config {
    const uint8_t *image; /* validated; outlives the node */
    size_t image_bytes;
    uint32_t job;                 /* 0: a switch, without an endpoint */
    uint64_t stall_ns, absent_ns; /* by_endpoint_config */
    uint32_t inflight_max;        /* 0 = limited only by the windows */
    uint32_t batch;               /* by_endpoint_config */
    struct by_fault fault;
    bool resume; /* the endpoint keeps what calls need to continue on other trees */
    bool shared; /* `shared` of the transport */
    bool marked; /* all queues mark packets before they drop any (BANYAN_CONGESTION) */
};

/* Creates the parts on an open transport. 0, or an error with its text. */
int by_progress_open(struct by_progress *node, const struct by_progress_config *config,
                     struct by_transport *transport);
/* Allocates the memory for by_progress_carry in advance, while all ranks are level and the switches
 * have no tables yet. Without memory it does nothing. */
void by_progress_prepare(struct by_progress *node, const struct by_progress_config *config,
                         const struct by_resume *resume);
/*
 * Replaces the parts by those of another generation's image, which has the same cables and
 * payloads; keeps `fault`. Calls continue from `resume`, in which all ranks are level; counters
 * keep their values. The state of the old engine is dropped with its generation. 0, or an error
 * with its text: then nothing has changed.
 */
int by_progress_carry(struct by_progress *node, const struct by_progress_config *config,
                      struct by_resume *resume);
/* Opens the endpoint of the image's tree of rounds, which waits for its peers without a limit, and
 * adds it to the node. 0, or an error with its text. */
int by_progress_side_open(struct by_progress *node, const struct by_progress_config *config,
                          struct by_progress_side **side);
/* Removes it from the node, if it is one of its, and frees it. NULL: does nothing. */
void by_progress_side_close(struct by_progress *node, struct by_progress_side *side);
/* Frees the parts, not the transport and the sides, which it removes from the node. */
void by_progress_close(struct by_progress *node);
/* Runs one round. Returns packets received plus packets sent; 0 means that there is nothing to do
 * before the deadline. */
uint32_t by_progress_step(struct by_progress *node, uint64_t now_ns);
/* Time of the next timer; UINT64_MAX if none runs. */
uint64_t by_progress_deadline(const struct by_progress *node);

#endif
