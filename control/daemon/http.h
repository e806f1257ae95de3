/*
 * HTTP on loopback: status, metrics, jobs. libmicrohttpd on the daemon's own loop, so that every answer is
 * made by the loop's thread; a request that makes or ends a job waits, as a connection that sleeps, until the
 * tables are active. Whoever is not on this machine is refused, and so is a page of a browser. Answers that
 * cannot be are small: bodies, connections and time are bounded.
 */
#ifndef BY_DAEMON_HTTP_H
#define BY_DAEMON_HTTP_H

#include "control/daemon/daemon.h"

/* TCP port where nothing else is said. */
#define BY_HTTP_PORT 46249u
/* A body (bytes): the names of some ten thousand ranks. */
#define BY_HTTP_BODY_MAX (1u << 20)
/* Connections at a time (count), and how long one may be idle (seconds). */
#define BY_HTTP_CONNECTIONS_MAX 64u
#define BY_HTTP_IDLE_S          60u

/* Listens on 127.0.0.1 at options.http_port (0: any that is free), and writes the port to `*port`. BY_EIO or
 * BY_EEXIST with `problem`. */
int by_http_open(struct by_daemon *daemon, uint16_t *port, struct by_problem *problem);
void by_http_close(struct by_daemon *daemon);
/* Timeouts of connections: every tick. */
void by_http_tick(struct by_daemon *daemon);

#endif
