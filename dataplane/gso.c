/* GSO batches on a packet socket; see gso.h. Sources: packet(7), linux/virtio_net.h. Loop's
 * thread. */
#include "dataplane/gso.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/virtio_net.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "dataplane/say.h"
#include "offload/base/bytes.h"
#include "offload/base/errors.h"
#include "offload/linux/feature.h"
#include "offload/linux/ring.h"
#include "offload/wire/frame.h"
#include "offload/wire/packet.h"

#ifndef VIRTIO_NET_HDR_GSO_UDP_L4
#define VIRTIO_NET_HDR_GSO_UDP_L4 5 /* since Linux 6.2 */
#endif

/* Kernel limits of one batch: segments (UDP_MAX_SEGMENTS), and bytes of the datagram. */
#define SEGMENTS_MAX 64u
#define DATAGRAM_MAX 65535u
/* Messages per receive call. BATCHES: messages with buffers for a whole GSO batch, few, so that
 * they stay in the cache. MESSAGES: messages with one buffer, plus memory behind it in case a batch
 * arrives. */
#define BATCHES      2u
#define MESSAGES     32u
#define SOCKET_BYTES (16 << 20)
#define GSO_ROOM     (DATAGRAM_MAX + BY_FRAME_AT_IP)
#define READY_MAX    (MESSAGES * SEGMENTS_MAX)
#define PIECES_MAX   (2u * SEGMENTS_MAX + 2u)
/* Frames of a ring (count): enough for a window and its repairs, few enough for the cache. */
#define RING_FRAMES 1024u

struct message {
    struct virtio_net_hdr header;
    uint32_t count; /* of the buffers */
    struct rte_mbuf *segment[SEGMENTS_MAX];
    /* the header, the buffers, and the memory behind them */
    struct iovec piece[SEGMENTS_MAX + 2];
};

struct by_gso {
    int fd;
    struct by_ring *ring; /* receives single frames; or NULL: the socket receives batches */
    bool whole;           /* send frames singly: the link must cut batches, and would not */
    uint32_t stride;      /* expected bytes of a segment */
    uint32_t limit;       /* messages of the next receive call */
    struct rte_mempool *pool;
    uint64_t dropped;
    uint32_t ready_at, ready_count; /* received frames that were not yet returned */
    struct rte_mbuf *ready[READY_MAX];
    struct message message[MESSAGES];
    struct mmsghdr heads[MESSAGES];
    uint8_t flat[GSO_ROOM]; /* reassembly of a batch with another stride */
    uint8_t behind[MESSAGES][GSO_ROOM];
};

static int open_ring(struct by_gso *gso, const char *interface, uint16_t mtu)
{
    const struct by_ring_config config = {
        .interface = interface, .mtu = mtu, .frames = RING_FRAMES, .all = true};
    const char *step;
    int error = by_ring_open(&gso->ring, &config, &step);

    if (error == 0)
        return 0;
    by_say("--iface %s: cannot create a ring of frames: %s: %s%s", interface, step, strerror(-error),
           strcmp(step, "tcx") == 0 ? "; it requires Linux 6.6" : "");
    return BY_EIO;
}

int by_gso_open(struct by_gso **out, const char *interface, uint16_t mtu, enum by_gso_kind kind)
{
    struct sockaddr_ll address = {.sll_family = AF_PACKET,
                                  .sll_protocol = kind == BY_GSO_BOTH ? htons(ETH_P_ALL) : 0,
                                  .sll_ifindex = (int)if_nametoindex(interface)};
    struct packet_mreq all = {.mr_ifindex = address.sll_ifindex, .mr_type = PACKET_MR_PROMISC};
    struct by_gso *gso = calloc(1, sizeof *gso);
    const int one = 1, bytes = SOCKET_BYTES;

    if (!gso)
        return BY_ENOMEM;
    gso->fd = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (gso->fd < 0 || setsockopt(gso->fd, SOL_PACKET, PACKET_VNET_HDR, &one, sizeof one) != 0 ||
        setsockopt(gso->fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &one, sizeof one) != 0 ||
        bind(gso->fd, (struct sockaddr *)&address, sizeof address) != 0) {
        by_say("--iface %s: cannot open a packet socket for GSO batches: %s", interface, strerror(errno));
        by_gso_close(gso);
        return BY_EIO;
    }
    /* Frames carry the addresses of the table, which may differ from the interface's. */
    setsockopt(gso->fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &all, sizeof all);
    setsockopt(gso->fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof bytes);
    setsockopt(gso->fd, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof bytes);
    /* Packets of a switch port must leave as frames of the MTU, whatever the other end is. */
    gso->whole = kind != BY_GSO_BOTH && by_feature_get(gso->fd, interface, BY_FEATURE_UDP_SEGMENTS) != 0;
    if (kind == BY_GSO_RING && open_ring(gso, interface, mtu) != 0) {
        by_gso_close(gso);
        return BY_EIO;
    }
    *out = gso;
    return 0;
}

