/*
 * A question to banyand over HTTP, as its commands ask: one request, one answer, blocking, with a
 * deadline. Neighbours: control/service/daemon answers. Any thread.
 */
#ifndef BY_SERVICE_CONTROLLER_HTTP_H
#define BY_SERVICE_CONTROLLER_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "control/fabric/topology.h"

/* An address or path, its end included (bytes). */
#define BY_HTTP_PATH_MAX 128u

/* Where a banyand of this user has its socket unless it is told otherwise:
 * /run/banyan/banyand.socket, or of others than root in XDG_RUNTIME_DIR; false when they have none.
 */
bool by_http_socket(char path[BY_HTTP_PATH_MAX]);
/* The server of BANYAN_CONTROLLER, when that is an http:// address (hosts have it for another
 * purpose), else the socket of this user's banyand or of root's, the first that may be written to,
 * else the loopback port where banyand listens unless it is told otherwise, which answers everybody
 * and obeys nobody. */
void by_http_default(char address[BY_HTTP_PATH_MAX]);

/*
 * Asks the server at "unix:PATH", "http://HOST:PORT" or "HOST:PORT" (a path behind it is not looked
 * at). `body` is sent when it is not NULL. `*reply` is the answer's body, with a zero behind it,
 * the caller's to free; `*status` its number (200). 0; BY_EINVAL (the address), BY_EIO,
 * BY_ETIMEDOUT, BY_EFORMAT (the answer is not HTTP) or BY_ELIMIT (it is longer than 256 MiB) with
 * `problem`.
 */
int by_http_ask(const char *address, const char *method, const char *path, const char *body,
                uint32_t timeout_ms, int *status, char **reply, struct by_problem *problem);

#endif
