/*
 * Packets over plain UDP sockets: one per port of the table, bound to the port's own address and
 * interface, with sendmmsg and recvmmsg. With segmentation offload, packets of equal size to one
 * receiver are a single datagram for the kernel, which the link cuts into packets; a batch received
 * as one datagram is read as one (udp(7): UDP_SEGMENT, UDP_GRO). Payloads pass from the user's
 * buffer to the kernel without a copy in this process. Requires no privileges. Thread: the
 * communicator's.
 */
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <poll.h>
#include <stdbool.h>
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
#include "host-driver/segments.h"
#include "host-driver/transport.h"
#include "offload/linux/feature.h"
#include "offload/linux/ring.h"
#include "offload/wire/frame.h"

#define TX_BATCH    64u
#define LEAD_BYTES  24u    /* bytes before a packet, so that its payload is cache-line aligned */
#define BATCH_BYTES 65536u /* size of the largest datagram, in whole cache lines */
/* messages per receive call when batches arrive: few enough for the cache */
#define BATCHES_RX 1u
/* approximate kernel cost of a packet besides its bytes (sk_buff, shared info) */
#define SKB_BYTES 768u
/* timeout for a full send buffer; then the packets are dropped */
#define SEND_WAIT_MS 2
#define IP_UDP_BYTES 28u
#define RING_FRAMES  1024u /* per port, if a ring receives instead of the socket */
#define RING_YIELDS  10u   /* empty polls of rings that yield before a sleep */

struct udp {
    struct by_transport base;
    int fd[BY_PORTS_MAX];
    struct by_ring *ring[BY_PORTS_MAX]; /* on all ports or none */
    bool rings, rings_wanted;
    bool dozed[BY_PORTS_MAX]; /* the socket may hold a frame that only served to wake this thread */
    uint32_t own_ip[BY_PORTS_MAX];
    struct by_ipv6_book book; /* of the active table */
    uint8_t tos[BY_PORTS_MAX];
    uint32_t next_port; /* where rx starts; rotates for fairness */
    bool segments;      /* a datagram may hold several packets */
    uint32_t rx_limit;  /* messages of the next receive call */
    /* port whose messages [got_at, got_count) are not yet returned, from byte got_offset on */
    uint16_t got_port;
    uint32_t got_at, got_count, got_offset;
    uint8_t *buffers;
    struct mmsghdr rx_message[BY_RX_BATCH];
    struct iovec rx_piece[BY_RX_BATCH];
    union by_host_address rx_from[BY_RX_BATCH];
    uint8_t rx_control[BY_RX_BATCH][BY_SEGMENTS_CONTROL_BYTES] __attribute__((aligned(8)));
    struct mmsghdr tx_message[TX_BATCH];
    struct iovec tx_piece[TX_BATCH * 2];
    uint8_t tx_control[TX_BATCH][BY_SEGMENTS_CONTROL_BYTES] __attribute__((aligned(8)));
    union by_host_address tx_to[TX_BATCH];
    uint32_t tx_ip[TX_BATCH];
};

static uint8_t ecn_of(struct msghdr *message)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c != NULL; c = CMSG_NXTHDR(message, c))
        if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_TOS) {
            return *CMSG_DATA(c) & 3u;
        } else if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_TCLASS) {
            int class;

            memcpy(&class, CMSG_DATA(c), sizeof(class));
            return (uint8_t) class & 3u;
        }
    return 0;
}

