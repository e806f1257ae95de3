/*
 * A question to banyand over HTTP, as its commands ask: one request, one answer, blocking, with a deadline.
 * Neighbours: control/daemon answers. Any thread.
 */
#ifndef BY_CONTROLLER_HTTP_H
#define BY_CONTROLLER_HTTP_H

#include <stddef.h>
#include <stdint.h>

#include "control/topology/topology.h"

/* Where banyand listens unless it is told otherwise. */
#define BY_HTTP_ADDRESS "http://127.0.0.1:46249"

/*
 * Asks the server at "http://HOST:PORT" (a path behind it is not looked at). `body` is sent when it is not
 * NULL. `*reply` is the answer's body, with a zero behind it, the caller's to free; `*status` its number
 * (200). 0; BY_EINVAL (the address), BY_EIO, BY_ETIMEDOUT, BY_EFORMAT (the answer is not HTTP) or BY_ELIMIT
 * (it is longer than 64 MiB) with `problem`.
 */
int by_http_ask(const char *address, const char *method, const char *path, const char *body,
                uint32_t timeout_ms, int *status, char **reply, struct by_problem *problem);

#endif
