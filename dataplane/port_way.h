/*
 * How a port moves packets: its driver, rings, offloads, and whether results leave by reference.
 * For the controller and the line at the start. The loop's thread.
 */
#ifndef BY_DATAPLANE_PORT_WAY_H
#define BY_DATAPLANE_PORT_WAY_H

#include <stdbool.h>
#include <stdint.h>

#include "dataplane/port.h"

struct by_port_way {
    const char *driver; /* DPDK's name, or the switch's own: "ring", "gso", "xdp", "shared memory" */
    const char *why;    /* why results are copied, or which are all the same; "" if none is */
    char steer[112];    /* how frames reach the workers that have their chunks; "": there is one */
    char offloads[128]; /* DPDK's names of those in use; cut if longer */
    bool by_reference;  /* results leave as a header chained to the payload */
    bool late;          /* the driver may keep sent packets: lent payloads have spare buffers */
    bool promiscuous;
    uint16_t rx_queues, tx_queues;
    uint16_t rx_descriptors, tx_descriptors; /* of the first queue; 0: the driver does not tell */
    uint32_t mbps;                           /* of the link; 0: unknown */
};

/* Describes a started port. */
void by_port_way(const struct by_port *port, struct by_port_way *way);

#endif
