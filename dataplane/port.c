/*
 * Ports: opened by name, configured with one queue each way, drained in bursts. A kernel interface becomes a
 * DPDK port through a virtual device, net_af_xdp where frames fit a page and the kernel lets us,
 * net_af_packet elsewhere (docs/decisions says why). Called from shell.c and the loop's thread.
 */
#include "dataplane/port.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rte_dev.h>
#include <rte_errno.h>

#include "dataplane/say.h"
#include "offload/base/errors.h"

/* Rings of net_af_packet: frames each way (count), bytes of a frame and of a block, for MTUs up to
 * SMALL_MTU_MAX and above. Whole frames fill a block (the driver counts on it), blocks are whole pages. */
#define RING_FRAMES       1024u
#define RING_FRAME_BYTES  2048u
#define RING_BLOCK_BYTES  65536u
#define SMALL_MTU_MAX     1900u
#define JUMBO_FRAMES      512u
#define JUMBO_FRAME_BYTES 10240u
#define JUMBO_BLOCK_BYTES 40960u
#define DESCRIPTORS       1024u
/* Least receive buffer (bytes): what other drivers expect. */
#define BUFFER_BYTES_MIN 2048u
/* Frames that net_af_xdp takes: a page less mbuf, headroom and alignment. */
#define AF_XDP_MTU_MAX 3400u
#define FDS_MAX        1024

uint32_t by_port_payload_max(const struct by_port *port)
{
    return port->mtu > BY_PORT_MTU_OVERHEAD ? port->mtu - BY_PORT_MTU_OVERHEAD : 0;
}

uint32_t by_port_buffer_bytes(const struct by_port *port)
{
    uint32_t bytes = port->mtu + (uint32_t)RTE_ETHER_HDR_LEN + RTE_ETHER_CRC_LEN;

    if (port->kind == BY_PORT_IFACE && port->driver == BY_DRIVER_AF_PACKET && port->mtu > SMALL_MTU_MAX)
        bytes = JUMBO_FRAME_BYTES;
    return bytes > BUFFER_BYTES_MIN ? bytes : BUFFER_BYTES_MIN;
}

/* Names of interfaces (or of PCI network devices) that exist, for an error. */
static void list_interfaces(char *text, size_t bytes)
{
    struct if_nameindex *list = if_nameindex();
    size_t used = 0;

    text[0] = 0;
    for (struct if_nameindex *i = list; i && i->if_index; i++)
        if (used + strlen(i->if_name) + 3 < bytes)
            used += (size_t)snprintf(text + used, bytes - used, "%s%s", used ? ", " : "", i->if_name);
    if (list)
        if_freenameindex(list);
}

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

/* Marks the file descriptors that are open now. */
static void open_fds(uint8_t map[FDS_MAX])
{
    for (int fd = 0; fd < FDS_MAX; fd++)
        map[fd] = fcntl(fd, F_GETFD) != -1;
}

/* The packet sockets that were opened since `before`: readable when frames wait, so an idle switch sleeps on
 * them. */
static void find_bells(struct by_port *port, const uint8_t before[FDS_MAX])
{
    for (int fd = 0; fd < FDS_MAX && port->bell_count < BY_PORT_BELLS; fd++) {
        int domain = 0;
        socklen_t size = sizeof domain;

        if (before[fd] || getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) != 0)
            continue;
        if (domain == AF_PACKET || domain == AF_XDP)
            port->bells[port->bell_count++] = fd;
    }
}

/* Reads the MTU and brings the interface up. */
static int ready_interface(struct by_port *port)
{
    struct ifreq request = {0};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    int result = 0;

    if (fd < 0) {
        by_say("--iface %s: no socket: %s", port->name, strerror(errno));
        return BY_EIO;
    }
    snprintf(request.ifr_name, sizeof request.ifr_name, "%.*s", IFNAMSIZ - 1, port->name);
    if (ioctl(fd, SIOCGIFMTU, &request) != 0) {
        by_say("--iface %s: MTU: %s", port->name, strerror(errno));
        result = BY_EIO;
        goto out;
    }
    port->mtu = (uint16_t)(request.ifr_mtu > 65535 ? 65535 : request.ifr_mtu);
    if (ioctl(fd, SIOCGIFFLAGS, &request) != 0 || (request.ifr_flags & IFF_UP))
        goto out;
    request.ifr_flags |= IFF_UP;
    if (ioctl(fd, SIOCSIFFLAGS, &request) != 0) {
        by_say("--iface %s is down and cannot be brought up: %s; `ip link set %s up`", port->name,
               strerror(errno), port->name);
        result = errno == EPERM ? BY_EPERM : BY_EIO;
    }
out:
    close(fd);
    return result;
}

