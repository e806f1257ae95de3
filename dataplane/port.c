/*
 * Ports: opened by name, configured with one queue in each direction, drained in bursts. A kernel
 * interface becomes a DPDK port through a virtual device: net_af_xdp if frames fit a page and the
 * kernel permits it, else net_af_packet (docs/decisions has the reasons). Called from shell.c and
 * the loop's thread.
 */
#include "dataplane/port.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_packet.h>
#include <linux/if_xdp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rte_dev.h>
#include <rte_errno.h>

#include "dataplane/say.h"
#include "offload/base/errors.h"

#define DESCRIPTORS 1024u
/* Send buffer of a packet socket (bytes): a full transmit ring. With the kernel's default of 208
 * KiB the ring is not sent completely if receivers are slow. */
#define SEND_BYTES (16 << 20)
/* Minimal receive buffer (bytes): other drivers expect it. */
#define BUFFER_BYTES_MIN 2048u

uint32_t by_port_payload_max(const struct by_port *port)
{
    return port->mtu > BY_PORT_MTU_OVERHEAD ? port->mtu - BY_PORT_MTU_OVERHEAD : 0;
}

uint32_t by_port_buffer_bytes(const struct by_port *port)
{
    uint32_t bytes = port->mtu + (uint32_t)RTE_ETHER_HDR_LEN + RTE_ETHER_CRC_LEN;

    if (port->kind == BY_PORT_IFACE)
        bytes = by_interface_buffer_bytes(port->driver, port->mtu);
    return bytes > BUFFER_BYTES_MIN ? bytes : BUFFER_BYTES_MIN;
}

/* Lists the existing PCI network devices, for an error text. */
static void list_pci(char *text, size_t bytes)
{
    DIR *dir = opendir("/sys/bus/pci/devices");
    size_t used = 0;

    snprintf(text, bytes, "none");
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        char path[320], class[16] = "";
        FILE *file;

        snprintf(path, sizeof path, "/sys/bus/pci/devices/%s/class", entry->d_name);
        file = entry->d_name[0] == '.' ? NULL : fopen(path, "r");
        if (!file)
            continue;
        if (fgets(class, sizeof class, file) && strncmp(class, "0x02", 4) == 0 &&
            used + strlen(entry->d_name) + 3 < bytes)
            used += (size_t)snprintf(text + used, bytes - used, "%s%s", used ? ", " : "", entry->d_name);
        fclose(file);
    }
    if (dir)
        closedir(dir);
}

/* The open file descriptors, however high their numbers are: `count` of them, or -1. */
struct by_fds {
    int *fd;
    int count;
};

static struct by_fds open_fds(void)
{
    struct by_fds open = {.fd = NULL, .count = 0};
    DIR *dir = opendir("/proc/self/fd");

    if (!dir)
        open.count = -1;
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        int *more;

        /* The descriptor of the listing itself is closed at its end, and its number may be
         * reused. */
        if (entry->d_name[0] == '.' || atoi(entry->d_name) == dirfd(dir))
            continue;
        more = realloc(open.fd, (size_t)(open.count + 1) * sizeof *more);
        if (!more) {
            free(open.fd);
            open = (struct by_fds){.fd = NULL, .count = -1};
            break;
        }
        open.fd = more;
        open.fd[open.count++] = atoi(entry->d_name);
    }
    if (dir)
        closedir(dir);
    return open;
}

static bool was_open(const struct by_fds *before, int fd)
{
    for (int i = 0; i < before->count; i++)
        if (before->fd[i] == fd)
            return true;
    return false;
}

/* Finds the packet sockets opened since `before`. They are readable when frames wait, so an idle
 * switch sleeps on them. If descriptors cannot be listed, there are none, and the port is
 * polled. */
static void find_bells(struct by_port *port, const struct by_fds *before)
{
    const int send_bytes = SEND_BYTES;
    struct by_fds now = {.count = -1};

    if (before->count >= 0)
        now = open_fds();
    for (int i = 0; i < now.count && port->bell_count < BY_PORT_BELLS; i++) {
        int fd = now.fd[i], domain = 0;
        socklen_t size = sizeof domain;

        if (was_open(before, fd) || getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) != 0)
            continue;
        if (domain != AF_PACKET && domain != AF_XDP)
            continue;
        setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &send_bytes, sizeof send_bytes);
        port->bells[port->bell_count++] = fd;
    }
    free(now.fd);
}

