/*
 * Packets over AF_XDP sockets. An XDP program takes the job's packets off the interface before the
 * kernel's stack; all other traffic is unaffected. Frames carry headers made here, with the MAC
 * addresses of the table. One socket per receive queue of each port. Requires root. Thread: the
 * communicator's.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "host-driver/address.h"
#include "host-driver/error.h"
#include "host-driver/image_file.h"
#include "host-driver/neighbour.h"
#include "host-driver/transport.h"
#include "host-driver/xdp_program.h"
#include "offload/base/bytes.h"
#include "offload/linux/xdp_socket.h"
#include "offload/wire/frame.h"
#include "offload/wire/stripe.h"

/* maximum receive queues of one interface */
#define QUEUES_MAX     (BY_TRANSPORT_FDS_MAX / BY_PORTS_MAX)
#define IP_UDP_BYTES   28u
#define ETHERNET_BYTES 14u
/* Capacity of one kernel frame besides its headroom: larger packets arrive in pieces. */
#define WHOLE_BYTES 3400u
#define SEND_TRIES  4u
#define FRAME_BYTES 4096u
#define RX_FRAMES   4096u
#define TX_FRAMES   2048u

struct afxdp {
    struct by_transport base;
    struct by_image_port port[BY_PORTS_MAX];
    struct by_xdp_program program[BY_PORTS_MAX];
    uint32_t interface[BY_PORTS_MAX];      /* indices of the ports' interfaces */
    bool is_learned[BY_PORTS_MAX];         /* the table does not state the peer's MAC address */
    struct by_host_neighbours *neighbours; /* NULL: it states all of them */
    /* sockets bound to the job's address, so that no second process uses it */
    int reserved[BY_PORTS_MAX];
    uint16_t udp_port;
    uint32_t queue_of_port[BY_PORTS_MAX]; /* index of the socket that sends for the port */
    uint32_t socket_count;
    struct by_xdp_socket *sockets[BY_PORTS_MAX * QUEUES_MAX];
    uint32_t next_socket; /* where rx starts; rotates for fairness */
    uint32_t flat_bytes;
    uint8_t *flat; /* BY_RX_BATCH packets that span several frames */
};

/* ---- receive ---- */

static uint32_t rx_socket(struct afxdp *afxdp, struct by_xdp_socket *socket, uint32_t at, uint32_t room,
                          struct by_rx *rx)
{
    struct by_port_counters *counters = &afxdp->base.ports[socket->port];
    uint32_t count = 0;

    while (count < room) {
        uint8_t *flat = afxdp->flat + (size_t)(at + count) * afxdp->flat_bytes;
        const uint8_t *data = NULL;
        int32_t bytes = by_xdp_socket_take(socket, flat, afxdp->flat_bytes, &data);
        struct by_frame frame;

        if (bytes == 0)
            break;
        counters->rx_packets++;
        counters->rx_bytes += bytes > 0 ? (uint32_t)bytes : 0;
        if (bytes < 0 || by_frame_parse(data, (size_t)bytes, &frame) != 0) {
            counters->rx_drop++;
            continue;
        }
        rx[count++] = (struct by_rx){.data = frame.data,
                                     .bytes = frame.bytes,
                                     .port = socket->port,
                                     .src_ip = frame.src_ip,
                                     .dst_ip = frame.dst_ip,
                                     .ecn = frame.ecn};
    }
    return count;
}

static uint32_t afxdp_rx(struct by_transport *transport, struct by_rx rx[BY_RX_BATCH])
{
    struct afxdp *afxdp = (struct afxdp *)transport;
    uint32_t count = 0;

    for (uint32_t i = 0; i < afxdp->socket_count && count < BY_RX_BATCH; i++) {
        struct by_xdp_socket *socket = afxdp->sockets[(afxdp->next_socket + i) % afxdp->socket_count];

        count += rx_socket(afxdp, socket, count, BY_RX_BATCH - count, rx + count);
    }
    if (afxdp->socket_count > 0)
        afxdp->next_socket = (afxdp->next_socket + 1) % afxdp->socket_count;
    return count;
}

