/* Facts of a port from the kernel or from DPDK (facts.h), and of its neighbour from LLDP
 * (shell.h). */
#include "dataplane/facts.h"

#include <stdio.h>
#include <string.h>

#include <rte_dev.h>
#include <rte_ethdev.h>

#include "dataplane/state.h"

/* An offload of a device, by the name that ethtool has for it. */
struct facts_offload {
    uint64_t bit;
    const char *name;
};

static const struct facts_offload rx_offloads[] = {{RTE_ETH_RX_OFFLOAD_UDP_CKSUM, "rx-checksum"},
                                                   {RTE_ETH_RX_OFFLOAD_VLAN_STRIP, "rx-vlan-hw-parse"}};
static const struct facts_offload tx_offloads[] = {{RTE_ETH_TX_OFFLOAD_UDP_CKSUM, "tx-checksum-ipv4"},
                                                   {RTE_ETH_TX_OFFLOAD_MULTI_SEGS, "tx-scatter-gather"},
                                                   {RTE_ETH_TX_OFFLOAD_UDP_TSO, "tx-udp-segmentation"}};

static size_t add_offloads(char *text, size_t room, size_t used, const struct facts_offload *offloads,
                           size_t count, uint64_t bits)
{
    for (size_t i = 0; i < count; i++)
        if ((bits & offloads[i].bit) != 0 && used + strlen(offloads[i].name) + 2 < room)
            used += (size_t)snprintf(text + used, room - used, "%s%s", used > 0 ? " " : "", offloads[i].name);
    return used;
}

/* The offloads are those that the device supports; the switch uses tx-scatter-gather alone. */
static void read_device(const struct by_port *port, struct by_device *facts)
{
    struct rte_eth_dev_info info;
    struct rte_ether_addr mac;
    struct rte_eth_link link;
    size_t used;
    int socket = rte_eth_dev_socket_id(port->id);

    facts->exists = facts->is_ethernet = facts->is_up = true;
    facts->mtu = port->mtu;
    facts->numa = socket < 0 ? 0 : (uint32_t)socket + 1;
    if (rte_eth_macaddr_get(port->id, &mac) == 0)
        memcpy(facts->mac, mac.addr_bytes, sizeof facts->mac);
    if (rte_eth_link_get_nowait(port->id, &link) == 0) {
        facts->has_carrier = link.link_status == RTE_ETH_LINK_UP;
        if (link.link_speed != RTE_ETH_SPEED_NUM_UNKNOWN)
            facts->speed_mbps = link.link_speed;
    }
    if (rte_eth_dev_info_get(port->id, &info) != 0)
        return;
    facts->queues = info.nb_rx_queues;
    snprintf(facts->driver, sizeof facts->driver, "%s", info.driver_name ? info.driver_name : "");
    if (port->kind == BY_PORT_PCI)
        snprintf(facts->bus, sizeof facts->bus, "%.31s", port->device);
    used = add_offloads(facts->features, sizeof facts->features, 0, rx_offloads, RTE_DIM(rx_offloads),
                        info.rx_offload_capa);
    add_offloads(facts->features, sizeof facts->features, used, tx_offloads, RTE_DIM(tx_offloads),
                 info.tx_offload_capa);
}

void by_port_facts(const struct by_port *port, struct by_device *facts)
{
    *facts = (struct by_device){.exists = port->kind == BY_PORT_SHM, .mtu = port->mtu};
    if (port->kind == BY_PORT_IFACE)
        by_device_read(port->name, facts);
    else if (port->kind != BY_PORT_SHM)
        read_device(port, facts);
}

/* Reads the MAC address of a port's device. */
static bool read_mac(const struct by_port *port, uint8_t mac[BY_MAC_BYTES])
{
    struct rte_ether_addr address;

    if (port->kind == BY_PORT_IFACE)
        return by_device_mac(port->name, mac);
    if (port->kind == BY_PORT_SHM || rte_eth_macaddr_get(port->id, &address) != 0)
        return false;
    memcpy(mac, address.addr_bytes, BY_MAC_BYTES);
    return true;
}

void by_shell_announce(struct by_shell *shell, const char *name)
{
    struct by_lldp own = {.ttl_s = BY_LLDP_TTL_S, .forwards = true};

    snprintf(own.node, sizeof own.node, "%s", name);
    for (unsigned i = 0; i < shell->port_count; i++) {
        const struct by_port *port = &shell->ports[i];

        if (by_port_is_down(port) || !read_mac(port, own.source))
            continue;
        snprintf(own.port, sizeof own.port, "%s", port->name);
        by_batch_announce(&shell->batch, (uint16_t)i, &own);
    }
}
