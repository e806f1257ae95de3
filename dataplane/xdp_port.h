/*
 * A kernel interface as a port on an AF_XDP socket of this process, whose XDP program is also
 * banyan's (dataplane/xdp.h): net_af_xdp does not support programs that also relay. Single frames
 * that fit a page. Loop's thread.
 */
#ifndef BY_DATAPLANE_XDP_PORT_H
#define BY_DATAPLANE_XDP_PORT_H

#include <stdint.h>

#include <rte_mbuf.h>

struct by_xdp_port;

/* Opens a socket on queue 0 of the interface. 0, BY_ENOMEM, BY_ELIMIT (the MTU, or more than one
 * queue) or BY_EIO, reported. Frames arrive once by_xdp_port_fd is in the program's map. */
int by_xdp_port_open(struct by_xdp_port **port, const char *interface, uint16_t mtu);
/* Starts to receive into buffers of `pool`. */
void by_xdp_port_start(struct by_xdp_port *port, struct rte_mempool *pool);
void by_xdp_port_close(struct by_xdp_port *port);
/* Returns a descriptor that is readable when frames wait. */
int by_xdp_port_fd(const struct by_xdp_port *port);

/* Receives up to `count` frames. Never blocks. */
uint16_t by_xdp_port_receive(struct by_xdp_port *port, struct rte_mbuf **frames, uint16_t count);
/* Sends the first of `count` frames, as many as fit now; returns how many it accepted and freed. */
uint16_t by_xdp_port_send(struct by_xdp_port *port, struct rte_mbuf **frames, uint16_t count);
/* Whether at least half of the receive queue is in use. */
bool by_xdp_port_is_crowded(const struct by_xdp_port *port);
/* Number of received frames that were dropped for lack of a buffer. */
uint64_t by_xdp_port_dropped(const struct by_xdp_port *port);

#endif
