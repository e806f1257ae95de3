/*
 * Ports that DPDK drives: its virtual and PCI devices, and kernel interfaces through a virtual
 * device, net_af_xdp where frames fit a page and the kernel supports it, net_af_packet elsewhere
 * (docs/decisions/0004). Queues are those of port_steer.h. See port.h; shell.c's start, and the
 * thread of each worker.
 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <rte_dev.h>
#include <rte_errno.h>
#include <rte_ethdev.h>

#include "dataplane/port.h"
#include "dataplane/port_steer.h"
#include "dataplane/say.h"
#include "offload/base/errors.h"

#define RX_DESCRIPTORS 1024u
/* A chained packet takes two. Some drivers release a packet only when its descriptor is used again,
 * so a longer ring means more payloads between the cache and memory. */
#define TX_DESCRIPTORS 512u
#define MTU_USUAL      1500u
#define MTU_JUMBO      9000u
/* Bytes in flight that a packet socket accepts: a full transmit ring. With the kernel's default of
 * 208 KiB the ring is not sent to its end when receivers are late. */
#define SEND_BYTES (16 << 20)
/* Buffers that a NIC's rings hold (count), and those of a virtual device: net_af_xdp posts 2048 to
 * receive and has as many to send. */
#define FRAMES_HELD_PCI (RX_DESCRIPTORS + TX_DESCRIPTORS)
#define FRAMES_HELD     4608u

static const struct by_port_ops dpdk_ops;

/* The file descriptors that are open, however high their numbers are: `count` of them, or -1. */
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

        /* The descriptor of the listing itself is closed at its end, and its number is free for
         * others. */
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

/* The packet sockets that were opened since `before`: readable when frames wait, so an idle switch
 * sleeps on them. Where descriptors cannot be listed there are none, and the port is polled. */
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

static int plug(struct by_port *port, const char *device, const char *arguments)
{
    snprintf(port->device, sizeof port->device, "%s", device);
    if (rte_eal_hotplug_add("vdev", device, arguments) != 0 ||
        rte_eth_dev_get_port_by_name(device, &port->id) != 0)
        return BY_EIO;
    port->hotplugged = true;
    return 0;
}

int by_port_dpdk_interface(struct by_port *port, unsigned driver)
{
    struct by_fds before = open_fds();
    char device[64], arguments[256];
    int result = by_interface_device(port->name, port->index, driver, port->mtu, device, arguments);

    port->driver = (uint8_t)driver;
    port->ops = &dpdk_ops;
    port->frames_held = driver == BY_DRIVER_AF_XDP ? FRAMES_HELD : BY_PORT_FRAMES_COPIED;
    if (result == 0 && plug(port, device, arguments) != 0) {
        by_say("--iface %s: cannot open %s on it (%s)", port->name, device, rte_strerror(rte_errno));
        result = BY_EIO;
    }
    if (result == 0)
        find_bells(port, &before);
    free(before.fd);
    return result;
}

/* A device that is not an interface of the kernel. */
static int open_device(struct by_port *port, int error)
{
    port->ops = &dpdk_ops;
    port->frames_held = port->kind == BY_PORT_PCI ? FRAMES_HELD_PCI : FRAMES_HELD;
    port->headers_held = TX_DESCRIPTORS;
    if (error == 0 && rte_eth_dev_get_mtu(port->id, &port->mtu) != 0)
        port->mtu = MTU_USUAL;
    return error;
}

static int plug_vdev(struct by_port *port, const char *text)
{
    char device[64];
    const char *comma = strchr(text, ',');
    size_t length = comma ? (size_t)(comma - text) : strlen(text);

    snprintf(device, sizeof device, "%.*s", (int)(length < sizeof device ? length : sizeof device - 1), text);
    if (plug(port, device, comma ? comma + 1 : "") != 0) {
        by_say("--vdev %s: no such virtual device, or it refuses its arguments; examples: net_ring0, "
               "net_null0, net_af_packet0,iface=eth0, net_vhost0,iface=/tmp/vhost.sock",
               text);
        return BY_ENOENT;
    }
    port->copies = strcmp(by_port_pmd(port), "net_vhost") == 0;
    return 0;
}

int by_port_dpdk_vdev(struct by_port *port, const char *text)
{
    struct by_fds before = open_fds();
    int error = open_device(port, plug_vdev(port, text));

    if (error == 0)
        find_bells(port, &before);
    free(before.fd);
    return error;
}

static int find_pci(struct by_port *port, const char *text)
{
    snprintf(port->device, sizeof port->device, "%s", text);
    if (rte_eth_dev_get_port_by_name(text, &port->id) != 0) {
        by_say("--pci %s: no DPDK driver uses it; bind it with `dpdk-devbind.py -b vfio-pci %s`", text, text);
        return BY_ENOENT;
    }
    return 0;
}

