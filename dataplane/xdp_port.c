/* A port on an AF_XDP socket; see xdp_port.h. Loop's thread. */
#include "dataplane/xdp_port.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "dataplane/gso.h"
#include "dataplane/interface.h"
#include "dataplane/say.h"
#include "offload/base/errors.h"
#include "offload/linux/xdp_socket.h"

/* Waiting frames (count): enough for the windows of a lab's jobs and their repairs. This socket
 * sends nothing, but the library requires room for one frame. */
#define RX_FRAMES 1024u
#define TX_FRAMES 1u
/* The kernel stores a received frame after 256 bytes of its own. */
#define SMALL_BYTES 2048u
#define SMALL_MTU   1700u
#define LARGE_BYTES 4096u

struct by_xdp_port {
    struct by_xdp_socket *socket;
    struct by_gso *gso; /* sends */
    struct rte_mempool *pool;
    uint64_t dropped;
};

int by_xdp_port_open(struct by_xdp_port **out, const char *interface, uint16_t mtu)
{
    const struct by_xdp_socket_config config = {.interface = interface,
                                                .frame_bytes = mtu > SMALL_MTU ? LARGE_BYTES : SMALL_BYTES,
                                                .rx_frames = RX_FRAMES,
                                                .tx_frames = TX_FRAMES};
    struct by_xdp_port *port;
    const char *step;
    int error;

    if (by_interface_queues(interface) > 1) {
        by_say("--iface %s: it has %u receive queues, and the driver xdp supports one: `ethtool -L %s "
               "combined 1`",
               interface, by_interface_queues(interface), interface);
        return BY_ELIMIT;
    }
    port = calloc(1, sizeof *port);
    if (!port)
        return BY_ENOMEM;
    error = by_gso_open(&port->gso, interface, mtu, BY_GSO_SENDS);
    if (error != 0) {
        free(port);
        return error;
    }
    error = by_xdp_socket_open(&port->socket, &config, &step);
    if (error == 0) {
        *out = port;
        return 0;
    }
    by_gso_close(port->gso);
    free(port);
    if (error == -EBUSY)
        by_say("--iface %s: another process has its AF_XDP socket; end that process, or use another --driver",
               interface);
    else
        by_say("--iface %s: cannot open AF_XDP (%s): %s; it requires root (CAP_NET_RAW) and locked memory "
               "(ulimit -l), or use --driver af_packet",
               interface, step, strerror(-error));
    return error == -ENOMEM ? BY_ENOMEM : BY_EIO;
}

void by_xdp_port_start(struct by_xdp_port *port, struct rte_mempool *pool)
{
    port->pool = pool;
}

void by_xdp_port_close(struct by_xdp_port *port)
{
    by_gso_close(port->gso);
    by_xdp_socket_free(port->socket);
    free(port);
}

int by_xdp_port_fd(const struct by_xdp_port *port)
{
    return by_xdp_socket_fd(port->socket);
}

uint64_t by_xdp_port_dropped(const struct by_xdp_port *port)
{
    return port->dropped;
}

bool by_xdp_port_is_crowded(const struct by_xdp_port *port)
{
    return by_xdp_socket_is_half_full(port->socket);
}

/* Frames leave the kernel's memory immediately, through a copy that the engine needs in the cache
 * anyway, so a delayed frame (a relay, --reorder) does not occupy the kernel's memory. */
uint16_t by_xdp_port_receive(struct by_xdp_port *port, struct rte_mbuf **frames, uint16_t count)
{
    const uint8_t *data = NULL;
    uint16_t given = 0;
    int32_t bytes;

    while (given < count && (bytes = by_xdp_socket_take(port->socket, NULL, 0, &data)) != 0) {
        struct rte_mbuf *frame = bytes > 0 ? rte_pktmbuf_alloc(port->pool) : NULL;
        char *room = frame && (uint32_t)bytes <= rte_pktmbuf_tailroom(frame)
                         ? rte_pktmbuf_append(frame, (uint16_t)bytes)
                         : NULL;

        if (!room) {
            rte_pktmbuf_free(frame);
            port->dropped++;
            continue;
        }
        memcpy(room, data, (size_t)bytes);
        frames[given++] = frame;
    }
    by_xdp_socket_refill(port->socket);
    return given;
}

uint16_t by_xdp_port_send(struct by_xdp_port *port, struct rte_mbuf **frames, uint16_t count)
{
    return by_gso_send(port->gso, frames, count);
}
