/*
 * Packets over plain UDP sockets: one for each port of the table, bound to the port's own address and
 * interface, in batches of sendmmsg and recvmmsg. Payloads go from the user's buffer to the kernel without a
 * copy of ours. Needs no privileges. One thread, that of the communicator.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "host-driver/error.h"
#include "host-driver/image_file.h"
#include "host-driver/transport.h"

#define TX_BATCH     64u
#define SOCKET_BYTES (8 << 20) /* asked for; the kernel gives less to users without privileges */
#define LEAD_BYTES   24u       /* before a packet, so that its payload starts on a cache line */
#define SKB_BYTES                                                                                            \
    768u /* what the kernel charges for a packet beside its bytes (sk_buff, shared info), about */
#define SEND_WAIT_MS  2 /* patience with a full send buffer; after that the packets are dropped */
#define IP_UDP_BYTES  28u
#define CONTROL_BYTES 32u

struct udp {
    struct by_transport base;
    int fd[BY_PORTS_MAX];
    uint32_t own_ip[BY_PORTS_MAX];
    uint8_t tos[BY_PORTS_MAX];
    uint32_t next_port; /* where rx begins, so that none starves */
    uint32_t buffer_bytes;
    uint8_t *buffers;
    struct mmsghdr rx_message[BY_RX_BATCH];
    struct iovec rx_piece[BY_RX_BATCH];
    struct sockaddr_in rx_from[BY_RX_BATCH];
    uint8_t rx_control[BY_RX_BATCH][CONTROL_BYTES] __attribute__((aligned(8)));
    struct mmsghdr tx_message[TX_BATCH];
    struct iovec tx_piece[TX_BATCH][2];
    struct sockaddr_in tx_to[TX_BATCH];
};

static uint8_t ecn_of(struct msghdr *message)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c != NULL; c = CMSG_NXTHDR(message, c))
        if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_TOS)
            return *CMSG_DATA(c) & 3u;
    return 0;
}

/* Reads up to `room` packets from one port into rx; `at` is the first free buffer. */
static uint32_t rx_port(struct udp *udp, uint16_t port, uint32_t at, uint32_t room, struct by_rx *rx)
{
    int got = recvmmsg(udp->fd[port], udp->rx_message + at, room, MSG_DONTWAIT, NULL);
    struct by_port_counters *counters = &udp->base.ports[port];
    uint32_t count = 0;

    for (int i = 0; i < got; i++) {
        struct mmsghdr *message = &udp->rx_message[at + (uint32_t)i];

        counters->rx_packets++;
        counters->rx_bytes += by_frame_bytes(message->msg_len);
        if ((message->msg_hdr.msg_flags & MSG_TRUNC) != 0) {
            counters->rx_drop++;
        } else {
            rx[count].data = udp->rx_piece[at + (uint32_t)i].iov_base;
            rx[count].bytes = (uint16_t)message->msg_len;
            rx[count].port = port;
            rx[count].src_ip = ntohl(udp->rx_from[at + (uint32_t)i].sin_addr.s_addr);
            rx[count].dst_ip = udp->own_ip[port];
            rx[count].ecn = ecn_of(&message->msg_hdr);
            count++;
        }
        message->msg_hdr.msg_namelen = sizeof(struct sockaddr_in);
        message->msg_hdr.msg_controllen = CONTROL_BYTES;
    }
    return count;
}

static uint32_t udp_rx(struct by_transport *transport, struct by_rx rx[BY_RX_BATCH])
{
    struct udp *udp = (struct udp *)transport;
    uint32_t count = 0;

    for (uint32_t i = 0; i < transport->port_count && count < BY_RX_BATCH; i++) {
        uint32_t port = (udp->next_port + i) % transport->port_count;

        count += rx_port(udp, (uint16_t)port, count, BY_RX_BATCH - count, rx + count);
    }
    udp->next_port = transport->port_count > 0 ? (udp->next_port + 1) % transport->port_count : 0;
    return count;
}

static void udp_rx_done(struct by_transport *transport)
{
    (void)transport;
}

static void set_ecn(struct udp *udp, uint16_t port, uint8_t ecn)
{
    int tos = ecn;

    if (udp->tos[port] == ecn)
        return;
    udp->tos[port] = ecn;
    setsockopt(udp->fd[port], IPPROTO_IP, IP_TOS, &tos, sizeof(tos));
}

/* Sends messages [0, count) of one port; waits a little for a full buffer, and drops what the system refuses.
 */