static void afxdp_rx_done(struct by_transport *transport)
{
    struct afxdp *afxdp = (struct afxdp *)transport;

    for (uint32_t i = 0; i < afxdp->socket_count; i++)
        by_xdp_socket_refill(afxdp->sockets[i]);
}

/* ---- send ---- */

/* Returns the MAC address to which a packet must be sent, or NULL: it is not known yet. */
static const uint8_t *next_mac(struct afxdp *afxdp, const struct by_tx *tx)
{
    const struct by_image_port *port = &afxdp->port[tx->port];

    if (!afxdp->is_learned[tx->port])
        return port->peer_mac;
    return by_host_neighbour(afxdp->neighbours, afxdp->interface[tx->port],
                             port->peer_ip != 0 ? port->peer_ip : tx->dst_ip);
}

static void send_one(struct afxdp *afxdp, const struct by_tx *tx)
{
    struct by_xdp_socket *socket = afxdp->sockets[afxdp->queue_of_port[tx->port]];
    struct by_port_counters *counters = &afxdp->base.ports[tx->port];
    const struct by_image_port *port = &afxdp->port[tx->port];
    uint8_t headers[BY_FRAME_HEADER_BYTES];
    struct by_frame frame = {.src_ip = port->own_ip,
                             .dst_ip = tx->dst_ip,
                             .src_port =
                                 by_source_port(by_get32(tx->header + BY_HEADER_AT_JOB),
                                                by_get32(tx->header + BY_HEADER_AT_SEQ), tx->udp_port),
                             .dst_port = tx->udp_port,
                             .ecn = tx->ecn,
                             .bytes = (uint16_t)(BY_WIRE_HEADER_BYTES + tx->payload_bytes)};
    struct by_xdp_piece pieces[3] = {{headers, sizeof(headers)},
                                     {tx->header, BY_WIRE_HEADER_BYTES},
                                     {by_tx_payload(tx), tx->payload_bytes}};
    const uint8_t *mac = next_mac(afxdp, tx);

    if (mac == NULL) {
        counters->tx_drop++;
        afxdp->base.last_errno = EHOSTUNREACH;
        afxdp->base.last_errno_port = tx->port;
        return;
    }
    memcpy(frame.src_mac, port->own_mac, sizeof(frame.src_mac));
    memcpy(frame.dst_mac, mac, sizeof(frame.dst_mac));
    by_frame_build(&frame, headers);
    for (unsigned tries = 0; by_xdp_socket_put(socket, pieces, tx->payload_bytes > 0 ? 3 : 2) != 0; tries++) {
        if (tries == SEND_TRIES) {
            counters->tx_drop++;
            return;
        }
        /* the receiver must free frames first, and may need this core */
        usleep(50);
    }
    counters->tx_packets++;
    counters->tx_bytes += by_frame_bytes(frame.bytes);
}

static void afxdp_tx(struct by_transport *transport, const struct by_tx *const *tx, uint32_t count,
                     const struct by_rx *rx)
{
    struct afxdp *afxdp = (struct afxdp *)transport;

    (void)rx;
    for (uint32_t i = 0; i < count; i++) {
        if (tx[i]->port >= transport->port_count)
            continue;
        if (tx[i]->kind != BY_TX_SEND)
            transport->ports[tx[i]->port]
                .tx_drop++; /* the program accepts only packets to this host: hosts do not relay */
        else
            send_one(afxdp, tx[i]);
    }
    for (uint32_t i = 0; i < afxdp->socket_count; i++)
        by_xdp_socket_flush(afxdp->sockets[i]);
}