/* Returns up to `room` packets of one message, and advances after its last packet. */
static uint32_t open_message(struct udp *udp, uint32_t room, struct by_rx *rx)
{
    uint32_t at = udp->got_at;
    struct mmsghdr *message = &udp->rx_message[at];
    struct by_port_counters *counters = &udp->base.ports[udp->got_port];
    uint32_t stride = by_segments_stride(&message->msg_hdr, message->msg_len);
    bool cut = (message->msg_hdr.msg_flags & MSG_TRUNC) != 0;
    uint8_t ecn = ecn_of(&message->msg_hdr);
    uint32_t from = by_host_address_ip(&udp->rx_from[at], &udp->book);
    uint32_t count = 0;

    do {
        uint32_t left = message->msg_len - udp->got_offset;
        uint32_t size = left < stride ? left : stride;

        counters->rx_packets++;
        counters->rx_bytes += by_packet_bytes(udp->own_ip[udp->got_port], size);
        if (cut || size > UINT16_MAX)
            counters->rx_drop++;
        else
            rx[count++] = (struct by_rx){.data = (uint8_t *)udp->rx_piece[at].iov_base + udp->got_offset,
                                         .bytes = (uint16_t)size,
                                         .port = udp->got_port,
                                         .src_ip = from,
                                         .dst_ip = udp->own_ip[udp->got_port],
                                         .ecn = ecn};
        udp->got_offset += size;
    } while (count < room && udp->got_offset < message->msg_len);
    if (udp->got_offset < message->msg_len)
        return count;
    udp->rx_limit = stride < message->msg_len     ? BATCHES_RX
                    : udp->rx_limit < BY_RX_BATCH ? udp->rx_limit + 1
                                                  : BY_RX_BATCH;
    message->msg_hdr.msg_namelen = sizeof(union by_host_address);
    message->msg_hdr.msg_controllen = BY_SEGMENTS_CONTROL_BYTES;
    udp->got_offset = 0;
    udp->got_at++;
    return count;
}

/* Receives messages from the first port that has some, starting after the last polled port. */
static void fetch(struct udp *udp)
{
    uint32_t ports = udp->base.port_count;

    udp->got_at = udp->got_count = 0;
    for (uint32_t i = 0; i < ports && udp->got_count == 0; i++) {
        uint32_t port = udp->next_port++ % ports;
        int got = recvmmsg(udp->fd[port], udp->rx_message, udp->rx_limit, MSG_DONTWAIT, NULL);

        udp->got_port = (uint16_t)port;
        udp->got_count = got > 0 ? (uint32_t)got : 0;
    }
}

static uint32_t take_frames(struct udp *udp, uint16_t port, uint32_t room, struct by_rx *rx)
{
    struct by_port_counters *counters = &udp->base.ports[port];
    uint32_t count = 0, bytes;
    const uint8_t *data;

    while (count < room && (data = by_ring_take(udp->ring[port], &bytes)) != NULL) {
        struct by_frame frame;

        counters->rx_packets++;
        counters->rx_bytes += bytes;
        if (by_frame_parse(data, bytes, &frame) != 0 && by_ipv6_parse(&udp->book, data, bytes, &frame) != 0)
            counters->rx_drop++;
        else
            rx[count++] = (struct by_rx){.data = frame.data,
                                         .bytes = frame.bytes,
                                         .port = port,
                                         .src_ip = frame.src_ip,
                                         .dst_ip = frame.dst_ip,
                                         .ecn = frame.ecn};
    }
    return count;
}

/* Discards the frame that woke this thread; the ring holds it as well. */
static void forget_waking(struct udp *udp, uint16_t port)
{
    char byte;

    if (!udp->dozed[port])
        return;
    udp->dozed[port] = false;
    if (recv(udp->fd[port], &byte, 1, MSG_DONTWAIT | MSG_TRUNC) < 0)
        return; /* woken by something else */
}

static uint32_t udp_rx(struct by_transport *transport, struct by_rx rx[BY_RX_BATCH])
{
    struct udp *udp = (struct udp *)transport;
    uint32_t count = 0;

    if (udp->rings) {
        for (uint32_t i = 0; i < transport->port_count && count < BY_RX_BATCH; i++) {
            uint16_t port = (uint16_t)(udp->next_port++ % transport->port_count);

            forget_waking(udp, port);
            count += take_frames(udp, port, BY_RX_BATCH - count, rx + count);
        }
        return count;
    }
    if (udp->got_at == udp->got_count)
        fetch(udp);
    while (udp->got_at < udp->got_count && count < BY_RX_BATCH)
        count += open_message(udp, BY_RX_BATCH - count, rx + count);
    return count;
}

static void udp_rx_done(struct by_transport *transport)
{
    struct udp *udp = (struct udp *)transport;

    for (uint32_t i = 0; udp->rings && i < transport->port_count; i++)
        by_ring_return(udp->ring[i]);
}

static void set_ecn(struct udp *udp, uint16_t port, uint8_t ecn)
{
    int tos = ecn;

    if (udp->tos[port] == ecn)
        return;
    udp->tos[port] = ecn;
    if (by_ipv6_is(udp->own_ip[port]))
        setsockopt(udp->fd[port], IPPROTO_IPV6, IPV6_TCLASS, &tos, sizeof(tos));
    else
        setsockopt(udp->fd[port], IPPROTO_IP, IP_TOS, &tos, sizeof(tos));
}

