/*
 * Internals of the fabric in memory, shared by fabric.c (nodes, cables, time) and memory.c (the
 * transport of one member). One thread.
 */
#ifndef BY_HOST_MEMORY_H
#define BY_HOST_MEMORY_H

#include <stddef.h>
#include <stdint.h>

#include "host-driver/fabric.h"

struct by_fabric_node;

struct by_fabric_port {
    struct by_image_port image;
    struct by_fabric_node *peer;
    uint16_t peer_port;
    uint64_t sent_packets, sent_bytes;
};

struct by_fabric_node {
    struct banyan_fabric *fabric;
    uint8_t *image;
    size_t image_bytes;
    struct by_image_header header;
    uint32_t port_count;
    struct by_fabric_port *ports;
    struct by_progress *own; /* of a switch */
    struct by_transport *own_transport;
};

/* A packet in flight on a cable. */
struct by_memory_packet {
    struct by_memory_packet *next;
    uint32_t src_ip, dst_ip;
    uint16_t udp_port; /* 0: a relayed packet; the job in its header selects the receiver */
    uint16_t port;     /* receiving port */
    uint16_t bytes;
    uint8_t ecn;
    uint8_t data[] __attribute__((aligned(64)));
};

/* A receiver on a node: a switch, or one job of a host. */
struct by_memory {
    struct by_transport base;
    struct by_memory *next;
    struct by_fabric_node *node;
    struct by_progress *progress;
    uint16_t udp_port;
    struct by_memory_packet *first, **last; /* received packets */
    struct by_memory_packet *lent;          /* packets returned by the last rx */
};

struct banyan_fabric {
    struct by_settings settings;
    uint32_t node_count;
    struct by_fabric_node *nodes;
    struct by_memory *members; /* in order of joining */
    struct by_memory_packet *spare;
    uint64_t now_ns;
};

/* Frees the spare packets. */
void by_memory_drain(struct banyan_fabric *fabric);

#endif