void by_gso_close(struct by_gso *gso)
{
    if (gso->ring)
        by_ring_close(gso->ring);
    if (gso->fd >= 0)
        close(gso->fd);
    while (gso->ready_count > 0) {
        rte_pktmbuf_free(gso->ready[gso->ready_at++]);
        gso->ready_count--;
    }
    for (unsigned m = 0; m < MESSAGES; m++)
        for (unsigned i = 0; i < gso->message[m].count; i++)
            rte_pktmbuf_free(gso->message[m].segment[i]);
    free(gso);
}

int by_gso_fd(const struct by_gso *gso)
{
    return gso->ring ? by_ring_fd(gso->ring) : gso->fd;
}

uint64_t by_gso_dropped(struct by_gso *gso)
{
    if (gso->ring)
        gso->dropped += by_ring_lost(gso->ring);
    return gso->dropped;
}

bool by_gso_is_crowded(const struct by_gso *gso)
{
    return gso->ring && by_ring_is_half_full(gso->ring);
}

void by_gso_doze(struct by_gso *gso)
{
    if (gso->ring)
        by_ring_doze(gso->ring); /* the descriptor is readable if frames wait */
}

/* Replaces a used buffer with a new one. The kernel writes the first frame's headers, and each
 * segment to the position of the payload in a frame of its own. False: no buffer, the old one
 * stays. */
static bool renew(struct by_gso *gso, struct message *message, unsigned i)
{
    struct rte_mbuf *buffer = rte_pktmbuf_alloc(gso->pool);
    uint32_t skip = i == 0 ? 0 : BY_FRAME_HEADER_BYTES;

    if (!buffer)
        return false;
    message->segment[i] = buffer;
    message->piece[i + 1] = (struct iovec){rte_pktmbuf_mtod_offset(buffer, void *, skip),
                                           gso->stride + BY_FRAME_HEADER_BYTES - skip};
    return true;
}

int by_gso_start(struct by_gso *gso, struct rte_mempool *pool, uint16_t payload_max)
{
    uint32_t whole;

    gso->pool = pool;
    gso->stride = payload_max + BY_WIRE_HEADER_BYTES;
    gso->limit = BATCHES;
    if (gso->ring)
        return 0;
    whole = RTE_MIN((DATAGRAM_MAX + gso->stride - 1) / gso->stride, SEGMENTS_MAX);
    for (unsigned m = 0; m < MESSAGES; m++) {
        struct message *message = &gso->message[m];

        message->piece[0] = (struct iovec){&message->header, sizeof message->header};
        while (message->count < (m < BATCHES ? whole : 1)) {
            if (!renew(gso, message, message->count)) {
                by_say("not enough packet buffers for a port: it needs %u",
                       BATCHES * whole + MESSAGES - BATCHES);
                return BY_ENOMEM;
            }
            message->count++;
        }
        message->piece[message->count + 1] = (struct iovec){gso->behind[m], sizeof gso->behind[m]};
        gso->heads[m].msg_hdr = (struct msghdr){.msg_iov = message->piece, .msg_iovlen = message->count + 2};
    }
    return 0;
}

/* ---- receive ---- */

/* Turns a buffer of the message into a frame of `bytes`, and replaces it. */
static void take(struct by_gso *gso, struct message *message, unsigned i, uint32_t bytes)
{
    struct rte_mbuf *frame = message->segment[i];

    if (!renew(gso, message, i)) {
        gso->dropped++;
        return;
    }
    frame->data_len = (uint16_t)bytes;
    frame->pkt_len = bytes;
    gso->ready[gso->ready_count++] = frame;
}