static uint32_t afxdp_fds(struct by_transport *transport, struct pollfd *fds)
{
    struct afxdp *afxdp = (struct afxdp *)transport;

    for (uint32_t i = 0; i < afxdp->socket_count; i++) {
        fds[i].fd = by_xdp_socket_fd(afxdp->sockets[i]);
        fds[i].events = POLLIN;
    }
    return afxdp->socket_count;
}

/* ---- open and close ---- */

static void afxdp_close(struct by_transport *transport)
{
    struct afxdp *afxdp = (struct afxdp *)transport;

    for (uint32_t i = 0; i < transport->port_count; i++) {
        /* first, so that the kernel receives all further packets */
        by_xdp_program_detach(&afxdp->program[i]);
        if (afxdp->reserved[i] >= 0)
            close(afxdp->reserved[i]);
    }
    for (uint32_t i = 0; i < afxdp->socket_count; i++)
        by_xdp_socket_free(afxdp->sockets[i]);
    by_host_neighbours_close(afxdp->neighbours);
    free(afxdp->flat);
    free(afxdp);
}

static const struct by_transport_ops afxdp_ops = {"afxdp",   afxdp_rx,    afxdp_rx_done, afxdp_tx,
                                                  afxdp_fds, afxdp_close, NULL};

/* Compares addresses: an interface may have the name in the table, yet not be the table's
 * interface. */
static int check_address(const struct by_image_port *port)
{
    struct ifaddrs *all = NULL;
    int found = 0;
    char ip[BY_IP_TEXT];

    if (getifaddrs(&all) != 0)
        return by_fail(BY_EIO, "cannot list the network interfaces: %s", strerror(errno));
    for (const struct ifaddrs *each = all; each != NULL && !found; each = each->ifa_next) {
        if (each->ifa_addr == NULL || each->ifa_addr->sa_family != AF_INET ||
            strcmp(each->ifa_name, port->name) != 0)
            continue;
        found = ntohl(((const struct sockaddr_in *)(const void *)each->ifa_addr)->sin_addr.s_addr) ==
                port->own_ip;
    }
    freeifaddrs(all);
    if (found)
        return 0;
    by_ip_text(port->own_ip, ip);
    return by_fail(BY_ENOENT, "no interface %s with address %s; the table assigns both to this host",
                   port->name, ip);
}

/* Checks that the interface fits the table, and counts its queues. */
static int look_at(const struct by_image_port *port, uint16_t payload_max, uint32_t *queues)
{
    struct ethtool_channels channels = {.cmd = ETHTOOL_GCHANNELS};
    struct ifreq request = {0};
    uint32_t needed = payload_max + BY_WIRE_HEADER_BYTES + IP_UDP_BYTES;
    int error = check_address(port);
    int fd;

    if (error != 0)
        return error;
    fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return by_fail(BY_EIO, "no socket: %s", strerror(errno));
    memcpy(request.ifr_name, port->name, strnlen(port->name, IFNAMSIZ - 1));
    if (ioctl(fd, SIOCGIFMTU, &request) != 0)
        error = by_fail(BY_ENOENT, "interface %s of the table: %s", port->name, strerror(errno));
    else if ((uint32_t)request.ifr_mtu < needed)
        error =
            by_fail(BY_ELIMIT,
                    "%s has an MTU of %d; chunks of %u bytes need %u: raise it, or make tables with --mtu %d",
                    port->name, request.ifr_mtu, payload_max, needed, request.ifr_mtu);
    *queues = 1;
    request.ifr_data = (void *)&channels;
    if (error == 0 && ioctl(fd, SIOCETHTOOL, &request) == 0 &&
        channels.rx_count + channels.combined_count > 0)
        *queues = channels.rx_count + channels.combined_count;
    close(fd);
    if (error == 0 && *queues > QUEUES_MAX)
        error = by_fail(BY_ELIMIT, "%s has %u receive queues, the limit is %u: reduce them with 'ethtool -L'",
                        port->name, *queues, QUEUES_MAX);
    return error;
}