static int check_one(const struct by_port_spec *spec)
{
    char path[320], existing[512];

    if (spec->kind == BY_PORT_IFACE)
        return by_interface_check(spec->text);
    snprintf(path, sizeof path, "/sys/bus/pci/devices/%s", spec->text);
    if (spec->kind == BY_PORT_PCI && (strchr(spec->text, '/') || access(path, F_OK) != 0)) {
        list_pci(existing, sizeof existing);
        by_say("--pci %s: there is no such device; network devices: %s", spec->text, existing);
        return BY_ENOENT;
    }
    return 0;
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

static int plug(struct by_port *port, const char *device, const char *arguments)
{
    snprintf(port->device, sizeof port->device, "%s", device);
    if (rte_eal_hotplug_add("vdev", device, arguments) != 0 ||
        rte_eth_dev_get_port_by_name(device, &port->id) != 0)
        return BY_EIO;
    port->hotplugged = true;
    return 0;
}

static int probe_interface(struct by_port *port, unsigned index, unsigned driver)
{
    char device[64], arguments[256];
    int result = by_interface_ready(port->name, &port->mtu);

    if (result != 0)
        return result;
    port->automatic = driver == BY_DRIVER_AUTO;
    port->driver = (uint8_t)(port->automatic ? by_interface_driver(port->name, port->mtu) : driver);
    port->index = (uint16_t)index;
    if (port->automatic && by_interface_single_frames(port->name) &&
        by_gso_open(&port->gso, port->name, port->mtu, BY_GSO_RING) == 0) {
        port->driver = BY_DRIVER_RING;
        return 0;
    }
    if (port->driver == BY_DRIVER_GSO || port->driver == BY_DRIVER_RING)
        return by_gso_open(&port->gso, port->name, port->mtu,
                           port->driver == BY_DRIVER_RING ? BY_GSO_RING : BY_GSO_BOTH);
    if (port->driver == BY_DRIVER_XDP)
        return by_interface_fits(port->name, port->mtu) ? by_xdp_port_open(&port->xsk, port->name, port->mtu)
                                                        : BY_ELIMIT;
    result = by_interface_device(port->name, index, port->driver, port->mtu, device, arguments);
    if (result != 0)
        return result;
    if (plug(port, device, arguments) != 0) {
        by_say("--iface %s: %s cannot be opened on it (%s)", port->name, device, rte_strerror(rte_errno));
        return BY_EIO;
    }
    return 0;
}

static int probe_vdev(struct by_port *port, const char *text)
{
    char device[64];
    const char *comma = strchr(text, ',');
    size_t length = comma ? (size_t)(comma - text) : strlen(text);

    snprintf(device, sizeof device, "%.*s", (int)(length < sizeof device ? length : sizeof device - 1), text);
    if (plug(port, device, comma ? comma + 1 : "") != 0) {
        by_say("--vdev %s: there is no such virtual device or it refuses its arguments; examples: net_ring0, "
               "net_null0, "
               "net_af_packet0,iface=eth0, net_vhost0,iface=/tmp/vhost.sock",
               text);
        return BY_ENOENT;
    }
    return 0;
}

static int probe_shm(struct by_port *port, const char *path)
{
    int result = by_link_open(&port->link, path);

    if (result != 0)
        return result;
    port->mtu = BY_PAYLOAD_MAX + BY_PORT_MTU_OVERHEAD;
    port->bells[port->bell_count++] = by_link_fd(port->link);
    return 0;
}

static int probe_pci(struct by_port *port, const char *text)
{
    snprintf(port->device, sizeof port->device, "%s", text);
    if (rte_eth_dev_get_port_by_name(text, &port->id) != 0) {
        by_say("--pci %s: no DPDK driver took it; bind it with `dpdk-devbind.py -b vfio-pci %s`", text, text);
        return BY_ENOENT;
    }
    return 0;
}

int by_port_probe(struct by_port *port, unsigned index, const struct by_port_spec *spec, unsigned driver)
{
    struct by_fds before;
    int result;

    *port = (struct by_port){.kind = spec->kind};
    snprintf(port->name, sizeof port->name, "%s", spec->text);
    if (spec->kind == BY_PORT_SHM)
        return probe_shm(port, spec->text);
    before = open_fds();
    if (spec->kind == BY_PORT_IFACE)
        result = probe_interface(port, index, driver);
    else if (spec->kind == BY_PORT_VDEV)
        result = probe_vdev(port, spec->text);
    else
        result = probe_pci(port, spec->text);
    if (result != 0) {
        free(before.fd);
        return result;
    }
    if (port->kind != BY_PORT_IFACE && rte_eth_dev_get_mtu(port->id, &port->mtu) != 0)
        port->mtu = 1500;
    if (port->gso)
        port->bells[port->bell_count++] = by_gso_fd(port->gso);
    else if (port->xsk)
        port->bells[port->bell_count++] = by_xdp_port_fd(port->xsk);
    else
        find_bells(port, &before);
    free(before.fd);
    return 0;
}

/* Selects device settings that this port supports. */
static void choose_config(struct by_port *port, const struct rte_eth_dev_info *info,
                          struct rte_eth_conf *config)
{
    uint32_t overhead = RTE_ETHER_HDR_LEN + RTE_ETHER_CRC_LEN;

    *config = (struct rte_eth_conf){0};
    config->txmode.offloads = info->tx_offload_capa & RTE_ETH_TX_OFFLOAD_MULTI_SEGS;
    /* net_vhost copies each frame to its host: whole frames four at a time, chains one by one. */
    port->multi_segs = config->txmode.offloads != 0 && strcmp(info->driver_name, "net_vhost") != 0;
    /* these drivers ignore the interface's MTU; their buffers were sized for it */
    if (port->kind == BY_PORT_IFACE)
        return;
    config->rxmode.mtu = port->mtu;
    if (info->max_mtu && config->rxmode.mtu > info->max_mtu)
        config->rxmode.mtu = info->max_mtu;
    if (info->max_rx_pktlen > overhead && config->rxmode.mtu + overhead > info->max_rx_pktlen)
        config->rxmode.mtu = info->max_rx_pktlen - overhead;
}

/* Configures and starts the device; returns the failed step, or NULL. */
static const char *start_device(struct by_port *port, struct rte_mempool *pool, int *result)
{
    struct rte_eth_dev_info info;
    struct rte_eth_conf config;
    uint16_t rx_count = DESCRIPTORS, tx_count = DESCRIPTORS;

    if ((*result = rte_eth_dev_info_get(port->id, &info)) != 0)
        return "rte_eth_dev_info_get";
    choose_config(port, &info, &config);
    if ((*result = rte_eth_dev_configure(port->id, 1, 1, &config)) != 0)
        return "rte_eth_dev_configure";
    if ((*result = rte_eth_dev_adjust_nb_rx_tx_desc(port->id, &rx_count, &tx_count)) != 0)
        return "rte_eth_dev_adjust_nb_rx_tx_desc";
    if ((*result = rte_eth_rx_queue_setup(port->id, 0, rx_count, SOCKET_ID_ANY, NULL, pool)) != 0)
        return "rte_eth_rx_queue_setup";
    if ((*result = rte_eth_tx_queue_setup(port->id, 0, tx_count, SOCKET_ID_ANY, NULL)) != 0)
        return "rte_eth_tx_queue_setup";
    if ((*result = rte_eth_dev_start(port->id)) != 0)
        return "rte_eth_dev_start";
    port->started = true;
    return NULL;
}

/* Falls back to net_af_packet on an interface where net_af_xdp failed to start. */
static int fall_back(struct by_port *port)
{
    by_say("--iface %s: net_af_xdp does not work here, using net_af_packet", port->name);
    by_port_close(port);
    port->bell_count = 0;
    return probe_interface(port, port->index, BY_DRIVER_AF_PACKET);
}

int by_port_start(struct by_port *port, struct rte_mempool *pool, uint16_t payload_max, struct by_xdp *xdp)
{
    struct by_fds before;
    const char *failed;
    int result = 0;

    if (by_port_payload_max(port) < payload_max) {
        by_say("port %s: a payload of %u bytes needs an MTU of %u, it has %u: raise the MTU or use "
               "--payload-max %u",
               port->name, payload_max, payload_max + BY_PORT_MTU_OVERHEAD, port->mtu,
               by_port_payload_max(port) / 64 * 64);
        return BY_ELIMIT;
    }
    if (port->link) {
        port->started = true;
        return 0;
    }
    if (port->gso) {
        port->started = true;
        port->multi_segs = true;
        return by_gso_start(port->gso, pool, payload_max);
    }
    if (port->xsk) {
        port->started = true;
        port->multi_segs = true;
        port->xdp = xdp;
        by_xdp_port_start(port->xsk, pool);
        return by_xdp_add(xdp, port->index, port->name, by_xdp_port_fd(port->xsk));
    }
    before = open_fds();
    failed = start_device(port, pool, &result);
    if (failed && port->automatic && port->driver == BY_DRIVER_AF_XDP) {
        if ((result = fall_back(port)) != 0) {
            free(before.fd);
            return result;
        }
        failed = start_device(port, pool, &result);
    }
    if (failed) {
        free(before.fd);
        by_say("port %s: %s of %s failed: %s", port->name, failed, port->device, rte_strerror(-result));
        return BY_EIO;
    }
    /* Frames carry the addresses of the table, which may differ from the device's. A device without
     * promiscuous mode filters by its own address. */
    rte_eth_promiscuous_enable(port->id);
    find_bells(port, &before);
    free(before.fd);
    return 0;
}

void by_port_close(struct by_port *port)
{
    rte_pktmbuf_free(port->gathered);
    port->gathered = NULL;
    if (port->link)
        by_link_close(port->link);
    else if (port->gso)
        by_gso_close(port->gso);
    else if (port->xsk)
        by_xdp_port_close(port->xsk);
    else if (port->started)
        rte_eth_dev_stop(port->id);
    port->link = NULL;
    port->gso = NULL;
    port->xsk = NULL;
    port->started = false;
    if (port->hotplugged)
        rte_eal_hotplug_remove("vdev", port->device);
    else if (port->device[0] && port->kind == BY_PORT_PCI && rte_eth_dev_is_valid_port(port->id))
        rte_eth_dev_close(port->id);
    port->hotplugged = false;
    port->device[0] = 0;
}

void by_port_send_shared(struct by_port *port, const struct by_tx *tx)
{
    if (by_link_send(port->link, tx, port->carrier.src_ip)) {
        port->counters.tx_packets++;
        port->counters.tx_bytes += BY_PORT_FRAME_OVERHEAD + tx->payload_bytes;
    } else {
        port->counters.tx_dropped++;
    }
}

/* Makes one send call to the port's driver; returns the number of accepted frames. */
static uint16_t send_some(struct by_port *port, struct rte_mbuf **frames, uint16_t count)
{
    if (port->link)
        return by_link_send_frames(port->link, frames, count);
    if (port->gso)
        return by_gso_send(port->gso, frames, count);
    if (port->xsk)
        return by_xdp_port_send(port->xsk, frames, count);
    return rte_eth_tx_burst(port->id, 0, frames, count);
}

void by_port_flush(struct by_port *port)
{
    uint16_t done = 0;
    unsigned tries = 0;

    /* otherwise at the end of the round */
    if (port->gathered && port->queued < BY_PORT_BURST) {
        port->queued_bytes += port->gathered->pkt_len;
        port->queue[port->queued++] = port->gathered;
        port->gathered = NULL;
    }
    while (done < port->queued) {
        uint16_t sent = send_some(port, port->queue + done, (uint16_t)(port->queued - done));

        done = (uint16_t)(done + sent);
        if (sent == 0 && ++tries == BY_PORT_RETRIES)
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
    port->unsettled = !port->gso && !port->xsk;
    if (port->link)
        by_link_flush(port->link);
}

bool by_port_settle(struct by_port *port)
{
    if (port->link)
        by_link_doze(port->link);
    if (port->gso)
        by_gso_doze(port->gso);
    if (!port->unsettled)
        return true;
    port->unsettled = false;
    for (unsigned i = 0; i < port->bell_count; i++)
        if (send(port->bells[i], NULL, 0, MSG_DONTWAIT) < 0 &&
            (errno == EAGAIN || errno == ENOBUFS || errno == EBUSY))
            port->unsettled = true;
    return !port->unsettled;
}

/* Returns the frames for which the port's sockets had no room since the start. A packet socket
 * resets its count when read. */
static uint64_t count_lost(struct by_port *port)
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
    if (port->xsk)
        lost += by_xdp_port_dropped(port->xsk);
    return lost + port->lost + (port->gso ? by_gso_dropped(port->gso) : 0);
}

/* Adds the packets that the kernel relayed through the port. */
static void add_kernel(const struct by_port *port, struct by_dp_port_counters *counters)
{
    struct by_xdp_port_counts kernel;

    by_xdp_read_port(port->xdp, port->index, &kernel);
    counters->rx_packets += kernel.rx_packets;
    counters->rx_bytes += kernel.rx_bytes;
    counters->tx_packets += kernel.tx_packets;
    counters->tx_bytes += kernel.tx_bytes;
}

void by_port_read(struct by_port *port, struct by_dp_port_counters *counters)
{
    struct rte_eth_stats stats;

    *counters = port->counters;
    if (!port->started)
        return;
    if (port->xdp)
        add_kernel(port, counters);
    if (port->link)
        by_link_dropped(port->link, &counters->rx_dropped, &counters->tx_dropped);
    else if (port->bell_count > 0)
        counters->rx_dropped += count_lost(port);
    else if (rte_eth_stats_get(port->id, &stats) == 0)
        counters->rx_dropped += stats.imissed + stats.rx_nombuf;
}

bool by_port_is_down(const struct by_port *port)
{
    struct rte_eth_link link = {0};

    if (port->kind == BY_PORT_IFACE)
        return by_interface_is_down(port->name);
    return port->kind != BY_PORT_SHM && port->started && rte_eth_link_get_nowait(port->id, &link) == 0 &&
           link.link_status == RTE_ETH_LINK_DOWN;
}
