/*
 * The reducer: the only place that decides which parts of banyand handle an event, and in which
 * order. All other parts post events (by_daemon_tell) and do not call each other's handlers. The
 * loop's thread.
 */
#ifndef BY_SERVICE_DAEMON_REDUCE_H
#define BY_SERVICE_DAEMON_REDUCE_H

#include "control/service/daemon/daemon.h"

/* The function for by_daemon.reduce. */
void by_reduce(struct by_daemon *daemon, const struct by_daemon_event *event);

#endif
