/*
 * The links of switch-probe: a raw socket for each host, on the far end of a port of the switch. A
 * switch that sends trains of frames (dataplane/gso.c) hands several results over in one piece,
 * which a cable would carry one by one; here they are parted.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <linux/virtio_net.h>
#include <net/if.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "offload/base/bytes.h"
#include "tests/lab/probe.h"

#ifndef VIRTIO_NET_HDR_GSO_UDP_L4
#define VIRTIO_NET_HDR_GSO_UDP_L4 5 /* since Linux 6.2 */
#endif
#define ETHERTYPE_AT   12u
#define ETHERTYPE_IPV6 0x86ddu
#define ALL_TYPES      3u
/* Bytes of the largest piece that the kernel hands over. */
#define PIECE_MAX 65550u

/* What came in one piece and was not asked for yet. */
struct probe_link_piece {
    int socket;
    uint32_t bytes, at, stride; /* of the payload behind the headers */
    struct by_frame headers;
    uint8_t data[PIECE_MAX];
};

static struct probe_link_piece pieces[STAR_HOSTS_MAX];

int probe_socket(const char *interface)
{
    struct sockaddr_ll address = {.sll_family = AF_PACKET,
                                  .sll_protocol = htons(ALL_TYPES),
                                  .sll_ifindex = (int)if_nametoindex(interface)};
    int fd = socket(AF_PACKET, SOCK_RAW, htons(ALL_TYPES));

    if (fd < 0 || address.sll_ifindex == 0 || bind(fd, (struct sockaddr *)&address, sizeof address) != 0) {
        fprintf(stderr, "switch-probe: %s: %s\n", interface, strerror(errno));
        exit(1);
    }
    return fd;
}

void probe_links_open(int hosts, char **interfaces)
{
    const int one = 1;

    for (int i = 0; i < hosts; i++) {
        pieces[i].socket = probe_socket(interfaces[i]);
        if (setsockopt(pieces[i].socket, SOL_PACKET, PACKET_VNET_HDR, &one, sizeof one) != 0 ||
            setsockopt(pieces[i].socket, SOL_PACKET, PACKET_IGNORE_OUTGOING, &one, sizeof one) != 0) {
            fprintf(stderr, "switch-probe: %s: %s\n", interfaces[i], strerror(errno));
            exit(1);
        }
    }
}

void probe_link_send(int host, const uint8_t *frame, size_t bytes)
{
    struct virtio_net_hdr header = {0};
    struct iovec vector[2] = {{&header, sizeof header}, {(void *)(uintptr_t)frame, bytes}};

    if (writev(pieces[host].socket, vector, 2) != (ssize_t)(sizeof header + bytes)) {
        fprintf(stderr, "switch-probe: send: %s\n", strerror(errno));
        exit(1);
    }
}

/* The next frame of a train that has come; 0 when there is none. */
static size_t part(struct probe_link_piece *piece, uint8_t *frame)
{
    uint32_t size = piece->bytes - piece->at;

    if (size > piece->stride)
        size = piece->stride;
    if (size == 0)
        return 0;
    piece->headers.bytes = (uint16_t)size;
    by_frame_build(&piece->headers, frame);
    memcpy(frame + BY_FRAME_HEADER_BYTES, piece->headers.data + piece->at, size);
    piece->at += size;
    return BY_FRAME_HEADER_BYTES + size;
}

size_t probe_link_receive(int host, uint8_t *frame, int wait_ms)
{
    struct probe_link_piece *piece = &pieces[host];
    struct pollfd poll_fd = {.fd = piece->socket, .events = POLLIN};
    size_t size = part(piece, frame);

    while (size == 0 && poll(&poll_fd, 1, wait_ms) == 1) {
        struct virtio_net_hdr header;
        struct iovec vector[2] = {{&header, sizeof header}, {piece->data, sizeof piece->data}};
        ssize_t got = readv(piece->socket, vector, 2) - (ssize_t)sizeof header;

        if (got <= 0 || by_get16(piece->data + ETHERTYPE_AT) == ETHERTYPE_IPV6)
            continue;
        if (header.gso_type == VIRTIO_NET_HDR_GSO_UDP_L4 && header.gso_size > 0 &&
            by_frame_parse(piece->data, (size_t)got, &piece->headers) == 0) {
            piece->bytes = piece->headers.bytes;
            piece->stride = header.gso_size;
            piece->at = 0;
            size = part(piece, frame);
        } else if ((size_t)got <= PROBE_FRAME_MAX) {
            memcpy(frame, piece->data, (size_t)got);
            size = (size_t)got;
        }
    }
    return size;
}
