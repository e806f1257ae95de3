/*
 * A site's own names: for each end of a link the interface, the IPv4 address and the MAC address
 * that it has on the site's machines, and the MTU of the link, from a file beside the topology
 * (banyan-site(5)). What the file does not state is generated (control/tables/address.h). Immutable
 * after construction: any thread.
 */
#ifndef BY_FABRIC_SITE_H
#define BY_FABRIC_SITE_H

#include "control/fabric/topology.h"

/* Bytes of an interface's name, with its zero (IFNAMSIZ of Linux). */
#define BY_INTERFACE_BYTES 16u
/* Smallest MTU of a link (bytes): RFC 791. */
#define BY_SITE_MTU_MIN 576u

/* One end of a link. */
struct by_site_end {
    char interface[BY_INTERFACE_BYTES]; /* "": generated */
    uint32_t ip;                        /* host byte order; 0: generated */
    bool has_mac;                       /* else generated */
    uint8_t mac[6];
};

struct by_site {
    struct by_site_end *ends; /* by link: 2 x link is end a, 2 x link + 1 is end b */
    uint32_t *mtu;            /* by link (bytes); 0: not stated */
};

/*
 * Reads a site file for `topology` and attaches it: topology->site, which the topology then owns.
 * Returns 0, or BY_EIO, BY_ELIMIT or BY_EFORMAT with `problem` filled: a node or link that the
 * topology does not have, a link given twice, or a value that is not an interface, an address of a
 * host, a MAC address of one station, or an MTU.
 */
int by_site_read(const char *path, struct by_topology *topology, struct by_problem *problem);
/* The same from memory. */
int by_site_parse(const char *json, size_t bytes, struct by_topology *topology, struct by_problem *problem);
void by_site_free(struct by_site *site);

/* Returns what the site states about `node`'s end of `link`; NULL if there is no site. */
static inline const struct by_site_end *by_site_end(const struct by_topology *topology, uint32_t link,
                                                    uint32_t node)
{
    return topology->site == NULL ? NULL
                                  : &topology->site->ends[2 * link + (topology->links[link].a != node)];
}

#endif
