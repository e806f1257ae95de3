/* The frequently executed parts of port.h: one receive call, one append to the transmit queue. */
#ifndef BY_DATAPLANE_PORT_INLINE_H
#define BY_DATAPLANE_PORT_INLINE_H

static inline uint16_t by_port_receive(struct by_port *port, struct rte_mbuf **frames, uint16_t count)
{
    uint16_t received = port->ops->receive(port, frames, count);

    port->counters.rx_packets += received;
    for (uint16_t i = 0; i < received; i++)
        port->counters.rx_bytes += frames[i]->pkt_len;
    return received;
}

/* Appends a frame to the queue, which has room, in the form that it has on the cable. */
static inline void by_port_append(struct by_port *port, struct rte_mbuf *frame)
{
    if (port->wraps && !(frame = by_wrap_frame(&port->wrap, frame))) {
        port->counters.tx_dropped++;
        return;
    }
    port->queue[port->queued++] = frame;
    port->queued_bytes += frame->pkt_len;
}

static inline void by_port_send(struct by_port *port, struct rte_mbuf *frame)
{
    by_port_append(port, frame);
    if (port->queued == BY_PORT_BURST)
        by_port_flush(port);
}

static inline bool by_port_settle(struct by_port *port)
{
    return port->ops->settle(port);
}

static inline bool by_port_is_down(const struct by_port *port)
{
    return port->ops->is_down(port);
}

#endif
