/*
 * What a port is: its device, driver, speed, queues, NUMA node and offloads, as DPDK or the kernel
 * reports them. For `banyan discover`. One thread: the loop's.
 */
#ifndef BY_DATAPLANE_FACTS_H
#define BY_DATAPLANE_FACTS_H

#include "dataplane/port.h"
#include "offload/linux/device.h"

/* Reads the facts of a port. Of an interface they are the kernel's, of other ports the driver's; of
 * memory shared with hosts only `exists` and the MTU. */
void by_port_facts(const struct by_port *port, struct by_device *facts);

#endif