/* Writes headers for each segment. The segments are in place, since the stride is the expected
 * one. */
static void part(struct by_gso *gso, struct message *message, struct by_frame *frame, uint32_t bytes)
{
    uint32_t left = bytes - BY_FRAME_HEADER_BYTES;

    for (unsigned i = 0; left > 0; i++) {
        uint32_t size = left < gso->stride ? left : gso->stride;

        frame->bytes = (uint16_t)size;
        by_frame_build(frame, rte_pktmbuf_mtod(message->segment[i], uint8_t *));
        take(gso, message, i, BY_FRAME_HEADER_BYTES + size);
        left -= size;
    }
}

/* Like part, for segments of another size, or a frame longer than expected: through a copy. */
static void part_flat(struct by_gso *gso, struct message *message, struct by_frame *frame, uint32_t bytes,
                      uint32_t stride)
{
    uint32_t at = 0;

    for (unsigned i = 0; at < bytes; i++) {
        uint32_t size = (uint32_t)message->piece[i + 1].iov_len;

        size = size < bytes - at ? size : bytes - at;
        memcpy(gso->flat + at, message->piece[i + 1].iov_base, size);
        at += size;
    }
    for (at = BY_FRAME_HEADER_BYTES; at < bytes; at += stride) {
        struct rte_mbuf *one = rte_pktmbuf_alloc(gso->pool);
        uint32_t size = stride < bytes - at ? stride : bytes - at;
        char *room = one && size + BY_FRAME_HEADER_BYTES <= rte_pktmbuf_tailroom(one) &&
                             gso->ready_count < RTE_DIM(gso->ready)
                         ? rte_pktmbuf_append(one, (uint16_t)(size + BY_FRAME_HEADER_BYTES))
                         : NULL;

        if (!room) {
            rte_pktmbuf_free(one);
            gso->dropped++;
            continue;
        }
        frame->bytes = (uint16_t)size;
        by_frame_build(frame, (uint8_t *)room);
        memcpy(room + BY_FRAME_HEADER_BYTES, gso->flat + at, size);
        gso->ready[gso->ready_count++] = one;
    }
}

/* Processes one message of `bytes` after its header; `cut`: it is a GSO batch. */
static void open_message(struct by_gso *gso, struct message *message, uint32_t bytes, bool cut)
{
    const uint8_t *data = rte_pktmbuf_mtod(message->segment[0], uint8_t *);
    uint32_t stride = message->header.gso_type == VIRTIO_NET_HDR_GSO_UDP_L4 ? message->header.gso_size : 0;
    struct by_frame frame;

    if (cut || (message->header.gso_type != VIRTIO_NET_HDR_GSO_NONE && stride == 0)) {
        gso->dropped++;
        return;
    }
    if (bytes <= BY_FRAME_HEADER_BYTES + gso->stride && stride == 0) {
        take(gso, message, 0, bytes);
        return;
    }
    if (by_frame_parse(data, bytes, &frame) != 0) {
        gso->dropped++;
        return;
    }
    bytes = BY_FRAME_HEADER_BYTES + frame.bytes;
    gso->limit = BATCHES;
    if ((stride == gso->stride && bytes <= BY_FRAME_HEADER_BYTES + message->count * stride))
        part(gso, message, &frame, bytes);
    else
        part_flat(gso, message, &frame, bytes, stride > 0 ? stride : frame.bytes);
}

static void fill(struct by_gso *gso)
{
    int got = recvmmsg(gso->fd, gso->heads, gso->limit, MSG_DONTWAIT, NULL);

    gso->ready_at = 0;
    gso->limit = RTE_MIN(gso->limit + 1, MESSAGES); /* in case no batch arrives */
    for (int m = 0; m < got; m++) {
        uint32_t bytes = gso->heads[m].msg_len;

        if (bytes > sizeof(struct virtio_net_hdr))
            open_message(gso, &gso->message[m], bytes - (uint32_t)sizeof(struct virtio_net_hdr),
                         (gso->heads[m].msg_hdr.msg_flags & MSG_TRUNC) != 0);
        gso->heads[m].msg_hdr.msg_flags = 0;
    }
}

/* Frames leave the ring immediately, through a copy that the engine needs in the cache anyway, so a
 * delayed frame (a relay, --reorder) does not occupy a slot. */
