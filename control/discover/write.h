/*
 * Makes a topology and a site file of the cables that were found (banyan-topology(5),
 * banyan-site(5)). The links have the order in which each switch that reported its ports has them,
 * because tables number a switch's ports by its links. Single-threaded.
 */
#ifndef BY_DISCOVER_WRITE_H
#define BY_DISCOVER_WRITE_H

#include "control/discover/cables.h"
#include "control/fabric/topology.h"

struct by_discovery_options {
    const char *name;        /* of the topology */
    struct by_fraction rate; /* Gb/s of cables whose speed no end reports; num 0: such cables are refused */
    const char *without;     /* names of nodes to leave out, with commas between; or NULL */
};

/* A found fabric: its topology, and for link i of that the cable links[i]. End 0 is the
 * topology's a. */
struct by_discovery {
    struct by_topology *topology;
    uint32_t link_count;
    struct by_cable *links;
};

/*
 * Makes the topology, and adds findings: ends of a cable with different speeds or MTUs, ports that
 * a switch must be given in another order, nodes without a cable. Returns 0, or BY_EINVAL with
 * `problem`: no cable at all, cables without a speed, or a fabric that is not connected.
 */
int by_discovery_make(struct by_discovery *discovery, const struct by_cables *cables,
                      const struct by_discovery_options *options, struct by_report *report,
                      struct by_problem *problem);
void by_discovery_free(struct by_discovery *discovery);
/* Writes the site file. What no node has reported is left out. */
void by_discovery_write_site(const struct by_discovery *discovery, const struct by_cables *cables,
                             FILE *stream);

/* Returns the speed of a cable (Mb/s), the lower of its ends', 0 if unknown; and its MTU. */
uint32_t by_cable_speed(const struct by_cables *cables, const struct by_cable *cable);
uint32_t by_cable_mtu(const struct by_cables *cables, const struct by_cable *cable);

#endif
