/*
 * Work that takes long - planning, lowering, pushes, the store - on one thread of its own, so that
 * heartbeats and hosts are never kept waiting. Tasks run in the order given, one at a time.
 */
#ifndef BY_SERVICE_DAEMON_WORK_H
#define BY_SERVICE_DAEMON_WORK_H

#include "control/service/daemon/event.h"

struct by_daemon;
struct by_daemon_work;

struct by_task {
    void (*run)(struct by_task *task);                            /* on the worker's thread */
    void (*done)(struct by_daemon *daemon, struct by_task *task); /* then on the loop's */
    struct by_task *next;
};

struct by_daemon_work *by_work_start(struct by_event_queue *events);
/* Readable from the moment on at which the worker is to end: for tasks that wait. */
int by_work_stop_fd(const struct by_daemon_work *work);
/* Waits for the task that runs; those behind it are forgotten. */
void by_work_stop(struct by_daemon_work *work);
/* The task is the worker's until `done`. */
void by_work_do(struct by_daemon_work *work, struct by_task *task);

#endif