static int reserve(struct afxdp *afxdp, uint32_t index)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr.s_addr = htonl(afxdp->port[index].own_ip),
                                  .sin_port = htons(afxdp->udp_port)};
    int least = 1;
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    char ip[BY_IP_TEXT];

    afxdp->reserved[index] = fd;
    if (fd < 0)
        return by_fail(BY_EIO, "no socket: %s", strerror(errno));
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &least, sizeof(least)); /* never read */
    if (bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0)
        return 0;
    by_ip_text(afxdp->port[index].own_ip, ip);
    return by_fail(errno == EADDRINUSE ? BY_EBUSY : BY_EIO,
                   "%s:%u (%s) cannot be bound: %s; does another process run this job here?", ip,
                   afxdp->udp_port, afxdp->port[index].name, strerror(errno));
}

/* Sets a readable reason for the missing socket. */
static int refuse_socket(const struct by_xdp_socket_config *config, const char *step, int error)
{
    if (error == -EBUSY)
        return by_fail(BY_EBUSY, "%s: receive queue %u has an AF_XDP socket already; another process uses it",
                       config->interface, config->queue);
    if (error == -EINVAL && config->frags)
        return by_fail(BY_EUNSUPPORTED,
                       "%s: no AF_XDP socket for frames larger than a page; it requires Linux 6.6",
                       config->interface);
    return by_fail(error == -EPERM    ? BY_EPERM
                   : error == -ENOMEM ? BY_ENOMEM
                                      : BY_EIO,
                   "%s: no AF_XDP on queue %u (%s): %s; it requires CAP_NET_RAW (root), and locked memory "
                   "(ulimit -l)",
                   config->interface, config->queue, step, strerror(-error));
}

static int add_socket(struct afxdp *afxdp, uint32_t index, uint32_t queue, bool frags)
{
    const struct by_xdp_socket_config config = {.interface = afxdp->port[index].name,
                                                .queue = queue,
                                                .frame_bytes = FRAME_BYTES,
                                                .rx_frames = RX_FRAMES,
                                                .tx_frames = TX_FRAMES,
                                                .frags = frags};
    struct by_xdp_socket *socket;
    const char *step;
    int error = by_xdp_socket_open(&socket, &config, &step);

    if (error != 0)
        return refuse_socket(&config, step, error);
    socket->port = (uint16_t)index;
    if (queue == 0)
        afxdp->queue_of_port[index] = afxdp->socket_count;
    afxdp->sockets[afxdp->socket_count++] = socket;
    return by_xdp_program_add(&afxdp->program[index], queue, by_xdp_socket_fd(socket));
}

static bool is_zero(const uint8_t mac[6])
{
    static const uint8_t none[6] = {0};

    return memcmp(mac, none, sizeof(none)) == 0;
}

/* Completes the MAC addresses that the table does not state: the own one from the interface, the
 * neighbour's from the kernel, which is asked early. */
static int find_macs(struct afxdp *afxdp, uint32_t index)
{
    struct by_image_port *port = &afxdp->port[index];
    int error = is_zero(port->own_mac) ? by_host_mac(port->name, port->own_mac) : 0;

    afxdp->interface[index] = if_nametoindex(port->name);
    afxdp->is_learned[index] = is_zero(port->peer_mac);
    if (error == 0 && afxdp->is_learned[index] && afxdp->neighbours == NULL)
        error = by_host_neighbours_open(&afxdp->neighbours);
    if (error == 0 && afxdp->is_learned[index] && port->peer_ip != 0)
        by_host_neighbour(afxdp->neighbours, afxdp->interface[index], port->peer_ip);
    return error;
}

