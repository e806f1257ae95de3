/*
 * Ports, ranks and addresses of a fabric. They depend only on the order of the topology file, so
 * every program and every run derive the same ones:
 * - a node's ID is its index;
 * - a node's port number is the rank of the link among the node's links;
 * - ranks follow the order of compute nodes;
 * - link i has the addresses base + 2i (end a) and base + 2i + 1 (end b) of 198.18.0.0/15, the
 *   range reserved for benchmarks (RFC 2544), MAC addresses made from them, and interfaces named by
 *   port, unless the site states others (control/fabric/site.h).
 *
 * Pure; any thread.
 */
#ifndef BY_TABLES_ADDRESS_H
#define BY_TABLES_ADDRESS_H

#include <stdbool.h>
#include <stdint.h>

#include "control/fabric/site.h"

#define BY_ADDRESS_BASE 0xc6120000u /* 198.18.0.0 */
/* Most cables in the range: 2^17 addresses, two for each cable. */
#define BY_ADDRESS_LINKS_MAX 65536u
#define BY_ADDRESS_TEXT      46 /* of either family (INET6_ADDRSTRLEN) */

/* Port numbers and ranks of a topology. */
struct by_address_map {
    const struct by_topology *topology;
    uint32_t *port_a; /* by link: port number at end a, and at end b */
    uint32_t *port_b;
    uint32_t *port_count;   /* by node */
    uint32_t *first_port;   /* by node: its first element in `ports` */
    uint32_t *ports;        /* links, sorted by node and then by port */
    const bool *lost_links; /* by link: must not be used (owned by the caller); NULL: none */
    uint32_t *rank;         /* by node: rank, or UINT32_MAX for switches */
    uint32_t rank_count;
};

/*
 * Numbers a topology's ports. Returns 0, or BY_ELIMIT with `problem` filled if a node has more than
 * BY_TABLE_PORTS_MAX ports, a name is too long, or there are more nodes or links than tables can
 * address; BY_EINVAL if two ends of links have one address, or two links of a node one interface.
 */
int by_address_map_make(const struct by_topology *topology, struct by_address_map *map,
                        struct by_problem *problem);
void by_address_map_free(struct by_address_map *map);

/*
 * Returns the IPv4 address (host byte order) of `node`'s end of `link`, or the number of its IPv6
 * address (by_site_book); the node must be one of its ends.
 */
uint32_t by_address_ip(const struct by_topology *topology, uint32_t link, uint32_t node);
/* Sets the MAC address of `node`'s end of `link`: the site's, else 02:62 and the four bytes of the
 * IPv4 address. Returns false, with `mac` zero, if it is unknown: the end keeps that of its
 * interface, and its neighbours ask for it (ARP, neighbour discovery). */
bool by_address_mac(const struct by_topology *topology, uint32_t link, uint32_t node, uint8_t mac[6]);
/* Returns the VLAN of frames on `link`; 0: they have no tag. */
uint16_t by_address_vlan(const struct by_topology *topology, uint32_t link);
/* Returns the node at the other end of `link`. */
uint32_t by_address_peer(const struct by_topology *topology, uint32_t link, uint32_t node);
/* Returns the port number of `link` at `node`. */
uint32_t by_address_port(const struct by_address_map *map, uint32_t link, uint32_t node);
/* Returns the link of `node`'s port. */
uint32_t by_address_link(const struct by_address_map *map, uint32_t node, uint32_t port);
/* Writes the interface of `node`'s end of `link`: the site's, else "p3" for port 3 of a switch,
 * "eth3" for a host. */
void by_address_interface(const struct by_address_map *map, uint32_t link, uint32_t node,
                          char name[BY_INTERFACE_BYTES]);
/* Writes an address as text ("198.18.0.1", "fd00::1") and returns `text`. A number that the book
 * does not have is written as such. */
char *by_address_text(const struct by_ipv6_book *book, uint32_t ip, char text[BY_ADDRESS_TEXT]);
/* Writes the address of `node`'s end of `link`. */
char *by_address_of(const struct by_topology *topology, uint32_t link, uint32_t node,
                    char text[BY_ADDRESS_TEXT]);

#endif
