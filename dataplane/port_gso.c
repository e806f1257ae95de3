/* Ports on packet sockets of our own: the drivers ring and gso. See port.h and gso.h; start-up and
 * the loop's thread. */
#include "dataplane/gso.h"

#include "dataplane/port.h"

/* Buffers to receive into, and those received (count). */
#define FRAMES_HELD_GSO 1024u

static int start(struct by_port *port, struct rte_mempool *pool, uint16_t payload_max, struct by_xdp *xdp)
{
    (void)xdp;
    port->started = true;
    port->multi_segs = true;
    return by_gso_start(port->gso, pool, payload_max);
}

static uint16_t receive_frames(struct by_port *port, struct rte_mbuf **frames, uint16_t count)
{
    return by_gso_receive(port->gso, frames, count);
}

static uint16_t send_frames(struct by_port *port, struct rte_mbuf **frames, uint16_t count)
{
    return by_gso_send(port->gso, frames, count);
}

static bool is_crowded(const struct by_port *port)
{
    return by_gso_is_crowded(port->gso);
}

static bool settle(struct by_port *port)
{
    by_gso_doze(port->gso);
    return true;
}

static void count(struct by_port *port, struct by_dp_port_counters *counters)
{
    counters->rx_dropped += by_port_count_sockets(port) + by_gso_dropped(port->gso);
}

static bool is_down(const struct by_port *port)
{
    return by_interface_is_down(port->name);
}

static void close_socket(struct by_port *port)
{
    by_gso_close(port->gso);
    port->gso = NULL;
}

static const struct by_port_ops gso_ops = {.start = start,
                                           .flush = NULL,
                                           .receive = receive_frames,
                                           .send = send_frames,
                                           .is_crowded = is_crowded,
                                           .settle = settle,
                                           .count = count,
                                           .is_down = is_down,
                                           .close = close_socket};

int by_port_gso_open(struct by_port *port, unsigned driver)
{
    bool ring = driver == BY_DRIVER_RING;
    int error = by_gso_open(&port->gso, port->name, port->mtu, ring ? BY_GSO_RING : BY_GSO_BOTH);

    if (error != 0)
        return error;
    port->ops = &gso_ops;
    port->driver = (uint8_t)driver;
    port->frames_held = ring ? BY_PORT_FRAMES_COPIED : FRAMES_HELD_GSO;
    port->bells[port->bell_count++] = by_gso_fd(port->gso);
    return 0;
}

void by_port_gso_borrow(struct by_port *port, struct by_gso *gso)
{
    port->ops = &gso_ops;
    port->gso = gso;
    port->multi_segs = true;
}