static void flush(struct udp *udp, uint16_t port, uint32_t count)
{
    struct by_port_counters *counters = &udp->base.ports[port];
    unsigned waits = 0;
    uint32_t at = 0;

    while (at < count) {
        int sent = sendmmsg(udp->fd[port], udp->tx_message + at, count - at, 0);

        for (int i = 0; i < sent; i++) {
            counters->tx_packets++;
            counters->tx_bytes += by_frame_bytes(udp->tx_message[at + (uint32_t)i].msg_len);
        }
        if (sent > 0) {
            at += (uint32_t)sent;
            continue;
        }
        if (errno == EINTR)
            continue;
        if ((errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS) && waits < SEND_WAIT_MS) {
            struct pollfd writable = {.fd = udp->fd[port], .events = POLLOUT};

            poll(&writable, 1, 1);
            waits++;
            continue;
        }
        udp->base.last_errno = errno;
        udp->base.last_errno_port = port;
        counters->tx_drop++;
        at++;
    }
}

static void udp_tx(struct by_transport *transport, const struct by_tx *const *tx, uint32_t count,
                   const struct by_rx *rx)
{
    struct udp *udp = (struct udp *)transport;
    uint32_t batch = 0;
    uint16_t port = 0;

    (void)rx;
    for (uint32_t i = 0; i < count; i++) {
        const struct by_tx *packet = tx[i];

        if (packet->port >= transport->port_count)
            continue;
        if (packet->kind != BY_TX_SEND) {
            transport->ports[packet->port]
                .tx_drop++; /* a socket cannot send from another's address: hosts do not relay */
            continue;
        }
        if (batch == TX_BATCH || (batch > 0 && (packet->port != port || packet->ecn != udp->tos[port]))) {
            flush(udp, port, batch);
            batch = 0;
        }
        port = packet->port;
        set_ecn(udp, port, packet->ecn);
        udp->tx_to[batch].sin_addr.s_addr = htonl(packet->dst_ip);
        udp->tx_to[batch].sin_port = htons(packet->udp_port);
        udp->tx_piece[batch][0].iov_base = (void *)(uintptr_t)packet->header;
        udp->tx_piece[batch][1].iov_base = (void *)(uintptr_t)by_tx_payload(packet);
        udp->tx_piece[batch][1].iov_len = packet->payload_bytes;
        batch++;
    }
    if (batch > 0)
        flush(udp, port, batch);
}

static uint32_t udp_fds(struct by_transport *transport, struct pollfd *fds)
{
    struct udp *udp = (struct udp *)transport;

    for (uint32_t i = 0; i < transport->port_count; i++) {
        fds[i].fd = udp->fd[i];
        fds[i].events = POLLIN;
    }
    return transport->port_count;
}

static void udp_close(struct by_transport *transport)
{
    struct udp *udp = (struct udp *)transport;

    for (uint32_t i = 0; i < transport->port_count; i++)
        if (udp->fd[i] >= 0)
            close(udp->fd[i]);
    free(udp->buffers);
    free(udp);
}

static const struct by_transport_ops udp_ops = {"udp", udp_rx, udp_rx_done, udp_tx, udp_fds, udp_close};

/* As large as the kernel gives it; returns the size that counts. */
static uint32_t size_buffers(int fd)
{
    int wanted = SOCKET_BYTES;
    int size = 0;
    socklen_t bytes = sizeof(size);

    if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &wanted, sizeof(wanted)) != 0)
        setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &wanted, sizeof(wanted));
    if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &wanted, sizeof(wanted)) != 0)
        setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &wanted, sizeof(wanted));
    getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, &bytes);
    return (uint32_t)size;
}

static int check_mtu(int fd, const struct by_image_port *port, uint16_t payload_max)
{
    struct ifreq request = {0};
    uint32_t needed = payload_max + BY_WIRE_HEADER_BYTES + IP_UDP_BYTES;

    memcpy(request.ifr_name, port->name, strnlen(port->name, IFNAMSIZ - 1));
    if (ioctl(fd, SIOCGIFMTU, &request) != 0)
        return by_fail(BY_ENOENT, "interface %s of the table: %s", port->name, strerror(errno));
    if ((uint32_t)request.ifr_mtu < needed)
        return by_fail(
            BY_ELIMIT,
            "%s has an MTU of %d; chunks of %u bytes need %u: raise it, or make tables with --mtu %d",
            port->name, request.ifr_mtu, payload_max, needed, request.ifr_mtu);
    return 0;
}