int by_port_dpdk_pci(struct by_port *port)
{
    return open_device(port, find_pci(port, port->name));
}

/* Returns the largest MTU that a device supports. */
static uint32_t mtu_limit(const struct rte_eth_dev_info *info)
{
    uint32_t overhead = RTE_ETHER_HDR_LEN + RTE_ETHER_CRC_LEN;
    uint32_t limit = info->max_mtu ? info->max_mtu : UINT16_MAX;

    return info->max_rx_pktlen > overhead ? RTE_MIN(limit, info->max_rx_pktlen - overhead) : limit;
}

const char *by_port_pmd(const struct by_port *port)
{
    struct rte_eth_dev_info info;

    return rte_eth_dev_info_get(port->id, &info) == 0 ? info.driver_name : "";
}

void by_port_raise(struct by_port *port, uint32_t payload_max)
{
    uint32_t need = payload_max + BY_PORT_MTU_OVERHEAD;
    struct rte_eth_dev_info info;

    if (port->kind != BY_PORT_PCI || port->mtu >= need || rte_eth_dev_info_get(port->id, &info) != 0)
        return;
    need = RTE_MAX(need, MTU_JUMBO);
    need = RTE_MIN(need, mtu_limit(&info));
    port->mtu = (uint16_t)RTE_MAX(port->mtu, need);
}

/* Device settings that this port can take. */
static void choose_config(struct by_port *port, const struct rte_eth_dev_info *info,
                          struct rte_eth_conf *config)
{
    *config = (struct rte_eth_conf){0};
    config->txmode.offloads = info->tx_offload_capa & RTE_ETH_TX_OFFLOAD_MULTI_SEGS;
    port->tx_offloads = config->txmode.offloads;
    /* net_vhost copies each frame to its host: whole frames four at a time, chains one by one. */
    port->multi_segs = config->txmode.offloads != 0 && !port->copies;
    if (port->kind == BY_PORT_IFACE)
        return; /* these drivers know nothing of the interface's MTU; their buffers were sized for it */
    config->rxmode.mtu = RTE_MIN(port->mtu, mtu_limit(info));
}

/* Configures and starts the device; the failed step, or NULL. */
static const char *start_device(struct by_port *port, struct rte_mempool *pool, int *result)
{
    struct rte_eth_dev_info info;
    struct rte_eth_conf config;
    uint8_t key[BY_STEER_KEY_BYTES];
    uint16_t rx_count = RX_DESCRIPTORS, tx_count = TX_DESCRIPTORS;

    if ((*result = rte_eth_dev_info_get(port->id, &info)) != 0)
        return "rte_eth_dev_info_get";
    choose_config(port, &info, &config);
    by_port_steer_configure(port, &info, key, &config);
    if ((*result = rte_eth_dev_configure(port->id, port->rx_queues, port->tx_queues, &config)) != 0)
        return "rte_eth_dev_configure";
    if ((*result = rte_eth_dev_adjust_nb_rx_tx_desc(port->id, &rx_count, &tx_count)) != 0)
        return "rte_eth_dev_adjust_nb_rx_tx_desc";
    port->rx_descriptors = rx_count;
    for (uint16_t queue = 0; queue < port->rx_queues; queue++)
        if ((*result = rte_eth_rx_queue_setup(port->id, queue, rx_count, SOCKET_ID_ANY, NULL, pool)) != 0)
            return "rte_eth_rx_queue_setup";
    for (uint16_t queue = 0; queue < port->tx_queues; queue++)
        if ((*result = rte_eth_tx_queue_setup(port->id, queue, tx_count, SOCKET_ID_ANY, NULL)) != 0)
            return "rte_eth_tx_queue_setup";
    if ((*result = rte_eth_dev_start(port->id)) != 0)
        return "rte_eth_dev_start";
    port->started = true;
    if ((*result = by_port_steer_start(port)) != 0)
        return "rte_eth_dev_rss_reta_update";
    return NULL;
}

/* Starts the device, with one receive queue if its driver refuses what steers frames to several. */
static const char *start_steered(struct by_port *port, struct rte_mempool *pool, int *result)
{
    const char *failed = start_device(port, pool, result);
    char why[sizeof port->steer_why];

    if (!failed || port->steer != BY_STEER_RSS)
        return failed;
    if (port->started)
        rte_eth_dev_stop(port->id);
    port->started = false;
    snprintf(why, sizeof why, "its driver refuses RSS: %s: %s", failed, rte_strerror(-*result));
    by_port_steer_give_up(port, why);
    return start_device(port, pool, result);
}

static void close_device(struct by_port *port)
{
    if (port->started)
        rte_eth_dev_stop(port->id);
    port->started = false;
    if (port->hotplugged)
        rte_eal_hotplug_remove("vdev", port->device);
    else if (port->device[0] && port->kind == BY_PORT_PCI && rte_eth_dev_is_valid_port(port->id))
        rte_eth_dev_close(port->id);
    port->hotplugged = false;
    port->device[0] = 0;
}

