/*
 * One AF_XDP socket: its memory, its four rings, its frames. Packets are written and read in place; a packet
 * of more than a frame is a chain of descriptors. One thread for each socket.
 */
#ifndef BY_HOST_XDP_SOCKET_H
#define BY_HOST_XDP_SOCKET_H

#include <stdbool.h>
#include <stdint.h>
#include <xdp/xsk.h>

#define BY_XDP_FRAME_BYTES 4096u
/* Frames that wait to be filled with what arrives, and descriptors of what has arrived. */
#define BY_XDP_RX_FRAMES 4096u
#define BY_XDP_TX_FRAMES 2048u
/* Frames that the packets of one rx hold at most. */
#define BY_XDP_LENT_MAX 256u

struct by_xdp_socket {
    struct xsk_umem *umem;
    struct xsk_socket *socket;
    uint8_t *memory;
    struct xsk_ring_prod fill, tx;
    struct xsk_ring_cons completion, rx;
    uint32_t tx_free_count;
    uint64_t tx_free[BY_XDP_TX_FRAMES];
    uint32_t tx_pending; /* given to the kernel, not completed */
    bool kick;           /* something waits for a system call */
    uint32_t lent_count;
    uint64_t lent[BY_XDP_LENT_MAX];
    uint16_t port; /* of the table */
};

/* A packet in frames: `count` pieces. */
struct by_xdp_piece {
    const uint8_t *data;
    uint32_t bytes;
};

/* Opens a socket on a queue. `frags`: packets may span frames. The rings must not move, so the socket is on
 * the heap. 0, or an error with its text. */
int by_xdp_socket_open(struct by_xdp_socket **socket, const char *interface, uint32_t queue, bool frags);
void by_xdp_socket_free(struct by_xdp_socket *socket);
int by_xdp_socket_fd(const struct by_xdp_socket *socket);

/*
 * Takes the next whole packet: copies it to `flat` (flat_bytes) when it spans frames, else points into a
 * frame, which stays ours until by_xdp_socket_refill. Returns its bytes, 0 when there is none, -1 for one
 * that does not fit (dropped).
 */
int32_t by_xdp_socket_take(struct by_xdp_socket *socket, uint8_t *flat, uint32_t flat_bytes,
                           const uint8_t **data);
/* Gives the frames of all packets taken back to the kernel. */
void by_xdp_socket_refill(struct by_xdp_socket *socket);
/* Queues one packet made of `count` pieces. 0, or BY_EAGAIN when there is no room. */
int by_xdp_socket_put(struct by_xdp_socket *socket, const struct by_xdp_piece *pieces, uint32_t count);
/* Tells the kernel to send what is queued, and collects frames that were sent. */
void by_xdp_socket_flush(struct by_xdp_socket *socket);

#endif
