/* The queue between banyand's threads: a list under a lock, and an eventfd that wakes the loop. See
 * event.h. */
#include "control/service/daemon/event.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "control/base/alloc.h"

struct by_event_queue {
    pthread_mutex_t lock;
    struct by_daemon_event *first, *last;
    int fd;
};

struct by_event_queue *by_event_queue_open(void)
{
    struct by_event_queue *queue = by_alloc(1, sizeof(*queue));

    pthread_mutex_init(&queue->lock, NULL);
    queue->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (queue->fd < 0) {
        perror("banyand: eventfd");
        exit(3);
    }
    return queue;
}

void by_event_queue_close(struct by_event_queue *queue)
{
    if (queue == NULL)
        return;
    while (queue->first != NULL) {
        struct by_daemon_event *event = queue->first;

        queue->first = event->next;
        free(event->beat);
        free(event);
    }
    close(queue->fd);
    pthread_mutex_destroy(&queue->lock);
    free(queue);
}

int by_event_queue_fd(const struct by_event_queue *queue)
{
    return queue->fd;
}

void by_event_put(struct by_event_queue *queue, const struct by_daemon_event *event)
{
    struct by_daemon_event *copy = by_alloc(1, sizeof(*copy));

    *copy = *event;
    copy->next = NULL;
    pthread_mutex_lock(&queue->lock);
    if (queue->first == NULL)
        queue->first = copy;
    else
        queue->last->next = copy;
    queue->last = copy;
    pthread_mutex_unlock(&queue->lock);
    eventfd_write(queue->fd, 1);
}

int by_event_take(struct by_event_queue *queue, struct by_daemon_event *event)
{
    struct by_daemon_event *first;
    eventfd_t count;

    pthread_mutex_lock(&queue->lock);
    first = queue->first;
    if (first != NULL)
        queue->first = first->next;
    else
        eventfd_read(queue->fd, &count);
    pthread_mutex_unlock(&queue->lock);
    if (first == NULL)
        return 0;
    *event = *first;
    event->next = NULL;
    free(first);
    return 1;
}
