/* Connections with a deadline, over UNIX sockets and TCP: to switches (session.c) and to banyand
 * (http.c). Every error text names the address and the remedy. Any thread. */
#ifndef BY_SERVICE_CONTROLLER_DIAL_H
#define BY_SERVICE_CONTROLLER_DIAL_H

#include <stddef.h>
#include <stdint.h>

#include "control/fabric/topology.h"

/* The peer, for texts, and the timeout. */
struct by_dial {
    const char *address; /* as the user gave it */
    const char *form;    /* of such an address, for the error text when it is malformed */
    const char *silent;  /* a question for the user when no answer arrives in time */
    const char *refused; /* the same when the connection is refused */
    uint32_t timeout_ms;
    int stop_fd; /* every wait ends when it is readable; 0: none */
};

/* Returns the monotonic time (milliseconds); deadlines are on the same clock. */
int64_t by_dial_now_ms(void);
/* Waits for POLLIN or POLLOUT on a socket. Returns 0, or BY_ETIMEDOUT at the deadline, BY_EABORTED
 * when stop_fd is readable, or BY_EIO, with `problem`. */
int by_dial_wait(const struct by_dial *dial, int fd, short events, int64_t deadline_ms,
                 struct by_problem *problem);
/* Connect to the socket at `path`, or to the "HOST:PORT" of `length` bytes at `text`. Return 0 and
 * a non-blocking *fd, or BY_EINVAL (the address), BY_EAGAIN (no program listens), BY_EIO or
 * BY_ETIMEDOUT with `problem`. */
int by_dial_unix(const struct by_dial *dial, const char *path, int64_t deadline_ms, int *fd,
                 struct by_problem *problem);
int by_dial_tcp(const struct by_dial *dial, const char *text, size_t length, int64_t deadline_ms, int *fd,
                struct by_problem *problem);

#endif
