/* The frequently executed parts of port.h: one receive call, one append to the transmit queue. */
#ifndef BY_DATAPLANE_PORT_INLINE_H
#define BY_DATAPLANE_PORT_INLINE_H

#include <rte_ethdev.h>

static inline uint16_t by_port_receive(struct by_port *port, struct rte_mbuf **frames, uint16_t count)
{
    uint16_t received = port->gso   ? by_gso_receive(port->gso, frames, count)
                        : port->xsk ? by_xdp_port_receive(port->xsk, frames, count)
                                    : rte_eth_rx_burst(port->id, 0, frames, count);

    port->counters.rx_packets += received;
    for (uint16_t i = 0; i < received; i++)
        port->counters.rx_bytes += frames[i]->pkt_len;
    return received;
}

static inline void by_port_send(struct by_port *port, struct rte_mbuf *frame)
{
    port->queue[port->queued++] = frame;
    port->queued_bytes += frame->pkt_len;
    if (port->queued == BY_PORT_BURST)
        by_port_flush(port);
}

#endif
