/*
 * Ports: checked and probed by name, drained in bursts through the functions of their driver
 * (port.h). Called from shell.c and the loop's thread.
 */
#include "dataplane/port.h"

#include <linux/if_packet.h>
#include <linux/if_xdp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rte_ethdev.h>
#include <rte_ether.h>

#include "dataplane/mark.h"
#include "dataplane/pci.h"
#include "dataplane/say.h"
#include "offload/base/errors.h"

/* Least receive buffer (bytes): what other drivers expect. */
#define BUFFER_BYTES_MIN 2048u
/* What devices need beside a frame (bytes): VLAN tags, and virtio's header. Many support buffers in
 * whole units only, and otherwise split a frame. */
#define DEVICE_BYTES 32u
#define DEVICE_UNIT  1024u

uint32_t by_port_payload_max(const struct by_port *port)
{
    return port->mtu > BY_PORT_MTU_OVERHEAD ? port->mtu - BY_PORT_MTU_OVERHEAD : 0;
}

uint32_t by_port_buffer_bytes(const struct by_port *port)
{
    uint32_t bytes = port->mtu + (uint32_t)RTE_ETHER_HDR_LEN + RTE_ETHER_CRC_LEN + DEVICE_BYTES;

    bytes = RTE_ALIGN(bytes, DEVICE_UNIT);
    if (port->kind == BY_PORT_IFACE)
        bytes = by_interface_buffer_bytes(port->driver, port->mtu);
    return bytes > BUFFER_BYTES_MIN ? bytes : BUFFER_BYTES_MIN;
}

static int check_one(const struct by_port_spec *spec)
{
    if (spec->kind == BY_PORT_IFACE)
        return by_interface_check(spec->text);
    return spec->kind == BY_PORT_PCI ? by_pci_check("", spec->text) : 0;
}

int by_port_check_all(const struct by_port_spec *specs, unsigned count)
{
    int result = 0;

    for (unsigned i = 0; i < count && result == 0; i++) {
        for (unsigned j = 0; j < i; j++) {
            if (strcmp(specs[i].text, specs[j].text) == 0) {
                by_say("port %s is given twice: each port is opened once", specs[i].text);
                return BY_EINVAL;
            }
        }
        result = check_one(&specs[i]);
    }
    return result;
}

/* Selects the driver of an interface and opens it. */
static int probe_interface(struct by_port *port, unsigned driver)
{
    int result = by_interface_ready(port->name, &port->mtu);

    if (result != 0)
        return result;
    port->automatic = driver == BY_DRIVER_AUTO;
    if (port->automatic && by_interface_single_frames(port->name) &&
        by_port_gso_open(port, BY_DRIVER_RING) == 0)
        return 0;
    if (port->automatic)
        driver = by_interface_driver(port->name, port->mtu);
    switch ((enum by_port_driver)driver) {
    case BY_DRIVER_RING:
    case BY_DRIVER_GSO:
        return by_port_gso_open(port, driver);
    case BY_DRIVER_XDP:
        return by_port_xdp_open(port);
    case BY_DRIVER_AF_PACKET:
    case BY_DRIVER_AF_XDP:
        return by_port_dpdk_interface(port, driver);
    case BY_DRIVER_NONE:
    case BY_DRIVER_AUTO:
    default:
        return BY_EINVAL;
    }
}

/* Reads the MAC address of a device of DPDK. */
static int read_mac(struct by_port *port, int result)
{
    struct rte_ether_addr address;

    if (result == 0 && rte_eth_macaddr_get(port->id, &address) == 0)
        memcpy(port->mac, address.addr_bytes, BY_MAC_BYTES);
    return result;
}

int by_port_probe(struct by_port *port, unsigned index, const struct by_port_spec *spec, unsigned driver)
{
    *port = (struct by_port){.kind = spec->kind, .index = (uint16_t)index, .rx_queues = 1, .tx_queues = 1};
    snprintf(port->name, sizeof port->name, "%s", spec->text);
    switch ((enum by_port_kind)spec->kind) {
    case BY_PORT_SHM:
        return by_port_link_open(port);
    case BY_PORT_IFACE:
        by_interface_mac(port->name, port->mac);
        return probe_interface(port, driver);
    case BY_PORT_VDEV:
        return read_mac(port, by_port_dpdk_vdev(port, spec->text));
    case BY_PORT_PCI:
        return read_mac(port, by_port_dpdk_pci(port));
    default:
        return BY_EINVAL;
    }
}

