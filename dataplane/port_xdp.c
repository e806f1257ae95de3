/* Ports whose kernel interface runs our XDP program: the driver xdp. See port.h and xdp_port.h;
 * shell.c's start and the loop's thread. */
#include "dataplane/port.h"
#include "dataplane/xdp.h"
#include "dataplane/xdp_port.h"
#include "offload/base/errors.h"

static int start(struct by_port *port, struct rte_mempool *pool, uint16_t payload_max, struct by_xdp *xdp)
{
    (void)payload_max;
    port->started = true;
    port->multi_segs = true;
    port->xdp = xdp;
    by_xdp_port_start(port->xsk, pool);
    return by_xdp_add(xdp, port->index, port->name, by_xdp_port_fd(port->xsk));
}

static uint16_t receive_frames(struct by_port *port, struct rte_mbuf **frames, uint16_t count)
{
    return by_xdp_port_receive(port->xsk, frames, count);
}

static uint16_t send_frames(struct by_port *port, struct rte_mbuf **frames, uint16_t count)
{
    return by_xdp_port_send(port->xsk, frames, count);
}

static bool is_crowded(const struct by_port *port)
{
    return by_xdp_port_is_crowded(port->xsk);
}

static bool settle(struct by_port *port)
{
    (void)port;
    return true;
}

/* With what the kernel relayed and replicated. */
static void count(struct by_port *port, struct by_dp_port_counters *counters)
{
    struct by_xdp_port_counts kernel;

    by_xdp_read_port(port->xdp, port->index, &kernel);
    counters->rx_packets += kernel.rx_packets;
    counters->rx_bytes += kernel.rx_bytes;
    counters->tx_packets += kernel.tx_packets;
    counters->tx_bytes += kernel.tx_bytes;
    counters->rx_dropped += by_port_count_sockets(port) + by_xdp_port_dropped(port->xsk);
}

static bool is_down(const struct by_port *port)
{
    return by_interface_is_down(port->name);
}

static void close_socket(struct by_port *port)
{
    by_xdp_port_close(port->xsk);
    port->xsk = NULL;
}

static const struct by_port_ops xdp_ops = {.start = start,
                                           .flush = NULL,
                                           .receive = receive_frames,
                                           .send = send_frames,
                                           .is_crowded = is_crowded,
                                           .settle = settle,
                                           .count = count,
                                           .is_down = is_down,
                                           .close = close_socket};

int by_port_xdp_open(struct by_port *port)
{
    int error = by_interface_fits(port->name, port->mtu) ? 0 : BY_ELIMIT;

    if (error == 0)
        error = by_xdp_port_open(&port->xsk, port->name, port->mtu);
    if (error != 0)
        return error;
    port->ops = &xdp_ops;
    port->driver = BY_DRIVER_XDP;
    port->frames_held = BY_PORT_FRAMES_COPIED;
    port->bells[port->bell_count++] = by_xdp_port_fd(port->xsk);
    return 0;
}