static uint16_t receive_ring(struct by_gso *gso, struct rte_mbuf **frames, uint16_t count)
{
    const uint8_t *data;
    uint32_t bytes;
    uint16_t given = 0;

    while (given < count && (data = by_ring_take(gso->ring, &bytes)) != NULL) {
        struct rte_mbuf *frame = rte_pktmbuf_alloc(gso->pool);
        char *room = frame && bytes > 0 && bytes <= rte_pktmbuf_tailroom(frame)
                         ? rte_pktmbuf_append(frame, (uint16_t)bytes)
                         : NULL;

        if (!room) {
            rte_pktmbuf_free(frame);
            gso->dropped++;
            continue;
        }
        memcpy(room, data, bytes);
        frames[given++] = frame;
    }
    by_ring_return(gso->ring);
    return given;
}

uint16_t by_gso_receive(struct by_gso *gso, struct rte_mbuf **frames, uint16_t count)
{
    uint16_t given;

    if (gso->ring)
        return receive_ring(gso, frames, count);
    if (gso->ready_count == 0)
        fill(gso);
    given = (uint16_t)RTE_MIN((uint32_t)count, gso->ready_count);
    memcpy(frames, gso->ready + gso->ready_at, given * sizeof(*frames));
    gso->ready_at += given;
    gso->ready_count -= given;
    return given;
}

/* ---- send ---- */

/* Whether bytes 0 to 15 (MAC addresses, type, version, class) and 26 to 37 (addresses, ports) are
 * equal. */
static bool belongs(const uint8_t *a, const uint8_t *b)
{
    return memcmp(a, b, BY_FRAME_AT_IP + 2) == 0 &&
           memcmp(a + BY_FRAME_AT_IP + 12, b + BY_FRAME_AT_IP + 12, 12) == 0;
}

static bool is_datagram(const struct rte_mbuf *frame)
{
    const uint8_t *data = rte_pktmbuf_mtod(frame, const uint8_t *);

    return frame->data_len >= BY_FRAME_HEADER_BYTES + BY_WIRE_HEADER_BYTES &&
           by_get16(data + BY_FRAME_AT_TYPE) == ETH_P_IP && data[BY_FRAME_AT_IP] == BY_IP_HEAD &&
           data[BY_FRAME_AT_PROTOCOL] == IPPROTO_UDP;
}

/* Returns the number of frames that form one GSO batch: all but the last have equal size, and the
 * last is not longer. */
static unsigned couple(struct rte_mbuf *const *frames, unsigned count)
{
    const uint8_t *first = rte_pktmbuf_mtod(frames[0], const uint8_t *);
    uint32_t stride = frames[0]->pkt_len - BY_FRAME_HEADER_BYTES;
    uint32_t total = stride;
    unsigned n = 1;

    if (!is_datagram(frames[0]))
        return 1;
    while (n < count && n < SEGMENTS_MAX && frames[n - 1]->pkt_len == frames[0]->pkt_len) {
        uint32_t size = frames[n]->pkt_len - BY_FRAME_HEADER_BYTES;

        if (!is_datagram(frames[n]) || size > stride || total + size > DATAGRAM_MAX - 28u ||
            !belongs(first, rte_pktmbuf_mtod(frames[n], const uint8_t *)))
            break;
        total += size;
        n++;
    }
    return n;
}

/* Adds the pieces of a frame from byte `skip` of its first segment on. */
static unsigned add_pieces(struct iovec *piece, struct rte_mbuf *frame, uint32_t skip)
{
    unsigned count = 0;

    for (struct rte_mbuf *segment = frame; segment; segment = segment->next, skip = 0)
        if (segment->data_len > skip)
            piece[count++] = (struct iovec){rte_pktmbuf_mtod_offset(segment, void *, skip),
                                            (size_t)segment->data_len - skip};
    return count;
}

/* Returns the sum of the pseudo header (RFC 768), which the link completes into the checksum of
 * each segment. */
static uint16_t pseudo_sum(const struct by_frame *frame)
{
    uint32_t sum = IPPROTO_UDP + 8u + frame->bytes;

    sum += (frame->src_ip >> 16) + (frame->src_ip & 0xffff);
    sum += (frame->dst_ip >> 16) + (frame->dst_ip & 0xffff);
    sum = (sum & 0xffff) + (sum >> 16);
    return (uint16_t)((sum & 0xffff) + (sum >> 16));
}

