/* Frame buffers: one fixed set for all ports, each with a count of those who use it, and a free
 * list. */
#ifndef BY_BAREMETAL_POOL_H
#define BY_BAREMETAL_POOL_H

#include <stdint.h>

/* In front of each frame, as virtio-net has it (virtio 1.2, section 5.1.6: struct virtio_net_hdr).
 */
#define BY_NET_HEADER_BYTES 12u
#define BY_BUFFER_NONE      0xffffu

struct by_metal_buffer {
    uint8_t *data;  /* BY_NET_HEADER_BYTES, then the frame */
    uint16_t bytes; /* of the frame */
    uint16_t users;
    uint16_t next; /* in the free list */
};

struct by_pool {
    struct by_metal_buffer *buffer;
    uint32_t room; /* bytes at each `data` */
    uint16_t count;
    uint16_t free;
};

/* `count` buffers for frames of up to `frame_bytes`; memory from the plan. */
void by_pool_open(struct by_pool *pool, uint16_t count, uint32_t frame_bytes);
/* The index of a buffer with one user, or BY_BUFFER_NONE. */
uint16_t by_pool_take(struct by_pool *pool);
/* One user fewer; free without any. */
void by_pool_drop(struct by_pool *pool, uint16_t index);

static inline uint8_t *by_pool_frame(const struct by_pool *pool, uint16_t index)
{
    return pool->buffer[index].data + BY_NET_HEADER_BYTES;
}

#endif