/* Counts the packets of a message, of two pieces each, as sent or as dropped. */
static void count_packets(struct udp *udp, uint16_t port, const struct msghdr *message, bool sent)
{
    struct by_port_counters *counters = &udp->base.ports[port];

    for (size_t i = 0; i < message->msg_iovlen; i += 2) {
        counters->tx_packets += sent;
        counters->tx_drop += !sent;
        if (sent)
            counters->tx_bytes += by_packet_bytes(
                udp->own_ip[port], (uint32_t)(message->msg_iov[i].iov_len + message->msg_iov[i + 1].iov_len));
    }
}

/* Sends the packets of a batch one by one, because the system refused the batch. */
static void send_singly(struct udp *udp, uint16_t port, struct msghdr *batch)
{
    for (size_t i = 0; i < batch->msg_iovlen; i += 2) {
        struct msghdr one = {.msg_name = batch->msg_name,
                             .msg_namelen = batch->msg_namelen,
                             .msg_iov = batch->msg_iov + i,
                             .msg_iovlen = 2};

        count_packets(udp, port, &one, sendmsg(udp->fd[port], &one, 0) >= 0);
    }
}

/* Sends messages [0, count) of one port. Waits a little if the buffer is full, and drops what the
 * system refuses. */
static void flush(struct udp *udp, uint16_t port, uint32_t count)
{
    unsigned waits = 0;
    uint32_t at = 0;

    while (at < count) {
        struct msghdr *first = &udp->tx_message[at].msg_hdr;
        int sent = sendmmsg(udp->fd[port], udp->tx_message + at, count - at, 0);

        for (int i = 0; i < sent; i++)
            count_packets(udp, port, &udp->tx_message[at + (uint32_t)i].msg_hdr, true);
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
        if (first->msg_iovlen > 2 && by_segments_refused(errno)) {
            udp->segments = false;
            send_singly(udp, port, first);
            at++;
            continue;
        }
        udp->base.last_errno = errno;
        udp->base.last_errno_port = port;
        count_packets(udp, port, first, false);
        at++;
    }
}

/* Whether the packet may be appended to the message; all its packets but the last have `stride`
 * bytes. */
static bool fits(const struct udp *udp, uint32_t index, uint32_t stride, uint32_t bytes,
                 const struct by_tx *packet)
{
    const struct msghdr *message = &udp->tx_message[index].msg_hdr;
    const union by_host_address *to = message->msg_name;
    const struct iovec *last = message->msg_iov + message->msg_iovlen - 2;
    uint32_t size = BY_WIRE_HEADER_BYTES + packet->payload_bytes;

    return udp->segments && size <= stride && last[0].iov_len + last[1].iov_len == stride &&
           message->msg_iovlen < 2u * BY_SEGMENTS_MAX && bytes + size <= BY_SEGMENTS_DATAGRAM_MAX &&
           udp->tx_ip[index] == packet->dst_ip && by_host_address_port(to) == packet->udp_port;
}

/* Starts a new message with one packet, whose pieces start at `piece`. The check of the table found
 * each receiver's address. */
static void begin_message(struct udp *udp, uint32_t index, struct iovec *piece, const struct by_tx *packet)
{
    struct msghdr *message = &udp->tx_message[index].msg_hdr;

    udp->tx_ip[index] = packet->dst_ip;
    *message = (struct msghdr){.msg_name = &udp->tx_to[index], .msg_iov = piece};
    message->msg_namelen =
        by_host_address_set(&udp->tx_to[index], &udp->book, packet->dst_ip, packet->udp_port);
}

