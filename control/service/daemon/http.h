/*
 * HTTP for programs of this machine, and the live page: status, metrics, jobs. There are two doors.
 * A socket that only the daemon's user can use accepts commands that create and end jobs. A port on
 * loopback, which all users can reach, only reports (decision 219). libmicrohttpd runs on the
 * daemon's loop, so the loop's thread makes every answer. A request that creates or ends a job
 * suspends its connection until the tables are active. Connections from other machines and requests
 * of web pages are refused, except those of the live page. Bodies, connections and time are
 * bounded.
 */
#ifndef BY_SERVICE_DAEMON_HTTP_H
#define BY_SERVICE_DAEMON_HTTP_H

#include "control/service/daemon/daemon.h"

/* Default TCP port. */
#define BY_HTTP_PORT 46249u
/* Maximum size of a body (bytes): the names of about ten thousand ranks. */
#define BY_HTTP_BODY_MAX (1u << 20)
/* Maximum number of connections of a door (count), and how long one may be idle (seconds). */
#define BY_HTTP_CONNECTIONS_MAX 64u
/* Above this number of connections (count), each new one ends the one that has been idle for
 * longest. */
#define BY_HTTP_CONNECTIONS_KEPT 48u
#define BY_HTTP_IDLE_S           60u

/* Opens the doors of the options; port 0 becomes the free port found. Returns 0, or BY_EIO with
 * `problem`. */
int by_http_open(struct by_daemon *daemon, struct by_problem *problem);
void by_http_close(struct by_daemon *daemon);
/* Handles timeouts of connections, at every tick. */
void by_http_tick(struct by_daemon *daemon);

#endif