/* May this process open a raw socket? */
static int check_raw(const char *name)
{
    int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);

    if (fd < 0) {
        by_say("--iface %s: no right to open raw sockets (%s): run as root, or give the program CAP_NET_RAW, "
               "CAP_NET_ADMIN and CAP_BPF",
               name, strerror(errno));
        return BY_EPERM;
    }
    close(fd);
    return 0;
}

static int check_one(const struct by_port_spec *spec)
{
    char path[320], existing[512];

    if (spec->kind == BY_PORT_IFACE && if_nametoindex(spec->text) == 0) {
        list_interfaces(existing, sizeof existing);
        by_say("--iface %s: there is no such interface; there are: %s", spec->text, existing);
        return BY_ENOENT;
    }
    if (spec->kind == BY_PORT_IFACE)
        return check_raw(spec->text);
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
    bool jumbo;
    int result = ready_interface(port);

    if (result != 0)
        return result;
    if (driver == BY_DRIVER_AF_XDP && port->mtu > AF_XDP_MTU_MAX) {
        by_say("--iface %s: MTU %u does not fit a frame of net_af_xdp (at most %u): use --driver af_packet "
               "or a smaller MTU",
               port->name, port->mtu, AF_XDP_MTU_MAX);
        return BY_ELIMIT;
    }
    if (driver == BY_DRIVER_AUTO)
        driver = BY_DRIVER_AF_PACKET;
    port->driver = (uint8_t)driver;
    if (driver == BY_DRIVER_AF_XDP) {
        snprintf(device, sizeof device, "net_af_xdp%u", index);
        snprintf(arguments, sizeof arguments, "iface=%s,start_queue=0,queue_count=1", port->name);
    } else {
        jumbo = port->mtu > SMALL_MTU_MAX;
        snprintf(device, sizeof device, "net_af_packet%u", index);
        snprintf(arguments, sizeof arguments,
                 "iface=%s,qpairs=1,framesz=%u,blocksz=%u,framecnt=%u,qdisc_bypass=1", port->name,
                 jumbo ? JUMBO_FRAME_BYTES : RING_FRAME_BYTES, jumbo ? JUMBO_BLOCK_BYTES : RING_BLOCK_BYTES,
                 jumbo ? JUMBO_FRAMES : RING_FRAMES);
    }
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
    uint8_t before[FDS_MAX];
    int result;

    *port = (struct by_port){.kind = spec->kind};
    snprintf(port->name, sizeof port->name, "%s", spec->text);
    open_fds(before);
    if (spec->kind == BY_PORT_IFACE)
        result = probe_interface(port, index, driver);
    else if (spec->kind == BY_PORT_VDEV)
        result = probe_vdev(port, spec->text);
    else
        result = probe_pci(port, spec->text);
    if (result != 0)
        return result;
    if (port->kind != BY_PORT_IFACE && rte_eth_dev_get_mtu(port->id, &port->mtu) != 0)
        port->mtu = 1500;
    find_bells(port, before);
    return 0;
}

/* Device settings that this port can take. */
static void choose_config(struct by_port *port, const struct rte_eth_dev_info *info,
                          struct rte_eth_conf *config)
{
    uint32_t overhead = RTE_ETHER_HDR_LEN + RTE_ETHER_CRC_LEN;

    *config = (struct rte_eth_conf){0};
    config->txmode.offloads = info->tx_offload_capa & RTE_ETH_TX_OFFLOAD_MULTI_SEGS;
    port->multi_segs = config->txmode.offloads != 0;
    if (port->kind == BY_PORT_IFACE)
        return; /* these drivers know nothing of the interface's MTU; their buffers were sized for it */
    config->rxmode.mtu = port->mtu;
    if (info->max_mtu && config->rxmode.mtu > info->max_mtu)
        config->rxmode.mtu = info->max_mtu;
    if (info->max_rx_pktlen > overhead && config->rxmode.mtu + overhead > info->max_rx_pktlen)
        config->rxmode.mtu = info->max_rx_pktlen - overhead;
}