/* Writes the headers of a frame, or of a batch that the link cuts into segments of `stride`, if it
 * is not 0. */
static void put_headers(const struct by_frame *frame, uint32_t stride, uint8_t headers[BY_FRAME_HEADER_BYTES])
{
    by_frame_build(frame, headers);
    if (stride > 0)
        by_put16(headers + BY_FRAME_AT_UDP_CHECKSUM, pseudo_sum(frame));
}

/* One message to the socket. */
struct parcel {
    struct msghdr message;
    struct virtio_net_hdr header;
    /* of a datagram: addresses of the first frame, total bytes */
    struct by_frame frame;
    uint32_t stride; /* of a batch, else 0 */
    uint8_t headers[BY_FRAME_HEADER_BYTES];
    struct iovec piece[PIECES_MAX + 2];
};

/* Packs the first of the frames, as many as form one GSO batch, into a parcel. 0: the frame has a
 * format that no sender here produces. */
static uint16_t pack(const struct by_gso *gso, struct rte_mbuf *const *frames, uint16_t count,
                     struct parcel *parcel)
{
    bool sound =
        by_frame_parse(rte_pktmbuf_mtod(frames[0], const uint8_t *), frames[0]->pkt_len, &parcel->frame) == 0;
    unsigned n = couple(frames, gso->whole || !sound ? 1 : count), pieces = 0;

    parcel->header = (struct virtio_net_hdr){0};
    parcel->stride = n > 1 ? frames[0]->pkt_len - BY_FRAME_HEADER_BYTES : 0;
    for (unsigned i = 1; i < n; i++)
        parcel->frame.bytes += (uint16_t)(frames[i]->pkt_len - BY_FRAME_HEADER_BYTES);
    parcel->piece[pieces++] = (struct iovec){&parcel->header, sizeof parcel->header};
    if (n > 1) {
        put_headers(&parcel->frame, parcel->stride, parcel->headers);
        parcel->header = (struct virtio_net_hdr){.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
                                                 .gso_type = VIRTIO_NET_HDR_GSO_UDP_L4,
                                                 .hdr_len = BY_FRAME_HEADER_BYTES,
                                                 .gso_size = (uint16_t)parcel->stride,
                                                 .csum_start = BY_FRAME_AT_UDP,
                                                 .csum_offset = BY_FRAME_AT_UDP_CHECKSUM - BY_FRAME_AT_UDP};
        parcel->piece[pieces++] = (struct iovec){parcel->headers, sizeof parcel->headers};
    }
    for (unsigned i = 0; i < n; i++) {
        if (frames[i]->nb_segs > 2)
            return 0; /* never produced here */
        pieces += add_pieces(parcel->piece + pieces, frames[i], n > 1 ? BY_FRAME_HEADER_BYTES : 0);
    }
    parcel->message = (struct msghdr){.msg_iov = parcel->piece, .msg_iovlen = pieces};
    return (uint16_t)n;
}

uint16_t by_gso_send(struct by_gso *gso, struct rte_mbuf **frames, uint16_t count)
{
    struct parcel parcel;
    uint16_t n = pack(gso, frames, count, &parcel);

    if (n == 0 || sendmsg(gso->fd, &parcel.message, MSG_DONTWAIT) < 0)
        return 0;
    rte_pktmbuf_free_bulk(frames, n);
    return n;
}

int by_gso_copy(const struct by_gso *gso, struct rte_mbuf *const *frames, uint16_t count,
                struct by_copies *copies, const struct by_frame *const *to, unsigned to_count)
{
    struct by_copy *list = by_copies_list(copies);
    struct parcel parcel;
    uint16_t n = pack(gso, frames, count, &parcel);
    int result;

    if (n == 0)
        return -EINVAL;
    for (unsigned i = 0; i < to_count; i++) {
        struct by_frame frame = *to[i];

        frame.src_port = parcel.frame.src_port;
        frame.ecn = parcel.frame.ecn;
        frame.bytes = parcel.frame.bytes;
        put_headers(&frame, parcel.stride, list[i].header);
    }
    result = by_copies_send(copies, to_count, gso->fd, &parcel.message);
    return result == 0 ? n : result;
}

bool by_gso_sends_batches(const struct by_gso *gso)
{
    return !gso->whole;
}