int by_port_start(struct by_port *port, struct rte_mempool *pool, uint16_t payload_max, struct by_xdp *xdp)
{
    if (by_port_payload_max(port) < payload_max) {
        by_say("port %s: a payload of %u bytes needs an MTU of %u, and the port has %u: raise the MTU or use "
               "--payload-max %u",
               port->name, payload_max, payload_max + BY_PORT_MTU_OVERHEAD, port->mtu,
               by_port_payload_max(port) / 64 * 64);
        return BY_ELIMIT;
    }
    return port->ops->start(port, pool, payload_max, xdp);
}

void by_port_view(struct by_port *port, const struct by_port *from)
{
    *port = (struct by_port){.id = from->id,
                             .multi_segs = from->multi_segs,
                             .kind = from->kind,
                             .driver = from->driver,
                             .index = from->index,
                             .mtu = from->mtu,
                             .rx_descriptors = from->rx_descriptors,
                             .rx_queues = from->rx_queues,
                             .tx_queues = from->tx_queues};
    memcpy(port->mac, from->mac, sizeof port->mac);
    snprintf(port->name, sizeof port->name, "%s", from->name);
}

void by_port_close(struct by_port *port)
{
    rte_pktmbuf_free(port->gathered);
    port->gathered = NULL;
    if (port->ops)
        port->ops->close(port);
    port->ops = NULL;
    port->started = false;
}

/* Marks what a full transmit queue has not accepted, in the form of the loop's frames. */
static void mark_queue(struct by_port *port, uint16_t from)
{
    for (uint16_t i = from; i < port->queued && !port->wraps; i++)
        port->counters.marked += by_mark_frame(port->queue[i]);
}

void by_port_flush(struct by_port *port)
{
    uint16_t done = 0;
    unsigned tries = 0;

    /* otherwise at the end of the round */
    if (port->gathered && port->queued < BY_PORT_BURST) {
        by_port_append(port, port->gathered);
        port->gathered = NULL;
    }
    while (done < port->queued) {
        uint16_t sent = port->ops->send(port, port->queue + done, (uint16_t)(port->queued - done));

        done = (uint16_t)(done + sent);
        if (sent > 0)
            continue;
        if (tries == 0)
            mark_queue(port, done);
        if (++tries == BY_PORT_RETRIES)
            break;
    }
    /* A sent frame must not be read any more. */
    for (uint16_t i = done; i < port->queued; i++)
        port->queued_bytes -= port->queue[i]->pkt_len;
    port->counters.tx_bytes += port->queued_bytes;
    port->counters.tx_packets += done;
    if (done < port->queued) {
        port->counters.tx_dropped += (uint64_t)(port->queued - done);
        rte_pktmbuf_free_bulk(port->queue + done, (unsigned)(port->queued - done));
    }
    port->queued = 0;
    port->queued_bytes = 0;
    if (port->ops->flush)
        port->ops->flush(port);
}

uint64_t by_port_count_sockets(struct by_port *port)
{
    uint64_t lost = 0;

    for (unsigned i = 0; i < port->bell_count; i++) {
        struct tpacket_stats packet = {0};
        struct xdp_statistics xdp = {0};
        socklen_t packet_size = sizeof packet, xdp_size = sizeof xdp;

        if (getsockopt(port->bells[i], SOL_PACKET, PACKET_STATISTICS, &packet, &packet_size) == 0)
            port->lost += packet.tp_drops;
        else if (getsockopt(port->bells[i], SOL_XDP, XDP_STATISTICS, &xdp, &xdp_size) == 0)
            lost += xdp.rx_dropped + xdp.rx_ring_full;
    }
    return lost + port->lost;
}

void by_port_read(struct by_port *port, struct by_dp_port_counters *counters)
{
    *counters = port->counters;
    if (port->started)
        port->ops->count(port, counters);
}
