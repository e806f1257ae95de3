/*
 * One node's moving parts, as a switch has them in DPDK: a transport, the engine when the image
 * makes the node an inner node of some tree, and the endpoint when it is a rank. A step takes what
 * has arrived, runs the core and sends what it wants sent; it never blocks and decides nothing
 * about the protocol. Packets between this node's endpoint and its own engine (BY_PORT_LOCAL) go
 * through the two lanes here. One thread for each node.
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

/* Packets that one step of the core may emit. */
#define BY_TX_BATCH 256u
/* Packets in a lane: what arrived in one batch, and what the other half sent in one step. */
#define BY_LANE_MAX (BY_FAULTS_OUT_MAX + BY_TX_BATCH)

/* Datagrams of several packets that one step makes (count); what would want more goes alone. */
#define BY_GATHERED_MAX 32u

/* Packets without a payload that leave in one datagram: the first one's, whose payload the others
 * are. */
struct by_gathered {
    struct by_tx *first; /* of this step */
    unsigned count;      /* packets, `first` among them */
    uint8_t others[(BY_DATAGRAM_PACKETS_MAX - 1) * BY_WIRE_HEADER_BYTES];
};

/* Packets waiting for the engine or the endpoint. Those of the other half are copied, header and
 * payload in one piece. */
struct by_host_lane {
    uint32_t first, count;
    struct by_rx rx[BY_LANE_MAX];
    uint8_t *memory; /* ring of BY_LANE_MAX packets, or NULL where nothing is local */
    uint32_t packet_bytes;
    uint32_t slot; /* next in the ring; first in, first out, so that a slot is free when its turn comes */
};

struct by_progress {
    struct by_transport *transport; /* not owned */
    struct by_engine *engine;       /* or NULL */
    struct by_endpoint *endpoint;   /* or NULL: a switch */
    void *engine_memory, *endpoint_memory;
    uint16_t job;
    uint8_t *inner; /* bit for each tree of `job` in which this node is inner or root; NULL = none */
    struct by_faults faults;
    struct by_rx batch[BY_RX_BATCH], faulty[BY_FAULTS_OUT_MAX];
    struct by_tx tx[BY_TX_BATCH];
    const struct by_tx *out[BY_TX_BATCH];
    unsigned datagram_room; /* packets without a payload in one datagram */
    unsigned gathered_count;
    struct by_gathered gathered[BY_GATHERED_MAX];
    struct by_host_lane to_engine, to_endpoint;
};

struct by_resume;

struct by_progress_config {
    const uint8_t *image; /* checked; outlives the node */
    size_t image_bytes;
    uint32_t job; /* 0: a switch, without endpoint */
    uint64_t stall_ns;
    uint32_t inflight_max; /* 0 = no limit but the windows */
    struct by_fault fault;
    bool resume; /* the endpoint keeps what calls need to go on in other trees */
    bool shared; /* the transport's */
};

/* Builds the parts around an open transport. 0, or an error with its text set. */
int by_progress_open(struct by_progress *node, const struct by_progress_config *config,
                     struct by_transport *transport);
/*
 * Exchanges the parts for those of another generation's image, whose cables and payloads are the
 * same; `fault` stays. Calls go on by `resume`, whose ranks are all level; counters go on. What an
 * engine held is of a generation that is over. 0, or an error with its text: then all is as it was.
 */
int by_progress_carry(struct by_progress *node, const struct by_progress_config *config,
                      struct by_resume *resume);
/* Frees the parts, not the transport. */
void by_progress_close(struct by_progress *node);
/* One round. Returns packets received plus packets sent: 0 means that there is nothing to do before
 * the deadline. */
uint32_t by_progress_step(struct by_progress *node, uint64_t now_ns);
/* When a timer is due, UINT64_MAX when none runs. */
uint64_t by_progress_deadline(const struct by_progress *node);

#endif
