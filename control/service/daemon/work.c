/* The worker's thread. See work.h. */
#include "control/service/daemon/work.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "control/base/alloc.h"
#include "control/service/daemon/thread.h"

struct by_daemon_work {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t news;
    struct by_task *first, *last;
    struct by_event_queue *events;
    bool end;
    int stop_fd;
};

static void *work(void *argument)
{
    struct by_daemon_work *self = argument;

    pthread_mutex_lock(&self->lock);
    while (!self->end) {
        struct by_task *task = self->first;

        if (task == NULL) {
            pthread_cond_wait(&self->news, &self->lock);
            continue;
        }
        self->first = task->next;
        pthread_mutex_unlock(&self->lock);
        task->run(task);
        by_event_put(self->events, &(struct by_daemon_event){.kind = BY_EVENT_WORKED, .task = task});
        pthread_mutex_lock(&self->lock);
    }
    pthread_mutex_unlock(&self->lock);
    return NULL;
}

struct by_daemon_work *by_work_start(struct by_event_queue *events)
{
    struct by_daemon_work *self = by_alloc(1, sizeof(*self));

    self->events = events;
    self->stop_fd = eventfd(0, EFD_CLOEXEC);
    if (self->stop_fd < 0) {
        perror("banyand: eventfd");
        exit(3);
    }
    pthread_mutex_init(&self->lock, NULL);
    pthread_cond_init(&self->news, NULL);
    by_thread_start(&self->thread, work, self);
    return self;
}

int by_work_stop_fd(const struct by_daemon_work *self)
{
    return self->stop_fd;
}

void by_work_stop(struct by_daemon_work *self)
{
    if (self == NULL)
        return;
    pthread_mutex_lock(&self->lock);
    self->end = true;
    pthread_cond_signal(&self->news);
    pthread_mutex_unlock(&self->lock);
    eventfd_write(self->stop_fd, 1); /* after `end`: the task that it stops is the last one */
    pthread_join(self->thread, NULL);
    pthread_cond_destroy(&self->news);
    pthread_mutex_destroy(&self->lock);
    close(self->stop_fd);
    free(self);
}

void by_work_do(struct by_daemon_work *self, struct by_task *task)
{
    task->next = NULL;
    pthread_mutex_lock(&self->lock);
    if (self->first == NULL)
        self->first = task;
    else
        self->last->next = task;
    self->last = task;
    pthread_cond_signal(&self->news);
    pthread_mutex_unlock(&self->lock);
}
