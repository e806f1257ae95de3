/* Buffers of banyan_alloc: pieces of the range that switches read in place, if the transport has
 * one, else ordinary memory. They belong to their communicator. Threads as for requests. */
#include <stdlib.h>

#include "host-driver/arena.h"
#include "host-driver/comm.h"
#include "host-driver/error.h"

#define ALIGNMENT ((size_t)4096)

/* A buffer in ordinary memory; the arena keeps track of its own pieces. */
struct by_host_buffer {
    struct by_host_buffer *next;
    void *memory;
};

static int is_comm(const struct banyan_comm *comm)
{
    return comm != NULL && comm->magic == BY_COMM_MAGIC;
}

static struct by_arena *arena_of(const struct banyan_comm *comm)
{
    return comm->transport != NULL ? comm->transport->arena : NULL;
}

static int take_plain(struct banyan_comm *comm, size_t bytes, void **memory)
{
    struct by_host_buffer *buffer = malloc(sizeof(*buffer));

    if (buffer != NULL && bytes <= SIZE_MAX - ALIGNMENT)
        buffer->memory = aligned_alloc(ALIGNMENT, (bytes + ALIGNMENT) / ALIGNMENT * ALIGNMENT);
    if (buffer == NULL || bytes > SIZE_MAX - ALIGNMENT || buffer->memory == NULL) {
        free(buffer);
        return by_fail(BY_ENOMEM, "banyan_alloc: no memory for a buffer of %zu bytes", bytes);
    }
    buffer->next = comm->buffers;
    comm->buffers = buffer;
    *memory = buffer->memory;
    return 0;
}

banyan_status_t banyan_alloc(struct banyan_comm *comm, size_t bytes, void **memory)
{
    struct by_arena *arena;
    void *piece;

    if (!is_comm(comm) || memory == NULL)
        return by_fail(BY_EINVAL, "banyan_alloc: %s",
                       memory == NULL ? "memory is NULL" : "comm is not a communicator");
    arena = arena_of(comm);
    piece = arena != NULL ? by_arena_take(arena, bytes) : NULL;
    if (piece == NULL)
        return (banyan_status_t)take_plain(comm, bytes, memory);
    *memory = piece;
    return BANYAN_OK;
}

banyan_status_t banyan_dealloc(struct banyan_comm *comm, void *memory)
{
    struct by_arena *arena;

    if (!is_comm(comm))
        return by_fail(BY_EINVAL, "banyan_dealloc: comm is not a communicator");
    arena = arena_of(comm);
    if (arena != NULL && memory != NULL && by_arena_give(arena, memory) == 0)
        return BANYAN_OK;
    for (struct by_host_buffer **link = &comm->buffers; memory != NULL && *link != NULL;
         link = &(*link)->next) {
        struct by_host_buffer *buffer = *link;

        if (buffer->memory != memory)
            continue;
        *link = buffer->next;
        free(buffer->memory);
        free(buffer);
        return BANYAN_OK;
    }
    return by_fail(BY_EINVAL, "banyan_dealloc: %p is not a buffer of this communicator", memory);
}

void by_buffers_free(struct banyan_comm *comm)
{
    while (comm->buffers != NULL) {
        struct by_host_buffer *buffer = comm->buffers;

        comm->buffers = buffer->next;
        free(buffer->memory);
        free(buffer);
    }
}
