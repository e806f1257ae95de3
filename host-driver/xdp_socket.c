/* AF_XDP sockets over libxdp's rings; see xdp_socket.h. One thread for each socket. */
#include "host-driver/xdp_socket.h"

#include <errno.h>
#include <linux/if_xdp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "host-driver/error.h"

/* Of kernels since 6.6; older headers lack them. */
#ifndef XDP_USE_SG
#define XDP_USE_SG (1u << 4)
#endif
#ifndef XDP_PKT_CONTD
#define XDP_PKT_CONTD (1u << 0)
#endif

#define MEMORY_BYTES ((size_t)(BY_XDP_RX_FRAMES + BY_XDP_TX_FRAMES) * BY_XDP_FRAME_BYTES)
#define KICKS_MAX    64u /* system calls for one batch; the kernel sends about 32 packets in each */

static int create(struct by_xdp_socket *socket, const char *interface, uint32_t queue, bool frags)
{
    struct xsk_umem_config umem = {.fill_size = BY_XDP_RX_FRAMES,
                                   .comp_size = BY_XDP_TX_FRAMES,
                                   .frame_size = BY_XDP_FRAME_BYTES,
                                   .frame_headroom = 0};
    struct xsk_socket_config config = {.rx_size = BY_XDP_RX_FRAMES,
                                       .tx_size = BY_XDP_TX_FRAMES,
                                       .libxdp_flags = XSK_LIBXDP_FLAGS__INHIBIT_PROG_LOAD,
                                       .bind_flags =
                                           (uint16_t)(XDP_USE_NEED_WAKEUP | (frags ? XDP_USE_SG : 0))};
    int error = xsk_umem__create(&socket->umem, socket->memory, MEMORY_BYTES, &socket->fill,
                                 &socket->completion, &umem);

    if (error != 0)
        return by_fail(
            error == -EPERM ? BY_EPERM : BY_ENOMEM,
            "no AF_XDP memory of %zu bytes: %s; it takes CAP_NET_RAW (root), and locked memory (ulimit -l)",
            MEMORY_BYTES, strerror(-error));
    error = xsk_socket__create(&socket->socket, interface, queue, socket->umem, &socket->rx, &socket->tx,
                               &config);
    if (error == -EBUSY)
        return by_fail(BY_EBUSY, "%s: receive queue %u has an AF_XDP socket already; another process uses it",
                       interface, queue);
    if (error == -EINVAL && frags)
        return by_fail(BY_EUNSUPPORTED,
                       "%s: no AF_XDP socket for frames larger than a page; it takes Linux 6.6", interface);
    return error == 0 ? 0
                      : by_fail(error == -EPERM ? BY_EPERM : BY_EIO, "%s: no AF_XDP socket on queue %u: %s",
                                interface, queue, strerror(-error));
}

/* All frames begin with the kernel's side: those to receive into in the fill ring, those to send from free.
 */
static void deal_frames(struct by_xdp_socket *socket)
{
    uint32_t at = 0;

    xsk_ring_prod__reserve(&socket->fill, BY_XDP_RX_FRAMES, &at);
    for (uint32_t i = 0; i < BY_XDP_RX_FRAMES; i++)
        *xsk_ring_prod__fill_addr(&socket->fill, at + i) = (uint64_t)i * BY_XDP_FRAME_BYTES;
    xsk_ring_prod__submit(&socket->fill, BY_XDP_RX_FRAMES);
    for (uint32_t i = 0; i < BY_XDP_TX_FRAMES; i++)
        socket->tx_free[i] = (uint64_t)(BY_XDP_RX_FRAMES + i) * BY_XDP_FRAME_BYTES;
    socket->tx_free_count = BY_XDP_TX_FRAMES;
}

int by_xdp_socket_open(struct by_xdp_socket **out, const char *interface, uint32_t queue, bool frags)
{
    struct by_xdp_socket *socket = calloc(1, sizeof(*socket));
    void *memory = mmap(NULL, MEMORY_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int error;

    if (socket == NULL || memory == MAP_FAILED) {
        if (memory != MAP_FAILED)
            munmap(memory, MEMORY_BYTES);
        free(socket);
        return by_fail(BY_ENOMEM, "no memory for AF_XDP: %zu bytes", MEMORY_BYTES);
    }
    socket->memory = memory;
    error = create(socket, interface, queue, frags);
    if (error != 0) {
        by_xdp_socket_free(socket);
        return error;
    }
    deal_frames(socket);
    *out = socket;
    return 0;
}

void by_xdp_socket_free(struct by_xdp_socket *socket)
{
    if (socket->socket != NULL)
        xsk_socket__delete(socket->socket);
    if (socket->umem != NULL)
        xsk_umem__delete(socket->umem);
    munmap(socket->memory, MEMORY_BYTES);
    free(socket);
}

int by_xdp_socket_fd(const struct by_xdp_socket *socket)
{
    return xsk_socket__fd(socket->socket);
}

/* Descriptors of the next packet, 0 when not all of it is there. */
static uint32_t peek_packet(struct by_xdp_socket *socket, uint32_t *at)
{
    uint32_t count = 0;
    uint32_t index = 0;

    while (xsk_ring_cons__peek(&socket->rx, 1, &index) == 1) {
        if (count++ == 0)
            *at = index;
        if ((xsk_ring_cons__rx_desc(&socket->rx, index)->options & XDP_PKT_CONTD) == 0)
            return count;
    }
    if (count > 0)
        xsk_ring_cons__cancel(&socket->rx, count);
    return 0;
}

int32_t by_xdp_socket_take(struct by_xdp_socket *socket, uint8_t *flat, uint32_t flat_bytes,
                           const uint8_t **data)
{
    uint32_t at = 0;
    uint32_t bytes = 0;
    uint32_t count;

    if (socket->lent_count + 4 > BY_XDP_LENT_MAX)
        return 0;
    count = peek_packet(socket, &at);
    if (count == 0)
        return 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct xdp_desc *descriptor = xsk_ring_cons__rx_desc(&socket->rx, at + i);
        const uint8_t *from = xsk_umem__get_data(socket->memory, descriptor->addr);

        *data = count == 1 ? from : flat;
        if (count > 1 && bytes + descriptor->len <= flat_bytes)
            memcpy(flat + bytes, from, descriptor->len);
        bytes += descriptor->len;
        if (socket->lent_count < BY_XDP_LENT_MAX)
            socket->lent[socket->lent_count++] = descriptor->addr & ~(uint64_t)(BY_XDP_FRAME_BYTES - 1);
    }
    xsk_ring_cons__release(&socket->rx, count);
    return count > 1 && bytes > flat_bytes ? -1 : (int32_t)bytes;
}

