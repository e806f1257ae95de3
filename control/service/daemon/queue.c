/* Bytes that wait on a connection; see queue.h. */
#include "control/service/daemon/queue.h"

#include <stdlib.h>
#include <string.h>

bool by_queue_reserve(struct by_queue *queue, size_t more)
{
    size_t room = queue->room;
    uint8_t *bytes;

    if (queue->at > 0) {
        memmove(queue->bytes, queue->bytes + queue->at, queue->used - queue->at);
        queue->used -= queue->at;
        queue->at = 0;
    }
    if (room - queue->used >= more)
        return true;
    while (room - queue->used < more)
        room = room > 0 ? room * 2 : BY_QUEUE_BYTES_LEAST;
    bytes = realloc(queue->bytes, room);
    if (bytes == NULL)
        return false;
    queue->bytes = bytes;
    queue->room = room;
    return true;
}

void by_queue_release(struct by_queue *queue)
{
    if (queue->at < queue->used || queue->room <= BY_QUEUE_BYTES_KEPT)
        return;
    free(queue->bytes);
    *queue = (struct by_queue){0};
}
