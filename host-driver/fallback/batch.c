/* Batches of parcels and of what has come; see batch.h. */
#include "host-driver/fallback/batch.h"

#include <errno.h>
#include <netinet/udp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host-driver/error.h"

#define BATCH_BYTES 65536u
#define WAITS_MAX   2u /* milliseconds of patience with a full send buffer; after that parcels are lost */

struct by_batch_io {
    struct mmsghdr tx_message[BY_BATCH_TX];
    struct iovec tx_piece[2 * BY_BATCH_TX];
    uint8_t tx_header[BY_BATCH_TX][BY_PARCEL_HEADER_BYTES];
    uint8_t tx_control[BY_BATCH_TX][BY_SEGMENTS_CONTROL_BYTES] __attribute__((aligned(8)));
    struct mmsghdr rx_message[BY_BATCH_RX];
    struct iovec rx_piece[BY_BATCH_RX];
    struct sockaddr_in rx_from[BY_BATCH_RX];
    uint8_t rx_control[BY_BATCH_RX][BY_SEGMENTS_CONTROL_BYTES] __attribute__((aligned(8)));
    uint8_t *buffers; /* BY_BATCH_RX of TRAIN_BYTES, touched only where something comes */
};

int by_batch_open(struct by_batch *batch)
{
    struct by_batch_io *io;
    int one = 1, none = 0;

    memset(batch, 0, sizeof(*batch));
    batch->fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (batch->fd < 0)
        return by_fail(BY_EIO, "no UDP socket: %s", strerror(errno));
    io = batch->io = calloc(1, sizeof(*io));
    if (io != NULL)
        io->buffers = malloc((size_t)BY_BATCH_RX * BATCH_BYTES);
    if (io == NULL || io->buffers == NULL)
        return by_fail(BY_ENOMEM, "no memory for %u datagrams of %u bytes", BY_BATCH_RX, BATCH_BYTES);
    for (uint32_t i = 0; i < BY_BATCH_RX; i++) {
        io->rx_piece[i] = (struct iovec){io->buffers + (size_t)i * BATCH_BYTES, BATCH_BYTES};
        io->rx_message[i].msg_hdr = (struct msghdr){.msg_name = &io->rx_from[i],
                                                    .msg_iov = &io->rx_piece[i],
                                                    .msg_iovlen = 1,
                                                    .msg_control = io->rx_control[i]};
    }
    batch->buffer_bytes = by_segments_buffers(batch->fd);
    /* The other end of every link is such a socket, whatever the link does with a train. */
    batch->segments = setsockopt(batch->fd, SOL_UDP, UDP_SEGMENT, &none, sizeof(none)) == 0 &&
                      setsockopt(batch->fd, SOL_UDP, UDP_GRO, &one, sizeof(one)) == 0;
    return batch->fd;
}

void by_batch_close(struct by_batch *batch)
{
    if (batch->io != NULL)
        free(batch->io->buffers);
    free(batch->io);
    batch->io = NULL;
    if (batch->fd >= 0)
        close(batch->fd);
    batch->fd = -1;
}

/* ---- sending */

static uint32_t size_at(const struct by_batch_io *io, uint32_t index)
{
    return (uint32_t)(io->tx_piece[2 * index].iov_len + io->tx_piece[2 * index + 1].iov_len);
}

/* Makes messages of the parcels from `first` on; returns how many. */
static uint32_t make_messages(struct by_batch *batch, uint32_t first)
{
    struct by_batch_io *io = batch->io;
    uint32_t messages = 0;

    while (first < batch->count) {
        struct msghdr *message = &io->tx_message[messages].msg_hdr;
        uint32_t stride = size_at(io, first), bytes = stride, end = first + 1;

        /* All of a train are of one size, but the last may be shorter. */
        while (batch->segments && end < batch->count && end - first < BY_SEGMENTS_MAX &&
               size_at(io, end - 1) == stride && size_at(io, end) <= stride &&
               bytes + size_at(io, end) <= BY_SEGMENTS_DATAGRAM_MAX)
            bytes += size_at(io, end++);
        *message = (struct msghdr){.msg_name = &batch->to,
                                   .msg_namelen = sizeof(batch->to),
                                   .msg_iov = &io->tx_piece[2 * first],
                                   .msg_iovlen = (size_t)2 * (end - first)};
        if (end - first > 1)
            by_segments_mark(message, io->tx_control[messages], stride);
        messages++;
        first = end;
    }
    return messages;
}