static void udp_tx(struct by_transport *transport, const struct by_tx *const *tx, uint32_t count,
                   const struct by_rx *rx)
{
    struct udp *udp = (struct udp *)transport;
    uint32_t packets = 0, messages = 0; /* waiting */
    uint32_t stride = 0, bytes = 0;     /* of the last message */
    uint16_t port = 0;

    (void)rx;
    for (uint32_t i = 0; i < count; i++) {
        const struct by_tx *packet = tx[i];
        struct iovec *piece;

        if (packet->port >= transport->port_count)
            continue;
        if (packet->kind != BY_TX_SEND) {
            transport->ports[packet->port]
                .tx_drop++; /* a socket cannot send from a foreign address: hosts do not relay */
            continue;
        }
        if (packets == TX_BATCH || (packets > 0 && (packet->port != port || packet->ecn != udp->tos[port]))) {
            flush(udp, port, messages);
            packets = messages = 0;
        }
        port = packet->port;
        set_ecn(udp, port, packet->ecn);
        piece = &udp->tx_piece[2 * packets++];
        piece[0] = (struct iovec){(void *)(uintptr_t)packet->header, BY_WIRE_HEADER_BYTES};
        piece[1] = (struct iovec){(void *)(uintptr_t)by_tx_payload(packet), packet->payload_bytes};
        if (messages == 0 || !fits(udp, messages - 1, stride, bytes, packet)) {
            begin_message(udp, messages++, piece, packet);
            stride = BY_WIRE_HEADER_BYTES + packet->payload_bytes;
            bytes = 0;
        } else if (bytes == stride) {
            by_segments_mark(&udp->tx_message[messages - 1].msg_hdr, udp->tx_control[messages - 1], stride);
        }
        udp->tx_message[messages - 1].msg_hdr.msg_iovlen += 2;
        bytes += BY_WIRE_HEADER_BYTES + packet->payload_bytes;
    }
    if (messages > 0)
        flush(udp, port, messages);
}

static uint32_t udp_fds(struct by_transport *transport, struct pollfd *fds)
{
    struct udp *udp = (struct udp *)transport;

    for (uint32_t i = 0; i < transport->port_count; i++) {
        fds[i].fd = udp->fd[i];
        if (udp->rings && !by_ring_doze(udp->ring[i]))
            fds[i].fd = by_ring_fd(udp->ring[i]);
        udp->dozed[i] = udp->rings;
        fds[i].events = POLLIN;
    }
    return transport->port_count;
}

static void udp_close(struct by_transport *transport)
{
    struct udp *udp = (struct udp *)transport;

    for (uint32_t i = 0; i < transport->port_count; i++) {
        if (udp->ring[i] != NULL)
            by_ring_close(udp->ring[i]);
        if (udp->fd[i] >= 0)
            close(udp->fd[i]);
    }
    free(udp->buffers);
    free(udp);
}

static void udp_readdress(struct by_transport *transport, const uint8_t *image)
{
    by_image_book(image, &((struct udp *)transport)->book);
}

static const struct by_transport_ops udp_ops = {"udp",   udp_rx,    udp_rx_done,  udp_tx,
                                                udp_fds, udp_close, udp_readdress};