static int open_port(struct udp *udp, uint32_t index, const struct by_image_port *port,
                     const struct by_transport_config *config)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_addr.s_addr = htonl(port->own_ip), .sin_port = htons(config->udp_port)};
    int one = 1;
    int discover = IP_PMTUDISC_DO;
    char ip[16];
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    uint32_t chunks;
    int error;

    udp->fd[index] = fd;
    if (fd < 0)
        return by_fail(BY_EIO, "no socket for %s: %s", port->name, strerror(errno));
    error = check_mtu(fd, port, config->payload_max);
    if (error != 0)
        return error;
    by_ip_text(port->own_ip, ip);
    if (bind(fd, (struct sockaddr *)&address, sizeof(address)) != 0)
        return by_fail(errno == EADDRINUSE      ? BY_EBUSY
                       : errno == EADDRNOTAVAIL ? BY_ENOENT
                                                : BY_EIO,
                       "%s:%u (%s) cannot be bound: %s%s", ip, config->udp_port, port->name, strerror(errno),
                       errno == EADDRINUSE      ? "; does another process run this job here?"
                       : errno == EADDRNOTAVAIL ? "; the table gives this host that address"
                                                : "");
    if (setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, port->name, (socklen_t)strlen(port->name)) != 0 &&
        errno != EPERM)
        return by_fail(BY_EIO, "cannot bind to interface %s: %s", port->name, strerror(errno));
    setsockopt(fd, SOL_SOCKET, SO_NO_CHECK, &one, sizeof(one)); /* the header's tag and psum protect us */
    setsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER, &discover, sizeof(discover));
    setsockopt(fd, IPPROTO_IP, IP_RECVTOS, &one, sizeof(one));
    udp->own_ip[index] = port->own_ip;
    chunks = size_buffers(fd) / (config->payload_max + BY_WIRE_HEADER_BYTES + SKB_BYTES);
    if (udp->base.inflight_max == 0 || chunks < udp->base.inflight_max)
        udp->base.inflight_max = chunks > 0 ? chunks : 1;
    return 0;
}

static int prepare(struct udp *udp, uint16_t payload_max)
{
    uint32_t largest = payload_max > BY_ERR_BYTES ? payload_max : BY_ERR_BYTES;

    udp->buffer_bytes = (LEAD_BYTES + BY_WIRE_HEADER_BYTES + largest + 63u) / 64u * 64u;
    udp->buffers = aligned_alloc(64, (size_t)udp->buffer_bytes * BY_RX_BATCH);
    if (udp->buffers == NULL)
        return by_fail(BY_ENOMEM, "no memory for %u packets of %u bytes", BY_RX_BATCH, udp->buffer_bytes);
    for (uint32_t i = 0; i < BY_RX_BATCH; i++) {
        udp->rx_piece[i].iov_base = udp->buffers + (size_t)i * udp->buffer_bytes + LEAD_BYTES;
        udp->rx_piece[i].iov_len = udp->buffer_bytes - LEAD_BYTES;
        udp->rx_message[i].msg_hdr = (struct msghdr){.msg_name = &udp->rx_from[i],
                                                     .msg_namelen = sizeof(udp->rx_from[i]),
                                                     .msg_iov = &udp->rx_piece[i],
                                                     .msg_iovlen = 1,
                                                     .msg_control = udp->rx_control[i],
                                                     .msg_controllen = CONTROL_BYTES};
    }
    for (uint32_t i = 0; i < TX_BATCH; i++) {
        udp->tx_to[i].sin_family = AF_INET;
        udp->tx_piece[i][0].iov_len = BY_WIRE_HEADER_BYTES;
        udp->tx_message[i].msg_hdr = (struct msghdr){.msg_name = &udp->tx_to[i],
                                                     .msg_namelen = sizeof(udp->tx_to[i]),
                                                     .msg_iov = udp->tx_piece[i],
                                                     .msg_iovlen = 2};
    }
    return 0;
}

int by_udp_open(const struct by_transport_config *config, struct by_transport **transport)
{
    struct by_image_header header;
    struct udp *udp = calloc(1, sizeof(*udp));
    int error;

    if (udp == NULL)
        return by_fail(BY_ENOMEM, "no memory for a transport: %zu bytes", sizeof(*udp));
    by_image_header(config->image, &header);
    udp->base.ops = &udp_ops;
    for (uint32_t i = 0; i < BY_PORTS_MAX; i++)
        udp->fd[i] = -1;
    error = prepare(udp, config->payload_max);
    for (uint32_t i = 0; error == 0 && i < header.count[BY_SECTION_PORT]; i++) {
        struct by_image_port port;

        by_image_port(config->image, i, &port);
        udp->base.port_count = i + 1;
        error = open_port(udp, i, &port, config);
    }
    if (error != 0) {
        udp_close(&udp->base);
        return error;
    }
    /* Trees spread over the ports, so their buffers add up. */
    udp->base.inflight_max *= udp->base.port_count;
    *transport = &udp->base;
    return 0;
}
