/*
 * Names and addresses on a fabric, all derived from the topology file's order and nothing else, so
 * that every program and every run agree: node id = node index; a node's port number = rank of the
 * link among the node's links; rank = order of compute nodes; link i has the addresses base + 2i
 * (end a) and base + 2i + 1 (end b) of 198.18.0.0/15, the range set aside for benchmarks (RFC
 * 2544). Pure; any thread.
 */
#ifndef BY_TABLES_ADDRESS_H
#define BY_TABLES_ADDRESS_H

#include <stdbool.h>
#include <stdint.h>

#include "control/fabric/topology.h"

#define BY_ADDRESS_BASE 0xc6120000u /* 198.18.0.0 */
/* Cables that the range holds: 2^17 addresses, two each. */
#define BY_ADDRESS_LINKS_MAX 65536u
#define BY_ADDRESS_TEXT      16

/* Port numbers and ranks of a whole topology. */
struct by_address_map {
    const struct by_topology *topology;
    uint32_t *port_a; /* by link: port number at end a, and at end b */
    uint32_t *port_b;
    uint32_t *port_count;   /* by node */
    uint32_t *first_port;   /* by node: where its ports begin in `ports` */
    uint32_t *ports;        /* links, by node and then by port */
    const bool *lost_links; /* by link: not to be used (the caller's); NULL: none */
    uint32_t *rank;         /* by node: rank, or UINT32_MAX on switches */
    uint32_t rank_count;
};

/* Numbers a topology's ports. BY_ELIMIT with `problem` when a node has more than BY_TABLE_PORTS_MAX
 * ports, a name is too long, or there are more nodes or links than tables can name. */
int by_address_map_make(const struct by_topology *topology, struct by_address_map *map,
                        struct by_problem *problem);
void by_address_map_free(struct by_address_map *map);

/* IPv4 address (host order) of `node`'s end of `link`; the node must be one of its ends. */
uint32_t by_address_ip(const struct by_topology *topology, uint32_t link, uint32_t node);
/* 02:62 and the four bytes of the address. */
void by_address_mac(uint32_t ip, uint8_t mac[6]);
/* The node at the other end of `link`. */
uint32_t by_address_peer(const struct by_topology *topology, uint32_t link, uint32_t node);
/* Port number of `node` on `link`. */
uint32_t by_address_port(const struct by_address_map *map, uint32_t link, uint32_t node);
/* Link of `node`'s port. */
uint32_t by_address_link(const struct by_address_map *map, uint32_t node, uint32_t port);
/* "p3" on switches, "eth3" on hosts. */
void by_address_interface(const struct by_topology *topology, uint32_t node, uint32_t port, char name[16]);
/* "198.18.0.1" */
char *by_address_text(uint32_t ip, char text[BY_ADDRESS_TEXT]);

#endif