static int check_mtu(int fd, const struct by_image_port *port, uint16_t payload_max)
{
    struct ifreq request = {0};
    uint32_t needed = payload_max + BY_WIRE_HEADER_BYTES + IP_UDP_BYTES +
                      (by_ipv6_is(port->own_ip) ? BY_IPV6_EXTRA_BYTES : 0);

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

/* Whether a datagram of many packets always leaves `interface` as separate packets. A device with
 * segmentation offload cuts it; the kernel cuts it for other devices; on the loopback interface the
 * receiver is a socket, which accepts it. Virtual devices such as veth pass it on uncut, to an
 * unknown receiver. */
static bool link_cuts(int fd, const char *interface)
{
    struct ifreq request = {0};

    snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", interface);
    if (ioctl(fd, SIOCGIFFLAGS, &request) == 0 && (request.ifr_flags & IFF_LOOPBACK) != 0)
        return true;
    return by_feature_get(fd, interface, BY_FEATURE_UDP_SEGMENTS) == 0 || !by_feature_virtual(fd, interface);
}

/* Applies BANYAN_SEGMENTS to the port; requires kernel support for sending and receiving. */
static int choose_segments(struct udp *udp, int fd, const struct by_image_port *port, const char *wanted)
{
    int one = 1, none = 0;
    bool segments = strcmp(wanted, "off") != 0;

    if (segments && strcmp(wanted, "on") != 0 && strcmp(wanted, "auto") != 0)
        return by_fail(BY_EINVAL, "BANYAN_SEGMENTS is '%s'; use auto, on or off", wanted);
    if (segments && strcmp(wanted, "auto") == 0)
        segments = link_cuts(fd, port->name);
    if (segments && (setsockopt(fd, SOL_UDP, UDP_SEGMENT, &none, sizeof(none)) != 0 ||
                     (!udp->rings && setsockopt(fd, SOL_UDP, UDP_GRO, &one, sizeof(one)) != 0))) {
        if (strcmp(wanted, "on") == 0)
            return by_fail(BY_EUNSUPPORTED,
                           "BANYAN_SEGMENTS is on, but %s has no UDP segmentation: %s; it requires Linux 5.0",
                           port->name, strerror(errno));
        segments = false;
    }
    /* On all ports or none. A batch needs a checksum, which the link computes; otherwise the tag
     * and psum of the header protect the data. */
    udp->segments = udp->segments && segments;
    if (!segments && by_ipv6_is(port->own_ip))
        setsockopt(fd, SOL_UDP, UDP_NO_CHECK6_TX, &one, sizeof(one));
    else if (!segments)
        setsockopt(fd, SOL_SOCKET, SO_NO_CHECK, &one, sizeof(one));
    return 0;
}

/* Whether rings are best on all ports: virtual links with single frames. A network card supports
 * AF_XDP without copies, and its driver may merge several frames into one, which a ring cannot
 * hold. */
bool by_udp_single_frames(const struct by_transport_config *config)
{
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct by_image_header header;
    bool single = fd >= 0;

    by_image_header(config->image, &header);
    single = single && header.count[BY_SECTION_PORT] > 0;
    for (uint32_t i = 0; single && i < header.count[BY_SECTION_PORT]; i++) {
        struct by_image_port port;

        by_image_port(config->image, i, &port);
        single =
            by_feature_virtual(fd, port.name) && by_feature_get(fd, port.name, BY_FEATURE_UDP_SEGMENTS) == 0;
    }
    if (fd >= 0)
        close(fd);
    return single;
}

/* Applies BANYAN_RING to the port. An automatic choice may fail on the first port; then no port
 * uses a ring. */
static int choose_ring(struct udp *udp, uint32_t index, const struct by_image_port *port,
                       const struct by_transport_config *config)
{
    const char *wanted = config->settings->value[BY_SETTING_RING], *step = "";
    struct by_ring_config ring = {.interface = port->name,
                                  .mtu = config->payload_max + BY_WIRE_HEADER_BYTES + IP_UDP_BYTES +
                                         (by_ipv6_is(port->own_ip) ? BY_IPV6_EXTRA_BYTES : 0),
                                  .frames = RING_FRAMES,
                                  .ip = port->own_ip,
                                  .ipv6 = by_ipv6_address(&udp->book, port->own_ip),
                                  .udp_port = config->udp_port};
    int error;

    if (!udp->rings_wanted)
        return 0;
    error = by_ring_open(&udp->ring[index], &ring, &step);
    if (error != 0 && index == 0 && !config->rings && strcmp(wanted, "auto") == 0) {
        udp->rings_wanted = false;
        return 0;
    }
    if (error != 0)
        return by_fail(error == -EPERM ? BY_EPERM : BY_EUNSUPPORTED,
                       "BANYAN_RING is %s, but %s has no ring: %s: %s; it requires root and Linux 6.6",
                       wanted, port->name, step, strerror(-error));
    udp->rings = true;
    udp->base.yields = RING_YIELDS;
    return 0;
}

/* Datagrams are not fragmented, and received with their ECN bits; over IPv6 also those without a
 * checksum, as switches send them (udp(7), RFC 6935). */
static void set_options(int fd, bool ipv6)
{
    int one = 1, discover = IP_PMTUDISC_DO, discover6 = IPV6_PMTUDISC_DO;

    if (ipv6) {
        setsockopt(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, &discover6, sizeof(discover6));
        setsockopt(fd, IPPROTO_IPV6, IPV6_RECVTCLASS, &one, sizeof(one));
        setsockopt(fd, SOL_UDP, UDP_NO_CHECK6_RX, &one, sizeof(one));
        return;
    }
    setsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER, &discover, sizeof(discover));
    setsockopt(fd, IPPROTO_IP, IP_RECVTOS, &one, sizeof(one));
}