void by_xdp_socket_refill(struct by_xdp_socket *socket)
{
    uint32_t at = 0;

    if (socket->lent_count == 0)
        return;
    /* There is always room: the ring holds as many as there are frames. */
    if (xsk_ring_prod__reserve(&socket->fill, socket->lent_count, &at) != socket->lent_count)
        return;
    for (uint32_t i = 0; i < socket->lent_count; i++)
        *xsk_ring_prod__fill_addr(&socket->fill, at + i) = socket->lent[i];
    xsk_ring_prod__submit(&socket->fill, socket->lent_count);
    socket->lent_count = 0;
    if (xsk_ring_prod__needs_wakeup(&socket->fill))
        recvfrom(by_xdp_socket_fd(socket), NULL, 0, MSG_DONTWAIT, NULL, NULL);
}

static void collect(struct by_xdp_socket *socket)
{
    uint32_t at = 0;
    uint32_t count = (uint32_t)xsk_ring_cons__peek(&socket->completion, BY_XDP_TX_FRAMES, &at);

    for (uint32_t i = 0; i < count; i++)
        socket->tx_free[socket->tx_free_count++] = *xsk_ring_cons__comp_addr(&socket->completion, at + i);
    if (count > 0)
        xsk_ring_cons__release(&socket->completion, count);
    socket->tx_pending -= count;
}

void by_xdp_socket_flush(struct by_xdp_socket *socket)
{
    if (socket->kick) {
        socket->kick = false;
        for (uint32_t kicks = 0; kicks < KICKS_MAX; kicks++) {
            /* Copy mode sends a few packets in each call and says EAGAIN while more wait. */
            if (sendto(by_xdp_socket_fd(socket), NULL, 0, MSG_DONTWAIT, NULL, 0) >= 0)
                break;
            if (errno != EAGAIN && errno != EBUSY && errno != ENOBUFS && errno != EINTR)
                break;
        }
    }
    collect(socket);
}

int by_xdp_socket_put(struct by_xdp_socket *socket, const struct by_xdp_piece *pieces, uint32_t count)
{
    uint32_t bytes = 0;
    uint32_t frames, at = 0;
    uint32_t piece = 0, piece_at = 0;

    for (uint32_t i = 0; i < count; i++)
        bytes += pieces[i].bytes;
    frames = (bytes + BY_XDP_FRAME_BYTES - 1) / BY_XDP_FRAME_BYTES;
    if (socket->tx_free_count < frames || xsk_ring_prod__reserve(&socket->tx, frames, &at) != frames) {
        by_xdp_socket_flush(socket);
        if (socket->tx_free_count < frames || xsk_ring_prod__reserve(&socket->tx, frames, &at) != frames)
            return BY_EAGAIN;
    }
    for (uint32_t f = 0; f < frames; f++) {
        struct xdp_desc *descriptor = xsk_ring_prod__tx_desc(&socket->tx, at + f);
        uint64_t address = socket->tx_free[--socket->tx_free_count];
        uint8_t *frame = xsk_umem__get_data(socket->memory, address);
        uint32_t used = 0;

        while (piece < count && used < BY_XDP_FRAME_BYTES) {
            uint32_t part = pieces[piece].bytes - piece_at;

            if (part > BY_XDP_FRAME_BYTES - used)
                part = BY_XDP_FRAME_BYTES - used;
            if (part > 0)
                memcpy(frame + used, pieces[piece].data + piece_at, part);
            used += part;
            piece_at += part;
            if (piece_at == pieces[piece].bytes) {
                piece++;
                piece_at = 0;
            }
        }
        descriptor->addr = address;
        descriptor->len = used;
        descriptor->options = f + 1 < frames ? XDP_PKT_CONTD : 0;
    }
    xsk_ring_prod__submit(&socket->tx, frames);
    socket->tx_pending += frames;
    socket->kick = true;
    return 0;
}