int by_port_start(struct by_port *port, struct rte_mempool *pool, uint16_t payload_max)
{
    uint8_t before[FDS_MAX];
    struct rte_eth_dev_info info;
    struct rte_eth_conf config;
    uint16_t rx_count = DESCRIPTORS, tx_count = DESCRIPTORS;
    const char *step = "rte_eth_dev_info_get";
    int result;

    if (by_port_payload_max(port) < payload_max) {
        by_say("port %s: a payload of %u bytes needs an MTU of %u, it has %u: raise the MTU or use "
               "--payload-max %u",
               port->name, payload_max, payload_max + BY_PORT_MTU_OVERHEAD, port->mtu,
               by_port_payload_max(port) / 64 * 64);
        return BY_ELIMIT;
    }
    open_fds(before);
    if ((result = rte_eth_dev_info_get(port->id, &info)) != 0)
        goto err;
    choose_config(port, &info, &config);
    step = "rte_eth_dev_configure";
    if ((result = rte_eth_dev_configure(port->id, 1, 1, &config)) != 0)
        goto err;
    step = "rte_eth_dev_adjust_nb_rx_tx_desc";
    if ((result = rte_eth_dev_adjust_nb_rx_tx_desc(port->id, &rx_count, &tx_count)) != 0)
        goto err;
    step = "rte_eth_rx_queue_setup";
    if ((result = rte_eth_rx_queue_setup(port->id, 0, rx_count, SOCKET_ID_ANY, NULL, pool)) != 0)
        goto err;
    step = "rte_eth_tx_queue_setup";
    if ((result = rte_eth_tx_queue_setup(port->id, 0, tx_count, SOCKET_ID_ANY, NULL)) != 0)
        goto err;
    step = "rte_eth_dev_start";
    if ((result = rte_eth_dev_start(port->id)) != 0)
        goto err;
    port->started = true;
    /* Frames carry the addresses of the table, which need not be the device's. A device that cannot do it
     * filters by its own. */
    rte_eth_promiscuous_enable(port->id);
    find_bells(port, before);
    return 0;
err:
    by_say("port %s: %s of %s failed: %s", port->name, step, port->device, rte_strerror(-result));
    return BY_EIO;
}

void by_port_close(struct by_port *port)
{
    if (port->started) {
        rte_eth_dev_stop(port->id);
        port->started = false;
    }
    if (port->hotplugged)
        rte_eal_hotplug_remove("vdev", port->device);
    else if (port->device[0] && port->kind == BY_PORT_PCI && rte_eth_dev_is_valid_port(port->id))
        rte_eth_dev_close(port->id);
    port->hotplugged = false;
    port->device[0] = 0;
}

void by_port_flush(struct by_port *port)
{
    uint16_t done = 0;
    unsigned tries = 0;
    uint64_t bytes[BY_PORT_BURST];

    for (uint16_t i = 0; i < port->queued; i++)
        bytes[i] = port->queue[i]->pkt_len; /* a frame that is sent is no longer ours to read */
    while (done < port->queued) {
        uint16_t sent = rte_eth_tx_burst(port->id, 0, port->queue + done, (uint16_t)(port->queued - done));

        for (uint16_t i = done; i < done + sent; i++)
            port->counters.tx_bytes += bytes[i];
        port->counters.tx_packets += sent;
        done = (uint16_t)(done + sent);
        if (sent == 0 && ++tries == BY_PORT_RETRIES)
            break;
    }
    if (done < port->queued) {
        port->counters.tx_dropped += (uint64_t)(port->queued - done);
        rte_pktmbuf_free_bulk(port->queue + done, (unsigned)(port->queued - done));
    }
    port->queued = 0;
}

void by_port_read(const struct by_port *port, struct by_port_counters *counters)
{
    struct rte_eth_stats stats;

    *counters = port->counters;
    if (port->started && rte_eth_stats_get(port->id, &stats) == 0)
        counters->rx_dropped += stats.imissed + stats.rx_nombuf;
}
