/*
 * The reducer: the one place that decides which part of banyand handles an event, and in which
 * order. The other parts post events (by_daemon_tell) and do not call each other's reactions. The
 * loop's thread.
 */
#ifndef BY_SERVICE_DAEMON_REDUCE_H
#define BY_SERVICE_DAEMON_REDUCE_H

#include "control/service/daemon/daemon.h"

/* For by_daemon.reduce. */
void by_reduce(struct by_daemon *daemon, const struct by_daemon_event *event);

#endif
