/* Bytes that wait on a connection of a host, in one direction. Neighbour: members.c. The loop's
 * thread. */
#ifndef BY_SERVICE_DAEMON_QUEUE_H
#define BY_SERVICE_DAEMON_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Initial size (bytes), sufficient for a connection that is not a rank. */
#define BY_QUEUE_BYTES_LEAST ((size_t)4 << 10)
/* Size that an empty queue keeps (bytes). */
#define BY_QUEUE_BYTES_KEPT ((size_t)64 << 10)

/* Waiting bytes: [at, used) of `room`. */
struct by_queue {
    uint8_t *bytes;
    size_t at, used, room;
};

/* Makes room for `more` bytes. Returns false without memory; the queue is then unchanged. */
bool by_queue_reserve(struct by_queue *queue, size_t more);
/* Frees the memory of a long message once the queue is empty. */
void by_queue_release(struct by_queue *queue);

#endif
