/*
 * A fabric in memory: the nodes of a folder of table images, joined by the addresses of their
 * ports. Switches run here; hosts join when a communicator opens. Time is simulated: it moves by a
 * little with each round and jumps to the next timer when nothing is on the way, so a run depends
 * on the seed alone. One thread for the fabric and all that use it.
 */
#ifndef BY_HOST_FABRIC_H
#define BY_HOST_FABRIC_H

#include <stdint.h>

#include <banyan/banyan.h>

#include "host-driver/progress.h"
#include "host-driver/settings.h"

struct by_fabric_node;

/* The host called `name`, or NULL with the error's text set. */
struct by_fabric_node *by_fabric_host(struct banyan_fabric *fabric, const char *name);
/* The node's table image; lives as long as the fabric. */
const uint8_t *by_fabric_image(const struct by_fabric_node *node, size_t *bytes);

/* A transport for `progress` on a host, which receives what is sent to the host's `udp_port`. 0,
 * BY_EBUSY or BY_ENOMEM with a text. Its close() leaves the fabric. */
int by_fabric_join(struct banyan_fabric *fabric, struct by_fabric_node *node, uint16_t udp_port,
                   struct by_progress *progress, struct by_transport **transport);

/* One round over all nodes. Returns packets moved; when that is 0, time jumps to the next timer,
 * but not beyond `until_ns` (0: not at all). Returns 0 only when nothing moved and time did not
 * jump. */
uint32_t by_fabric_step(struct banyan_fabric *fabric, uint64_t until_ns);
uint64_t by_fabric_now(const struct banyan_fabric *fabric);

#endif
