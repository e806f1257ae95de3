/*
 * One AF_XDP socket: its memory, its four rings, its frames. Packets are written and read in place;
 * a packet larger than a frame is a chain of descriptors. The program on the interface selects the
 * packets. Neighbours: dataplane/xdp_port.c (ports of the switch), host-driver/afxdp.c (hosts).
 * Linux only; one thread for each socket.
 */
#ifndef BY_LINUX_XDP_SOCKET_H
#define BY_LINUX_XDP_SOCKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <xdp/xsk.h>

/* Maximum frames for the packets of one rx. */
#define BY_XDP_LENT_MAX 256u

struct by_xdp_socket_config {
    const char *interface;
    uint32_t queue;
    uint32_t frame_bytes; /* a power of two, 2048 or 4096; a received packet has 256 bytes less */
    uint32_t rx_frames;   /* frames for receiving, and their descriptors; a power of two */
    uint32_t tx_frames;   /* a power of two */
    bool frags;           /* packets may span frames */
};

struct by_xdp_socket {
    struct by_xdp_socket_config config;
    struct xsk_umem *umem;
    struct xsk_socket *socket;
    uint8_t *memory;
    size_t memory_bytes;
    struct xsk_ring_prod fill, tx;
    struct xsk_ring_cons completion, rx;
    uint32_t tx_free_count;
    uint64_t *tx_free;
    uint32_t tx_pending; /* passed to the kernel, not completed */
    bool kick;           /* a system call is required */
    uint32_t lent_count;
    uint64_t lent[BY_XDP_LENT_MAX];
    uint16_t port; /* port number in the table */
};

/* A packet in frames: `count` pieces. */
struct by_xdp_piece {
    const uint8_t *data;
    uint32_t bytes;
};

/* Opens a socket on a queue. The rings must not move, so the socket is on the heap. Returns 0, or
 * -errno with the failed step in `*step`: "memory", "registered memory" (locked: ulimit -l) or
 * "socket". Requires root. If another socket holds the queue it waits up to 4 s before it returns
 * -EBUSY, because the kernel releases the queue of a closed socket late. */
int by_xdp_socket_open(struct by_xdp_socket **socket, const struct by_xdp_socket_config *config,
                       const char **step);
void by_xdp_socket_free(struct by_xdp_socket *socket);
int by_xdp_socket_fd(const struct by_xdp_socket *socket);

/*
 * Takes the next complete packet. A packet that spans frames is copied to `flat` (flat_bytes);
 * otherwise `data` points into a frame, which stays valid until by_xdp_socket_refill. Returns its
 * bytes, 0 when there is none, -1 for a packet that does not fit (dropped).
 */
int32_t by_xdp_socket_take(struct by_xdp_socket *socket, uint8_t *flat, uint32_t flat_bytes,
                           const uint8_t **data);
/* Returns the frames of all taken packets to the kernel. */
void by_xdp_socket_refill(struct by_xdp_socket *socket);
/* Returns whether at least half of the descriptors for receiving hold frames that have not been
 * taken. */
bool by_xdp_socket_is_half_full(const struct by_xdp_socket *socket);
/* Queues one packet of `count` pieces. Returns 0, or -EAGAIN when there is no room. */
int by_xdp_socket_put(struct by_xdp_socket *socket, const struct by_xdp_piece *pieces, uint32_t count);
/* Makes the kernel send the queued packets, and collects the frames of sent ones. */
void by_xdp_socket_flush(struct by_xdp_socket *socket);

#endif
