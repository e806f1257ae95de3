/* Frame buffers: one fixed set for all ports, each with a count of its users, and a free list. */
#ifndef BY_BAREMETAL_POOL_H
#define BY_BAREMETAL_POOL_H

#include <stdint.h>

/* Size of the header in front of each frame in virtio-net (virtio 1.2, section 5.1.6: struct
 * virtio_net_hdr). */
#define BY_NET_HEADER_BYTES 12u
#define BY_BUFFER_NONE      0xffffu

/* Offset in a buffer at which the device's header begins: before it is room for the tag of a VLAN,
 * which is inserted into a frame that leaves. */
#define BY_BUFFER_LEAD 4u

struct by_metal_buffer {
    uint8_t *data;  /* BY_BUFFER_LEAD, BY_NET_HEADER_BYTES, then the frame */
    uint16_t at;    /* offset of the frame */
    uint16_t bytes; /* size of the frame */
    uint16_t users;
    uint16_t next; /* in the free list */
};

struct by_pool {
    struct by_metal_buffer *buffer;
    uint32_t room; /* size of each `data` */
    uint16_t count;
    uint16_t free;
};

/* Allocates `count` buffers for frames of up to `frame_bytes`; memory from the plan. */
void by_pool_open(struct by_pool *pool, uint16_t count, uint32_t frame_bytes);
/* Returns the index of a buffer with one user, or BY_BUFFER_NONE. */
uint16_t by_pool_take(struct by_pool *pool);
/* Removes one user; a buffer without users is free. */
void by_pool_drop(struct by_pool *pool, uint16_t index);

static inline uint8_t *by_pool_frame(const struct by_pool *pool, uint16_t index)
{
    return pool->buffer[index].data + pool->buffer[index].at;
}

#endif
