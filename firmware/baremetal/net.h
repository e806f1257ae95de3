/*
 * A network port: a virtio-net device without offloads (virtio 1.2, section 5.1). Frames come in
 * buffers of the pool. What goes out is headers in a place of the port's own and, chained to them,
 * a payload where it lies: in the engine's memory, until the device has sent it; or a whole buffer.
 */
#ifndef BY_BAREMETAL_NET_H
#define BY_BAREMETAL_NET_H

#include "firmware/baremetal/pool.h"
#include "firmware/baremetal/virtio.h"
#include "offload/engine/engine.h"
#include "offload/wire/frame.h"

/* Packets that can be on their way out (count): each takes two descriptors. */
#define BY_NET_SLOTS (BY_RING_MAX / 2)
/* Headers of a packet and a small payload (bytes). */
#define BY_NET_HEAD_BYTES (BY_FRAME_HEADER_BYTES + BY_WIRE_HEADER_BYTES + BY_ERR_BYTES)

struct by_net_slot {
    uint32_t ref;    /* of the engine, or BY_REF_NONE */
    uint16_t buffer; /* or BY_BUFFER_NONE */
    uint8_t head[BY_NET_HEADER_BYTES + BY_NET_HEAD_BYTES];
};

struct by_metal_net {
    struct by_virtio device;
    struct by_virtio_ring rx, tx;
    struct by_pool *pool;
    struct by_engine *engine;
    char name[8];    /* "p0" */
    bool tells_link; /* the device says whether there is a carrier */
    /* From the active table. */
    bool addressed;
    uint32_t own_ip;
    uint8_t own_mac[BY_MAC_BYTES], peer_mac[BY_MAC_BYTES];
    uint64_t rx_packets, rx_bytes, tx_packets, tx_bytes, tx_dropped;
    uint16_t posted[BY_RING_MAX]; /* rx: the buffer of each descriptor */
    uint16_t idle[BY_RING_MAX];   /* rx: descriptors without a buffer */
    uint16_t idle_count;
    uint16_t slot_free[BY_NET_SLOTS];
    uint16_t slot_free_count, slot_count;
    struct by_net_slot slot[BY_NET_SLOTS];
};

/* Starts the device as port `index`. Its receive ring is full of buffers of `pool`. */
void by_net_open(struct by_metal_net *net, uint32_t index, const struct by_virtio *device,
                 struct by_pool *pool, struct by_engine *engine);
/* The device says that there is no carrier. */
bool by_net_is_down(const struct by_metal_net *net);
/* Up to `most` received frames, each a buffer that is the caller's now. */
uint32_t by_net_receive(struct by_metal_net *net, uint16_t *buffers, uint32_t most);

/* Where to write the headers of a packet to send, BY_NET_HEAD_BYTES; NULL when the device takes no
 * more (counted as dropped). by_net_send must follow. */
uint8_t *by_net_head(struct by_metal_net *net);
/* Sends the `head_bytes` written there and, behind them, `payload_bytes` at `payload`. `ref` is
 * released, and `buffer` dropped, when the device is done. */
void by_net_send(struct by_metal_net *net, uint32_t head_bytes, const uint8_t *payload,
                 uint32_t payload_bytes, uint32_t ref, uint16_t buffer);
/* Sends a buffer's frame as it is, and drops it then (at once when the device takes no more). */
void by_net_forward(struct by_metal_net *net, uint16_t buffer);
/* Shows the device what is to be sent. */
void by_net_flush(struct by_metal_net *net);
/* Takes back what was sent. */
void by_net_reclaim(struct by_metal_net *net);
/* Asks for interrupts, or none. True when there is work already. */
bool by_net_alert(struct by_metal_net *net, bool wanted);

#endif
