/*
 * What the sources of the simulated world share, and nobody else: packets, cables (cable.c), nodes (node.c),
 * and the world that holds them (world.c). Single-threaded.
 */
#ifndef TESTS_SIM_INSIDE_H
#define TESTS_SIM_INSIDE_H

#include "tests/sim/heap.h"
#include "tests/sim/world.h"

#if FABRIC_TREES_MAX > 32
#error "struct node has a bit for each tree of a job"
#endif
#define PACKET_BYTES_MAX (BY_WIRE_HEADER_BYTES + BY_PAYLOAD_MAX)
/* Packets that one step takes at most (count). */
#define BURST_MAX 64u

struct packet {
    struct packet *next;
    uint16_t bytes, udp_port, port;
    uint32_t src_ip, dst_ip;
    uint8_t ecn;
    uint8_t data[PACKET_BYTES_MAX];
};

struct packets {
    struct packet *head, **tail;
    uint32_t count;
};

/* A packet waiting for its cable; the payload still lies where the action points. */
struct departure {
    struct departure *next;
    struct by_tx tx;
    struct packet *relayed;
};

struct direction {
    struct departure *head, **tail;
    uint32_t count;
    uint64_t free_ns;
    int scheduled;
};

struct node {
    uint8_t *image;
    size_t image_bytes;
    struct by_engine *engine;
    struct by_endpoint *endpoint[FABRIC_JOBS_MAX];
    struct packets arrived;   /* from cables */
    struct packets to_engine; /* from this host's endpoints */
    struct packets to_endpoint[FABRIC_JOBS_MAX];
    uint32_t interior[FABRIC_JOBS_MAX]; /* bits: trees in which this node has children */
    uint64_t poll_ns;                   /* when the next step is due; UINT64_MAX: none */
    uint64_t frozen_ns;                 /* does not run before */
    int dead;
};

struct world {
    struct fabric fabric;
    struct world_config config;
    world_host_step step;
    void *context;
    struct by_prng prng, nonces;
    uint64_t now_ns;
    struct heap heap;
    struct packet *spare;
    struct departure *spare_departure;
    struct node nodes[FABRIC_NODES_MAX];
    struct direction directions[FABRIC_LINKS_MAX][2];
    struct world_counters counters;
    void **retired; /* memory of processes that have ended: departures may still point into it */
    size_t retired_count;
};

enum event_kind { EVENT_POLL, EVENT_ARRIVE, EVENT_DEPART };

/* cable.c: packets and cables. */
void packet_put(struct world *world, struct packet *packet);
struct packet *packet_get(struct world *world);
struct packet *packet_copy(struct world *world, const struct packet *from);
/* The bytes that an action puts on a cable. */
void packet_fill(struct packet *packet, const struct by_tx *tx);
void packets_push(struct packets *list, struct packet *packet);
struct packet *packets_pop(struct packets *list);
void packets_clear(struct world *world, struct packets *list);
/* Queues an action of `node`, or a packet that it relays, for the cable of the action's port. */
void cable_send(struct world *world, int node, const struct by_tx *tx, struct packet *relayed);
void cable_on_depart(struct world *world, int link, int side);

/* node.c: nodes. */
void node_on_poll(struct world *world, int index, uint64_t at_ns);
void node_on_arrive(struct world *world, int index, struct packet *packet);

#endif
