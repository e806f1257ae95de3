/* Frame buffers; see pool.h. */
#include "firmware/baremetal/pool.h"

#include "firmware/baremetal/memory.h"
#include "offload/base/assert.h"

#define LINE 64u

void by_pool_open(struct by_pool *pool, uint16_t count, uint32_t frame_bytes)
{
    uint32_t room = (BY_BUFFER_LEAD + BY_NET_HEADER_BYTES + frame_bytes + LINE - 1) / LINE * LINE;
    uint8_t *data = by_memory_take("the frame buffers", (uint64_t)count * room);

    BY_ASSERT(count < BY_BUFFER_NONE);
    *pool = (struct by_pool){
        .buffer = by_memory_take("the list of frame buffers", count * sizeof(struct by_metal_buffer)),
        .room = room,
        .count = count,
        .free = BY_BUFFER_NONE,
    };
    for (uint16_t i = count; i-- > 0;) {
        pool->buffer[i] = (struct by_metal_buffer){.data = data + (uint64_t)i * room, .next = pool->free};
        pool->free = i;
    }
}

uint16_t by_pool_take(struct by_pool *pool)
{
    uint16_t index = pool->free;

    if (index == BY_BUFFER_NONE)
        return index;
    pool->free = pool->buffer[index].next;
    pool->buffer[index].users = 1;
    pool->buffer[index].at = BY_BUFFER_LEAD + BY_NET_HEADER_BYTES;
    return index;
}

void by_pool_drop(struct by_pool *pool, uint16_t index)
{
    struct by_metal_buffer *buffer = &pool->buffer[index];

    BY_ASSERT(index < pool->count && buffer->users > 0);
    if (--buffer->users > 0)
        return;
    buffer->next = pool->free;
    pool->free = index;
}
