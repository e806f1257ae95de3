/* Ports without a wire, whose hosts share memory with the switch (--shm). Frames for them are
 * copied; packets go by by_port_send_shared. See port.h and link.h; the loop's thread. */
#include "dataplane/link.h"

#include "dataplane/port.h"

static int start(struct by_port *port, struct rte_mempool *pool, uint16_t payload_max, struct by_xdp *xdp)
{
    (void)pool;
    (void)payload_max;
    (void)xdp;
    port->started = true; /* by_link_start follows, once there is an engine */
    return 0;
}

/* Packets come by by_link_receive. */
static uint16_t receive_frames(struct by_port *port, struct rte_mbuf **frames, uint16_t count)
{
    (void)port;
    (void)frames;
    (void)count;
    return 0;
}

static uint16_t send_frames(struct by_port *port, struct rte_mbuf **frames, uint16_t count)
{
    return by_link_send_frames(port->link, frames, count);
}

static void flush(struct by_port *port)
{
    by_link_flush(port->link);
}

static bool settle(struct by_port *port)
{
    by_link_doze(port->link);
    return true;
}

static void count(struct by_port *port, struct by_dp_port_counters *counters)
{
    by_link_dropped(port->link, &counters->rx_dropped, &counters->tx_dropped);
}

/* There is no cable that could be gone. */
static bool is_down(const struct by_port *port)
{
    (void)port;
    return false;
}

static void close_link(struct by_port *port)
{
    by_link_close(port->link);
    port->link = NULL;
}

static const struct by_port_ops link_ops = {.start = start,
                                            .receive = receive_frames,
                                            .send = send_frames,
                                            .flush = flush,
                                            .is_crowded = NULL,
                                            .settle = settle,
                                            .count = count,
                                            .is_down = is_down,
                                            .close = close_link};

int by_port_link_open(struct by_port *port)
{
    int error = by_link_open(&port->link, port->name);

    if (error != 0)
        return error;
    port->ops = &link_ops;
    port->mtu = BY_PAYLOAD_MAX + BY_PORT_MTU_OVERHEAD;
    port->frames_held = BY_PORT_FRAMES_COPIED;
    port->bells[port->bell_count++] = by_link_fd(port->link);
    return 0;
}

void by_port_send_shared(struct by_port *port, const struct by_tx *tx)
{
    if (by_link_send(port->link, tx, port->carrier.src_ip)) {
        port->counters.tx_packets++;
        port->counters.tx_bytes += BY_PORT_FRAME_OVERHEAD + port->extra + tx->payload_bytes;
    } else {
        port->counters.tx_dropped++;
    }
}