static bool is_full(int why)
{
    return why == EAGAIN || why == EWOULDBLOCK || why == ENOBUFS;
}

void by_batch_flush(struct by_batch *batch)
{
    struct by_batch_io *io = batch->io;
    uint32_t count = make_messages(batch, 0), at = 0, waits = 0, done = 0;

    while (at < count) {
        const struct msghdr *first = &io->tx_message[at].msg_hdr;
        int sent = sendmmsg(batch->fd, io->tx_message + at, count - at, MSG_DONTWAIT);

        for (int i = 0; i < sent; i++)
            done += (uint32_t)(io->tx_message[at++].msg_hdr.msg_iovlen / 2);
        if (sent > 0 || errno == EINTR)
            continue;
        if (is_full(errno) && waits++ < WAITS_MAX) {
            struct pollfd writable = {.fd = batch->fd, .events = POLLOUT};

            poll(&writable, 1, 1);
        } else if (first->msg_iovlen > 2 && by_segments_refused(errno)) {
            batch->segments = false;
            count = make_messages(batch, done);
            at = 0;
        } else {
            done += (uint32_t)(first->msg_iovlen / 2);
            at++;
        }
    }
    batch->count = 0;
}

void by_batch_add(struct by_batch *batch, const struct sockaddr_in *to, const struct by_parcel *parcel)
{
    struct by_batch_io *io = batch->io;
    uint32_t at;

    if (batch->count == BY_BATCH_TX)
        by_batch_flush(batch);
    at = batch->count++;
    batch->to = *to;
    by_parcel_write(parcel, io->tx_header[at]);
    io->tx_piece[2 * at] = (struct iovec){io->tx_header[at], BY_PARCEL_HEADER_BYTES};
    io->tx_piece[2 * at + 1] = (struct iovec){(void *)(uintptr_t)parcel->payload, parcel->bytes};
}

/* ---- receiving */

static void fetch(struct by_batch *batch)
{
    struct by_batch_io *io = batch->io;
    int got;

    for (uint32_t i = 0; i < BY_BATCH_RX; i++) {
        io->rx_message[i].msg_hdr.msg_namelen = sizeof(io->rx_from[i]);
        io->rx_message[i].msg_hdr.msg_controllen = BY_SEGMENTS_CONTROL_BYTES;
    }
    got = recvmmsg(batch->fd, io->rx_message, BY_BATCH_RX, MSG_DONTWAIT, NULL);
    batch->got_at = batch->got_offset = 0;
    batch->got_count = got > 0 ? (uint32_t)got : 0;
}

uint32_t by_batch_receive(struct by_batch *batch, struct by_rx *rx)
{
    struct by_batch_io *io = batch->io;
    uint32_t count = 0;

    if (batch->got_at == batch->got_count)
        fetch(batch);
    while (batch->got_at < batch->got_count && count < BY_RX_BATCH) {
        struct mmsghdr *message = &io->rx_message[batch->got_at];
        const struct sockaddr_in *from = &io->rx_from[batch->got_at];
        uint32_t stride = by_segments_stride(&message->msg_hdr, message->msg_len);
        uint32_t left = message->msg_len - batch->got_offset;
        uint32_t size = left < stride ? left : stride;

        rx[count++] =
            (struct by_rx){.data = io->buffers + (size_t)batch->got_at * BATCH_BYTES + batch->got_offset,
                           .bytes = (uint16_t)(size <= UINT16_MAX ? size : 0),
                           .port = ntohs(from->sin_port),
                           .src_ip = ntohl(from->sin_addr.s_addr)};
        batch->got_offset += size;
        if (batch->got_offset < message->msg_len)
            continue;
        batch->got_offset = 0;
        batch->got_at++;
    }
    return count;
}

bool by_batch_holds(const struct by_batch *batch)
{
    return batch->got_at != batch->got_count;
}
