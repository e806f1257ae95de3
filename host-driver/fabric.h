/*
 * A fabric in memory: the nodes of a folder of table images, connected by the addresses of their
 * ports. Switches run here; a host joins when its communicator opens. Time is simulated: each round
 * advances it a little, and when no packet is in flight it jumps to the next timer, so a run
 * depends only on the seed. One thread for the fabric and all its users.
 */
#ifndef BY_HOST_FABRIC_H
#define BY_HOST_FABRIC_H

#include <stdint.h>

#include <banyan/banyan.h>

#include "host-driver/progress.h"
#include "host-driver/settings.h"

struct by_fabric_node;

/* Returns the host called `name`, or NULL with the error text set. */
struct by_fabric_node *by_fabric_host(struct banyan_fabric *fabric, const char *name);
/* Returns the node's table image; valid as long as the fabric. */
const uint8_t *by_fabric_image(const struct by_fabric_node *node, size_t *bytes);

/* Creates a transport for `progress` on a host. It receives packets sent to the host's `udp_port`;
 * its close() leaves the fabric. 0, or BY_EBUSY or BY_ENOMEM with a text. */
int by_fabric_join(struct banyan_fabric *fabric, struct by_fabric_node *node, uint16_t udp_port,
                   struct by_progress *progress, struct by_transport **transport);

/* Runs one round over all nodes and returns the number of packets moved. If it is 0, time jumps to
 * the next timer, but not beyond `until_ns` (0: no jump). Returns 0 only if nothing moved and time
 * did not jump. */
uint32_t by_fabric_step(struct banyan_fabric *fabric, uint64_t until_ns);
uint64_t by_fabric_now(const struct banyan_fabric *fabric);

#endif
