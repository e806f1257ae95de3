/*
 * A network port: a virtio-net device without offloads (virtio 1.2, section 5.1). Received frames
 * are in buffers of the pool. A sent frame consists of headers in the port's own memory and,
 * chained to them, a payload in the engine's memory, which stays referenced until the device has
 * sent it; or it is a whole buffer.
 */
#ifndef BY_BAREMETAL_NET_H
#define BY_BAREMETAL_NET_H

#include "firmware/baremetal/pool.h"
#include "firmware/baremetal/virtio.h"
#include "offload/engine/engine.h"
#include "offload/wire/frame.h"

/* Maximum packets being sent (count): each requires two descriptors. */
#define BY_NET_SLOTS (BY_RING_MAX / 2)
/* Size of the headers of a packet and a small payload (bytes). */
#define BY_NET_HEAD_BYTES (BY_FRAME_HEADER_BYTES + BY_WIRE_HEADER_BYTES + BY_ERR_BYTES)

struct by_net_slot {
    uint32_t ref;    /* of the engine, or BY_REF_NONE */
    uint16_t buffer; /* or BY_BUFFER_NONE */
    uint8_t head[BY_BUFFER_LEAD + BY_NET_HEADER_BYTES + BY_NET_HEAD_BYTES];
};

struct by_metal_net {
    struct by_virtio device;
    struct by_virtio_ring rx, tx;
    struct by_pool *pool;
    struct by_engine *engine;
    char name[8];    /* "p0" */
    bool tells_link; /* the device reports its carrier */
    uint8_t mac[6];  /* of the device; zero if it has none */
    uint16_t vlan;   /* tag of frames sent; 0: none */
    uint64_t rx_packets, rx_bytes, tx_packets, tx_bytes, tx_dropped;
    uint16_t posted[BY_RING_MAX]; /* rx: the buffer of each descriptor */
    uint16_t idle[BY_RING_MAX];   /* rx: descriptors without a buffer */
    uint16_t idle_count;
    uint16_t slot_free[BY_NET_SLOTS];
    uint16_t slot_free_count, slot_count;
    struct by_net_slot slot[BY_NET_SLOTS];
};

/* Starts the device as port `index`, with a receive ring full of buffers of `pool`. */
void by_net_open(struct by_metal_net *net, uint32_t index, const struct by_virtio *device,
                 struct by_pool *pool, struct by_engine *engine);
/* Returns whether the device reports no carrier. */
bool by_net_is_down(const struct by_metal_net *net);
/* Receives up to `most` frames, each in a buffer that then belongs to the caller. Tags of VLANs are
 * left to by_net_untag. */
uint32_t by_net_receive(struct by_metal_net *net, uint16_t *buffers, uint32_t most);

/* Removes the tag of a received frame, if it has one. Returns whether the frame belongs to `vlan`;
 * 0: frames without a tag. */
bool by_net_untag(struct by_metal_net *net, uint16_t buffer, uint16_t vlan);
/* Returns room for the headers of a packet to send, BY_NET_HEAD_BYTES; NULL when the device accepts
 * no more (counted as dropped). by_net_send must follow. */
uint8_t *by_net_head(struct by_metal_net *net);
/* Sends the `head_bytes` written there, followed by `payload_bytes` at `payload`. When the device
 * is done, `ref` is released and `buffer` dropped. */
void by_net_send(struct by_metal_net *net, uint32_t head_bytes, const uint8_t *payload,
                 uint32_t payload_bytes, uint32_t ref, uint16_t buffer);
/* Sends a buffer's frame unchanged, and drops the buffer afterwards (at once when the device
 * accepts no more). */
void by_net_forward(struct by_metal_net *net, uint16_t buffer);
/* Notifies the device of the packets to send. */
void by_net_flush(struct by_metal_net *net);
/* Reclaims the descriptors of sent packets. */
void by_net_reclaim(struct by_metal_net *net);
/* Enables or disables interrupts. Returns true when there is work already. */
bool by_net_alert(struct by_metal_net *net, bool wanted);

#endif
