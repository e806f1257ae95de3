/*
 * A site's own names, from a file beside the topology (banyan-site(5)): for each end of a link the
 * interface, the IPv4 or IPv6 address and the MAC address that it has on the site's machines, for
 * each link its MTU and VLAN, for each node the address of its control channel and whether it runs
 * banyan, and the UDP ports of jobs. What the file does not state is generated
 * (control/tables/address.h). Immutable after construction: any thread.
 */
#ifndef BY_FABRIC_SITE_H
#define BY_FABRIC_SITE_H

#include "control/fabric/topology.h"
#include "offload/wire/ipv6.h"

/* Bytes of an interface's name, with its zero (IFNAMSIZ of Linux). */
#define BY_INTERFACE_BYTES 16u
/* Smallest MTU of a link (bytes): RFC 791. */
#define BY_SITE_MTU_MIN 576u
/* `vlan` of an end that states none. */
#define BY_SITE_VLAN_NONE 0xffffu

/* How a node that sends to an end of a link gets its MAC address. */
enum by_site_mac {
    BY_SITE_MAC_DEFAULT = 0, /* not stated: learned if the address is stated, else generated */
    BY_SITE_MAC_STATED,
    BY_SITE_MAC_ARP, /* learned: "arp" or "nd" */
};

/* What moves packets at a node. */
enum by_site_runs {
    BY_SITE_BANYAN = 0, /* banyan: the node gets a table */
    BY_SITE_ROUTER,     /* routes IP packets by their addresses; its ends of links have addresses */
    BY_SITE_BRIDGE,     /* bridges Ethernet frames; its ends of links have no addresses */
};

/* One end of a link. */
struct by_site_end {
    char interface[BY_INTERFACE_BYTES]; /* "": generated */
    uint32_t ip;                        /* host byte order, or the number of `ipv6`; 0: generated */
    uint8_t ipv6[BY_IPV6_BYTES];        /* zero: `ip` is an IPv4 address */
    enum by_site_mac mac_from;
    uint8_t mac[6];
    uint32_t mtu;  /* bytes; 0: not stated */
    uint16_t vlan; /* 0: no tag; BY_SITE_VLAN_NONE: not stated, no tag */
};

struct by_site_node {
    char *control; /* address of its control channel, such as tls:10.0.0.5:7700; NULL: not stated */
    enum by_site_runs runs;
};

struct by_site {
    struct by_site_end *ends;   /* by link: 2 x link is end a, 2 x link + 1 is end b */
    struct by_site_node *nodes; /* by node */
    uint32_t node_count;
    struct by_ipv6_book book; /* of the ends; its records belong to the site */
    uint16_t udp_port;        /* of the hosts of job 1; job j has the port j - 1 above it. 0: not stated */
};

/*
 * Reads a site file for `topology` and attaches it: topology->site, which the topology then owns.
 * Returns 0, or BY_EIO, BY_ELIMIT or BY_EFORMAT with `problem` filled: a node or link that the
 * topology does not have, a node or link given twice, a value that is not an interface, an address
 * of a host, a MAC address of one station, an MTU or a VLAN, ends of a link with different VLANs or
 * addresses of different families, or an MTU below 1280 where addresses are IPv6's.
 */
int by_site_read(const char *path, struct by_topology *topology, struct by_problem *problem);
/* The same from memory. */
int by_site_parse(const char *json, size_t bytes, struct by_topology *topology, struct by_problem *problem);
void by_site_free(struct by_site *site);
/*
 * Reads the addresses of control channels alone, without a topology: calls `add` for each node that
 * has one, in the order of the file. Returns 0, or as by_site_read; `add` may have been called
 * before an error.
 */
int by_site_controls(const char *path, void (*add)(void *context, const char *name, const char *address),
                     void *context, struct by_problem *problem);

/* Returns what the site states about `node`'s end of `link`; NULL if there is no site. */
static inline const struct by_site_end *by_site_end(const struct by_topology *topology, uint32_t link,
                                                    uint32_t node)
{
    return topology->site == NULL ? NULL
                                  : &topology->site->ends[2 * link + (topology->links[link].a != node)];
}

/* Returns the IPv6 addresses of the site, and their numbers; empty without a site. */
static inline struct by_ipv6_book by_site_book(const struct by_topology *topology)
{
    struct by_ipv6_book empty = {.records = NULL};

    return topology->site == NULL ? empty : topology->site->book;
}

/* Returns what moves packets at `node`. */
static inline enum by_site_runs by_site_runs(const struct by_topology *topology, uint32_t node)
{
    return topology->site == NULL ? BY_SITE_BANYAN : topology->site->nodes[node].runs;
}

/* Whether `node` is a switch that runs banyan. */
static inline bool by_site_is_switch(const struct by_topology *topology, uint32_t node)
{
    return !topology->nodes[node].compute && by_site_runs(topology, node) == BY_SITE_BANYAN;
}

/* Returns the address of the control channel of `node`, or NULL if the site does not state it. */
static inline const char *by_site_control(const struct by_topology *topology, uint32_t node)
{
    return topology->site == NULL ? NULL : topology->site->nodes[node].control;
}

/* Returns the MTU of `link` (bytes), the smaller of its ends; 0: not stated. */
uint32_t by_site_mtu(const struct by_topology *topology, uint32_t link);

#endif
