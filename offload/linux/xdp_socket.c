/* AF_XDP sockets over libxdp's rings; see xdp_socket.h. One thread for each socket. */
#include "offload/linux/xdp_socket.h"

#include <errno.h>
#include <linux/if_xdp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>

/* Constants since Linux 6.6, which older headers lack. */
#ifndef XDP_USE_SG
#define XDP_USE_SG (1u << 4)
#endif
#ifndef XDP_PKT_CONTD
#define XDP_PKT_CONTD (1u << 0)
#endif

#define KICKS_MAX 64u /* system calls for one batch; the kernel sends about 32 packets in each */

/* The kernel unbinds a closed socket from its queue in the background; on a busy machine this takes
 * seconds. */
#define BUSY_TRIES    200u
#define BUSY_SLEEP_NS 20000000

static int create(struct by_xdp_socket *socket, const char **step)
{
    const struct by_xdp_socket_config *config = &socket->config;
    struct xsk_umem_config umem = {.fill_size = config->rx_frames,
                                   .comp_size = config->tx_frames,
                                   .frame_size = config->frame_bytes,
                                   .frame_headroom = 0};
    struct xsk_socket_config options = {
        .rx_size = config->rx_frames,
        .tx_size = config->tx_frames,
        .libxdp_flags = XSK_LIBXDP_FLAGS__INHIBIT_PROG_LOAD,
        .bind_flags = (uint16_t)(XDP_USE_NEED_WAKEUP | (config->frags ? XDP_USE_SG : 0))};
    int error = xsk_umem__create(&socket->umem, socket->memory, socket->memory_bytes, &socket->fill,
                                 &socket->completion, &umem);

    *step = "registered memory";
    if (error != 0)
        return error;
    *step = "socket";
    error = xsk_socket__create(&socket->socket, config->interface, config->queue, socket->umem, &socket->rx,
                               &socket->tx, &options);
    if (error != 0) {
        xsk_umem__delete(socket->umem);
        socket->umem = NULL;
    }
    return error;
}

/* Creates the socket, and retries for a while if the queue is busy: its socket may just have been
 * closed. */
static int create_patiently(struct by_xdp_socket *socket, const char **step)
{
    const struct timespec sleep = {.tv_nsec = BUSY_SLEEP_NS};
    int error = create(socket, step);

    for (unsigned i = 0; error == -EBUSY && i < BUSY_TRIES; i++) {
        nanosleep(&sleep, NULL);
        error = create(socket, step);
    }
    return error;
}

/* Distributes all frames: those for receiving go into the fill ring, those for sending are free. */
static void deal_frames(struct by_xdp_socket *socket)
{
    const struct by_xdp_socket_config *config = &socket->config;
    uint32_t at = 0;

    xsk_ring_prod__reserve(&socket->fill, config->rx_frames, &at);
    for (uint32_t i = 0; i < config->rx_frames; i++)
        *xsk_ring_prod__fill_addr(&socket->fill, at + i) = (uint64_t)i * config->frame_bytes;
    xsk_ring_prod__submit(&socket->fill, config->rx_frames);
    for (uint32_t i = 0; i < config->tx_frames; i++)
        socket->tx_free[i] = (uint64_t)(config->rx_frames + i) * config->frame_bytes;
    socket->tx_free_count = config->tx_frames;
}

int by_xdp_socket_open(struct by_xdp_socket **out, const struct by_xdp_socket_config *config,
                       const char **step)
{
    size_t bytes = (size_t)(config->rx_frames + config->tx_frames) * config->frame_bytes;
    struct by_xdp_socket *socket = calloc(1, sizeof(*socket));
    uint64_t *tx_free = calloc(config->tx_frames, sizeof(*tx_free));
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int error;

    *step = "memory";
    if (socket == NULL || tx_free == NULL || memory == MAP_FAILED) {
        if (memory != MAP_FAILED)
            munmap(memory, bytes);
        free(tx_free);
        free(socket);
        return -ENOMEM;
    }
    socket->config = *config;
    socket->tx_free = tx_free;
    socket->memory = memory;
    socket->memory_bytes = bytes;
    error = create_patiently(socket, step);
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
    munmap(socket->memory, socket->memory_bytes);
    free(socket->tx_free);
    free(socket);
}

int by_xdp_socket_fd(const struct by_xdp_socket *socket)
{
    return xsk_socket__fd(socket->socket);
}

/* Returns the number of descriptors of the next packet, 0 when the packet is incomplete. */
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
            socket->lent[socket->lent_count++] =
                descriptor->addr & ~(uint64_t)(socket->config.frame_bytes - 1);
    }
    xsk_ring_cons__release(&socket->rx, count);
    return count > 1 && bytes > flat_bytes ? -1 : (int32_t)bytes;
}

bool by_xdp_socket_is_half_full(const struct by_xdp_socket *socket)
{
    uint32_t produced = __atomic_load_n(socket->rx.producer, __ATOMIC_RELAXED);

    return produced - *socket->rx.consumer >= socket->config.rx_frames / 2;
}

void by_xdp_socket_refill(struct by_xdp_socket *socket)
{
    uint32_t at = 0;

    if (socket->lent_count == 0)
        return;
    /* There is always room: the ring has as many entries as there are frames. */
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
    uint32_t count = (uint32_t)xsk_ring_cons__peek(&socket->completion, socket->config.tx_frames, &at);

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
            /* In copy mode each call sends a few packets and returns EAGAIN while more wait. */
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
    frames = (bytes + socket->config.frame_bytes - 1) / socket->config.frame_bytes;
    if (socket->tx_free_count < frames || xsk_ring_prod__reserve(&socket->tx, frames, &at) != frames) {
        by_xdp_socket_flush(socket);
        if (socket->tx_free_count < frames || xsk_ring_prod__reserve(&socket->tx, frames, &at) != frames)
            return -EAGAIN;
    }
    for (uint32_t f = 0; f < frames; f++) {
        struct xdp_desc *descriptor = xsk_ring_prod__tx_desc(&socket->tx, at + f);
        uint64_t address = socket->tx_free[--socket->tx_free_count];
        uint8_t *frame = xsk_umem__get_data(socket->memory, address);
        uint32_t used = 0;

        while (piece < count && used < socket->config.frame_bytes) {
            uint32_t part = pieces[piece].bytes - piece_at;

            if (part > socket->config.frame_bytes - used)
                part = socket->config.frame_bytes - used;
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
