/*
 * HTTP for programs of this machine: status, metrics, jobs. Two doors: a socket that the daemon's
 * user alone may use, through which jobs are made and ended, and a port on loopback, which every
 * user reaches and which only tells (decision 219). libmicrohttpd on the daemon's own loop, so that
 * every answer is made by the loop's thread; a request that makes or ends a job waits, as a
 * connection that sleeps, until the tables are active. Whoever is not on this machine is refused,
 * and so is a page of a browser. Bodies, connections and time are bounded.
 */
#ifndef BY_SERVICE_DAEMON_HTTP_H
#define BY_SERVICE_DAEMON_HTTP_H

#include "control/service/daemon/daemon.h"

/* TCP port where nothing else is said. */
#define BY_HTTP_PORT 46249u
/* A body (bytes): the names of some ten thousand ranks. */
#define BY_HTTP_BODY_MAX (1u << 20)
/* Connections at a time (count), and how long one may be idle (seconds). */
#define BY_HTTP_CONNECTIONS_MAX 64u
/* With more than so many (count) at a door, each further one ends the one that has been idle for
 * longest. */
#define BY_HTTP_CONNECTIONS_KEPT 48u
#define BY_HTTP_IDLE_S           60u

/* Opens the doors that the options ask for; a port of 0 becomes the one that was free. 0, or BY_EIO
 * with `problem`. */
int by_http_open(struct by_daemon *daemon, struct by_problem *problem);
void by_http_close(struct by_daemon *daemon);
/* Timeouts of connections: every tick. */
void by_http_tick(struct by_daemon *daemon);

#endif
