/*
 * Connections with a deadline: to switches (session.c) and to banyand (http.c), over UNIX sockets
 * and TCP. Every failure has a text that names the address and what to do. Any thread.
 */
#ifndef BY_SERVICE_CONTROLLER_DIAL_H
#define BY_SERVICE_CONTROLLER_DIAL_H

#include <stddef.h>
#include <stdint.h>

#include "control/fabric/topology.h"

/* Whom one calls, for texts, and how long. */
struct by_dial {
    const char *address; /* as the user gave it */
    const char *form;    /* of such an address: what is told when it is none */
    const char *silent;  /* a question for the user when there is no answer in time */
    const char *refused; /* the same when nobody listens */
    uint32_t timeout_ms;
};

/* Monotonic (milliseconds); a deadline is one of these. */
int64_t by_dial_now_ms(void);
/* Waits for POLLIN or POLLOUT of a socket. 0; BY_ETIMEDOUT at the deadline, or BY_EIO, with
 * `problem`. */
int by_dial_wait(const struct by_dial *dial, int fd, short events, int64_t deadline_ms,
                 struct by_problem *problem);
/* Connects to the socket at `path`, or to "HOST:PORT", whose text has `length` bytes. 0 and *fd,
 * non-blocking; BY_EINVAL (the address), BY_EAGAIN (nobody listens), BY_EIO or BY_ETIMEDOUT with
 * `problem`.
 */
int by_dial_unix(const struct by_dial *dial, const char *path, int64_t deadline_ms, int *fd,
                 struct by_problem *problem);
int by_dial_tcp(const struct by_dial *dial, const char *text, size_t length, int64_t deadline_ms, int *fd,
                struct by_problem *problem);

#endif