/* net_af_xdp does not work on this interface: net_af_packet works wherever sockets do. */
static int fall_back(struct by_port *port)
{
    by_say("--iface %s: net_af_xdp does not work here, using net_af_packet", port->name);
    close_device(port);
    port->bell_count = 0;
    port->automatic = false;
    return by_port_dpdk_interface(port, BY_DRIVER_AF_PACKET);
}

static int start(struct by_port *port, struct rte_mempool *pool, uint16_t payload_max, struct by_xdp *xdp)
{
    struct by_fds before;
    const char *failed;
    int result = 0;

    (void)payload_max;
    (void)xdp;
    before = open_fds();
    failed = start_steered(port, pool, &result);
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
    /* Frames carry the addresses of the table, which need not be the device's. A device that cannot
     * do it filters by its own. */
    rte_eth_promiscuous_enable(port->id);
    find_bells(port, &before);
    free(before.fd);
    return 0;
}

static uint16_t receive_burst(struct by_port *port, struct rte_mbuf **frames, uint16_t count)
{
    return rte_eth_rx_burst(port->id, port->lane_queue, frames, count);
}

static uint16_t send_burst(struct by_port *port, struct rte_mbuf **frames, uint16_t count)
{
    port->unsettled = true;
    return rte_eth_tx_burst(port->id, port->lane_queue, frames, count);
}

/* The count is negative if the driver does not report it. */
static bool is_crowded(const struct by_port *port)
{
    return rte_eth_rx_queue_count(port->id, port->lane_queue) >= port->rx_descriptors / 2;
}

static bool settle(struct by_port *port)
{
    if (!port->unsettled)
        return true;
    port->unsettled = false;
    for (unsigned i = 0; i < port->bell_count; i++)
        if (send(port->bells[i], NULL, 0, MSG_DONTWAIT) < 0 &&
            (errno == EAGAIN || errno == ENOBUFS || errno == EBUSY))
            port->unsettled = true;
    return !port->unsettled;
}

static void count(struct by_port *port, struct by_dp_port_counters *counters)
{
    struct rte_eth_stats stats;

    if (port->bell_count > 0)
        counters->rx_dropped += by_port_count_sockets(port);
    else if (rte_eth_stats_get(port->id, &stats) == 0)
        counters->rx_dropped += stats.imissed + stats.rx_nombuf;
}

static bool is_down(const struct by_port *port)
{
    struct rte_eth_link link = {0};

    if (port->kind == BY_PORT_IFACE)
        return by_interface_is_down(port->name);
    return port->started && rte_eth_link_get_nowait(port->id, &link) == 0 &&
           link.link_status == RTE_ETH_LINK_DOWN;
}

static const struct by_port_ops dpdk_ops = {.start = start,
                                            .flush = NULL,
                                            .receive = receive_burst,
                                            .send = send_burst,
                                            .is_crowded = is_crowded,
                                            .settle = settle,
                                            .count = count,
                                            .is_down = is_down,
                                            .close = close_device};

bool by_port_is_device(const struct by_port *port)
{
    return port->ops == &dpdk_ops;
}

/* ---- another worker's view ---- */

static uint16_t receive_nothing(struct by_port *port, struct rte_mbuf **frames, uint16_t count)
{
    (void)port;
    (void)frames;
    (void)count;
    return 0;
}

static void count_nothing(struct by_port *port, struct by_dp_port_counters *counters)
{
    (void)port;
    (void)counters;
}

static void close_view(struct by_port *port)
{
    (void)port;
}

/* Of a device with queues for all workers in both directions, or only to transmit. */
static const struct by_port_ops view_ops = {.start = NULL,
                                            .flush = NULL,
                                            .receive = receive_burst,
                                            .send = send_burst,
                                            .is_crowded = is_crowded,
                                            .settle = settle,
                                            .count = count_nothing,
                                            .is_down = is_down,
                                            .close = close_view};
static const struct by_port_ops send_ops = {.start = NULL,
                                            .flush = NULL,
                                            .receive = receive_nothing,
                                            .send = send_burst,
                                            .is_crowded = NULL,
                                            .settle = settle,
                                            .count = count_nothing,
                                            .is_down = is_down,
                                            .close = close_view};

void by_port_dpdk_view(struct by_port *port, const struct by_port *from, uint16_t queue)
{
    by_port_view(port, from);
    port->ops = from->rx_queues > 1 ? &view_ops : &send_ops;
    port->lane_queue = queue;
    port->copies = from->copies;
    port->bell_count = from->bell_count;
    memcpy(port->bells, from->bells, sizeof port->bells);
}