static int open_port(struct afxdp *afxdp, uint32_t index, const struct by_transport_config *config)
{
    const struct by_image_port *port = &afxdp->port[index];
    struct by_xdp_steer steer = {
        .interface = port->name,
        .interface_index = if_nametoindex(port->name),
        .own_ip = port->own_ip,
        .udp_port = config->udp_port,
        .frags = config->payload_max + BY_WIRE_HEADER_BYTES + IP_UDP_BYTES + ETHERNET_BYTES > WHOLE_BYTES,
        .mode = config->settings->value[BY_SETTING_XDP_MODE],
    };
    uint32_t queues = 0;
    int error;

    if (strcmp(steer.mode, "auto") != 0 && strcmp(steer.mode, "native") != 0 &&
        strcmp(steer.mode, "generic") != 0)
        return by_fail(BY_EINVAL, "BANYAN_XDP_MODE is '%s'; use auto, native or generic", steer.mode);
    error = look_at(port, config->payload_max, &queues);
    if (error == 0)
        error = by_host_vlan_check(port->name, port->vlan);
    if (error == 0)
        error = find_macs(afxdp, index);
    if (error == 0)
        error = reserve(afxdp, index);
    if (error == 0)
        error = by_xdp_program_attach(&afxdp->program[index], &steer);
    for (uint32_t queue = 0; error == 0 && queue < queues; queue++)
        error = add_socket(afxdp, index, queue, steer.frags);
    return error;
}

static int open_ports(struct afxdp *afxdp, const struct by_transport_config *config)
{
    struct by_image_header header;
    const char *mode = "native";
    int error = by_image_ports_check(config->image);

    if (error != 0)
        return error;
    by_image_header(config->image, &header);
    for (uint32_t i = 0; error == 0 && i < header.count[BY_SECTION_PORT]; i++) {
        by_image_port(config->image, i, &afxdp->port[i]);
        error = open_port(afxdp, i, config);
        if (error == 0 && !afxdp->program[i].native)
            mode = "generic, slower: the driver does not support native programs";
    }
    afxdp->base.port_count = header.count[BY_SECTION_PORT];
    afxdp->base.inflight_max =
        RX_FRAMES / (1 + (config->payload_max + BY_WIRE_HEADER_BYTES + BY_FRAME_OVERHEAD) / FRAME_BYTES);
    snprintf(afxdp->base.note, sizeof(afxdp->base.note), "%s", mode);
    return error;
}

int by_afxdp_open(const struct by_transport_config *config, struct by_transport **transport)
{
    uint32_t largest = config->payload_max > BY_ERR_BYTES ? config->payload_max : BY_ERR_BYTES;
    struct afxdp *afxdp;
    int error;

    error = by_ipv6_refuse(config->image, "afxdp");
    if (error != 0)
        return error;
    if (geteuid() != 0)
        return by_fail(BY_EPERM, "AF_XDP requires root (CAP_NET_ADMIN, CAP_NET_RAW, CAP_BPF)");
    afxdp = calloc(1, sizeof(*afxdp));
    if (afxdp == NULL)
        return by_fail(BY_ENOMEM, "no memory for a transport: %zu bytes", sizeof(*afxdp));
    for (uint32_t i = 0; i < BY_PORTS_MAX; i++)
        afxdp->program[i].link_fd = afxdp->reserved[i] = -1;
    afxdp->base.ops = &afxdp_ops;
    afxdp->udp_port = config->udp_port;
    afxdp->flat_bytes = (BY_FRAME_OVERHEAD + BY_WIRE_HEADER_BYTES + largest + 63u) / 64u * 64u;
    afxdp->flat = aligned_alloc(64, (size_t)afxdp->flat_bytes * BY_RX_BATCH);
    error = afxdp->flat != NULL ? open_ports(afxdp, config)
                                : by_fail(BY_ENOMEM, "no memory for %u packets", BY_RX_BATCH);
    if (error != 0) {
        afxdp->base.port_count = BY_PORTS_MAX;
        afxdp_close(&afxdp->base);
        return error;
    }
    *transport = &afxdp->base;
    return 0;
}