static int open_port(struct udp *udp, uint32_t index, const struct by_image_port *port,
                     const struct by_transport_config *config)
{
    union by_host_address address;
    socklen_t length = by_host_address_set(&address, &udp->book, port->own_ip, config->udp_port);
    char ip[BY_IP_TEXT];
    int fd = socket(address.any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    uint32_t chunks;
    int error;

    udp->fd[index] = fd;
    if (fd < 0)
        return by_fail(BY_EIO, "no socket for %s: %s", port->name, strerror(errno));
    error = check_mtu(fd, port, config->payload_max);
    if (error == 0)
        error = by_host_vlan_check(port->name, port->vlan);
    if (error != 0)
        return error;
    by_image_ip_text(config->image, port->own_ip, ip);
    if (bind(fd, &address.any, length) != 0)
        return by_fail(errno == EADDRINUSE      ? BY_EBUSY
                       : errno == EADDRNOTAVAIL ? BY_ENOENT
                                                : BY_EIO,
                       "%s:%u (%s) cannot be bound: %s%s", ip, config->udp_port, port->name, strerror(errno),
                       errno == EADDRINUSE      ? "; does another process run this job here?"
                       : errno == EADDRNOTAVAIL ? "; the table assigns this address to this host"
                                                : "");
    if (setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, port->name, (socklen_t)strlen(port->name)) != 0 &&
        errno != EPERM)
        return by_fail(BY_EIO, "cannot bind to interface %s: %s", port->name, strerror(errno));
    error = choose_ring(udp, index, port, config);
    if (error != 0)
        return error;
    error = choose_segments(udp, fd, port, config->settings->value[BY_SETTING_SEGMENTS]);
    if (error != 0)
        return error;
    set_options(fd, by_ipv6_is(port->own_ip));
    udp->own_ip[index] = port->own_ip;
    chunks = by_segments_buffers(fd) / (config->payload_max + BY_WIRE_HEADER_BYTES + SKB_BYTES);
    if (udp->rings)
        chunks = by_ring_frames(udp->ring[index]);
    if (udp->base.inflight_max == 0 || chunks < udp->base.inflight_max)
        udp->base.inflight_max = chunks > 0 ? chunks : 1;
    return 0;
}

static int want_rings(struct udp *udp, const struct by_transport_config *config)
{
    const char *wanted = config->settings->value[BY_SETTING_RING];

    if (strcmp(wanted, "auto") != 0 && strcmp(wanted, "on") != 0 && strcmp(wanted, "off") != 0)
        return by_fail(BY_EINVAL, "BANYAN_RING is '%s'; use auto, on or off", wanted);
    udp->rings_wanted =
        strcmp(wanted, "on") == 0 || (strcmp(wanted, "auto") == 0 && by_udp_single_frames(config));
    return 0;
}

static int prepare(struct udp *udp)
{
    size_t bytes = (size_t)BATCH_BYTES * BY_RX_BATCH; /* pages are used only where data arrive */

    udp->buffers = aligned_alloc(64, bytes);
    if (udp->buffers == NULL)
        return by_fail(BY_ENOMEM, "no memory for %u datagrams of %u bytes", BY_RX_BATCH, BATCH_BYTES);
    udp->rx_limit = BATCHES_RX;
    for (uint32_t i = 0; i < BY_RX_BATCH; i++) {
        udp->rx_piece[i].iov_base = udp->buffers + (size_t)i * BATCH_BYTES + LEAD_BYTES;
        udp->rx_piece[i].iov_len = BATCH_BYTES - LEAD_BYTES;
        udp->rx_message[i].msg_hdr = (struct msghdr){.msg_name = &udp->rx_from[i],
                                                     .msg_namelen = sizeof(udp->rx_from[i]),
                                                     .msg_iov = &udp->rx_piece[i],
                                                     .msg_iovlen = 1,
                                                     .msg_control = udp->rx_control[i],
                                                     .msg_controllen = BY_SEGMENTS_CONTROL_BYTES};
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
    by_image_book(config->image, &udp->book);
    udp->base.ops = &udp_ops;
    for (uint32_t i = 0; i < BY_PORTS_MAX; i++)
        udp->fd[i] = -1;
    udp->segments = true;
    error = by_image_ports_check(config->image);
    if (error == 0)
        error = want_rings(udp, config);
    if (error == 0)
        error = prepare(udp);
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
    if (udp->segments || udp->rings) {
        udp->base.batch = BY_SEGMENTS_MAX;
        snprintf(udp->base.note, sizeof(udp->base.note), "%s%s%s", udp->segments ? "in GSO batches" : "",
                 udp->segments && udp->rings ? ", " : "", udp->rings ? "from a receive ring" : "");
    }
    /* Trees are spread over the ports, so the buffers of the ports add up. */
    udp->base.inflight_max *= udp->base.port_count;
    *transport = &udp->base;
    return 0;
}
