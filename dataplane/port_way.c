/* Implements port_way.h. */
#include "dataplane/port_way.h"

#include <stdio.h>
#include <string.h>

#include <rte_eal.h>
#include <rte_ethdev.h>

/* Bits of an offload mask (count). */
#define OFFLOADS 64u

static void add_names(uint64_t offloads, const char *(*name)(uint64_t), const char *direction, char *text,
                      size_t bytes)
{
    for (unsigned bit = 0; bit < OFFLOADS; bit++) {
        size_t used = strlen(text);

        if (offloads & (UINT64_C(1) << bit))
            snprintf(text + used, bytes - used, "%s%s %s", used ? ", " : "", direction,
                     name(UINT64_C(1) << bit));
    }
}

/* Why a device gets its results in one piece, or which results it gets so. A device that reads
 * memory by physical addresses cannot read a payload that crosses two hugepages, which need not be
 * adjacent. */
static const char *reason(const struct by_port *port, const struct rte_eth_dev_info *info)
{
    if (port->multi_segs)
        return port->kind == BY_PORT_PCI ? "except payloads that cross two hugepages, which are copied" : "";
    if ((info->tx_offload_capa & RTE_ETH_TX_OFFLOAD_MULTI_SEGS) == 0)
        return "the driver accepts no chained packets";
    if (strcmp(info->driver_name, "net_vhost") == 0)
        return "the driver copies chained packets one by one";
    return "addresses are physical (no IOMMU)";
}

static void describe_device(const struct by_port *port, struct by_port_way *way)
{
    struct rte_eth_dev_info info = {0};
    struct rte_eth_rxq_info rx = {0};
    struct rte_eth_txq_info tx = {0};
    struct rte_eth_link link = {0};

    if (rte_eth_dev_info_get(port->id, &info) != 0)
        return;
    way->driver = info.driver_name;
    way->why = reason(port, &info);
    way->rx_queues = info.nb_rx_queues;
    way->tx_queues = info.nb_tx_queues;
    if (rte_eth_rx_queue_info_get(port->id, 0, &rx) == 0)
        way->rx_descriptors = rx.nb_desc;
    if (rte_eth_tx_queue_info_get(port->id, 0, &tx) == 0)
        way->tx_descriptors = tx.nb_desc;
    add_names(port->rx_offloads, rte_eth_dev_rx_offload_name, "rx", way->offloads, sizeof way->offloads);
    add_names(port->tx_offloads, rte_eth_dev_tx_offload_name, "tx", way->offloads, sizeof way->offloads);
    way->promiscuous = rte_eth_promiscuous_get(port->id) == 1;
    if (rte_eth_link_get_nowait(port->id, &link) == 0 && link.link_speed != RTE_ETH_SPEED_NUM_UNKNOWN)
        way->mbps = link.link_speed;
}

static void describe_steer(const struct by_port *port, char *text, size_t bytes)
{
    static const char *const ways[] = {[BY_STEER_NONE] = "",
                                       [BY_STEER_HANDED] = "frames handed over in bursts",
                                       [BY_STEER_SENDER] = "queues chosen by senders",
                                       [BY_STEER_RSS] = "queues by RSS of the UDP source port"};

    snprintf(text, bytes, "%s%s%s", ways[port->steer], port->steer_why[0] ? " because " : "",
             port->steer_why);
}

void by_port_way(const struct by_port *port, struct by_port_way *way)
{
    *way = (struct by_port_way){.driver = "", .why = "", .by_reference = port->multi_segs};
    describe_steer(port, way->steer, sizeof way->steer);
    way->late = port->kind == BY_PORT_PCI || port->kind == BY_PORT_VDEV;
    if (port->link) {
        way->driver = "shared memory";
        way->by_reference = true;
    } else if (port->xsk || port->gso) {
        way->driver = port->xsk ? "xdp" : port->driver == BY_DRIVER_RING ? "ring" : "gso";
        way->rx_queues = way->tx_queues = 1;
        way->promiscuous = true;
    } else if (port->started) {
        describe_device(port, way);
    }
}
