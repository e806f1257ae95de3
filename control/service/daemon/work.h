/* Long work (planning, lowering, pushes, the store) on one separate thread, so that it never delays
 * heartbeats and hosts. Tasks run one at a time, in the order given. */
#ifndef BY_SERVICE_DAEMON_WORK_H
#define BY_SERVICE_DAEMON_WORK_H

#include "control/service/daemon/event.h"

struct by_daemon;
struct by_daemon_work;

struct by_task {
    void (*run)(struct by_task *task);                            /* on the worker's thread */
    void (*done)(struct by_daemon *daemon, struct by_task *task); /* then on the loop's thread */
    struct by_task *next;
};

struct by_daemon_work *by_work_start(struct by_event_queue *events);
/* Becomes readable when the worker must end: for tasks that wait. */
int by_work_stop_fd(const struct by_daemon_work *work);
/* Waits for the running task and discards the queued ones. */
void by_work_stop(struct by_daemon_work *work);
/* Queues a task, which belongs to the worker until `done`. */
void by_work_do(struct by_daemon_work *work, struct by_task *task);

#endif
