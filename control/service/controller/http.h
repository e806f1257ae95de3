/* An HTTP client for banyand, used by the commands: one request, one answer, blocking, with a
 * deadline. Neighbours: control/service/daemon answers. Any thread. */
#ifndef BY_SERVICE_CONTROLLER_HTTP_H
#define BY_SERVICE_CONTROLLER_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "control/fabric/topology.h"

/* Maximum length of a path, or of a list of addresses, with its terminating zero (bytes). */
#define BY_HTTP_PATH_MAX 512u

/* Finds the default socket of a banyand of this user: /run/banyan/banyand.socket for root, a path
 * in XDG_RUNTIME_DIR for other users. Returns false when that variable is not set. */
bool by_http_socket(char path[BY_HTTP_PATH_MAX]);
/* Finds the default server: BANYAN_CONTROLLER, when that is an http:// address (on hosts it has
 * another purpose); else the first socket that is writable, of this user's banyand or of root's;
 * else banyand's default loopback port, which serves all local users and accepts no commands. */
void by_http_default(char address[BY_HTTP_PATH_MAX]);

/*
 * Sends a request to the server at "unix:PATH", "http://HOST:PORT" or "HOST:PORT" (a path after it
 * is ignored); of several with commas between, to the one that leads, and for 4 s it waits for one
 * to take over. A follower, if only it is asked or answers, names the leader. `body` is sent unless
 * it is NULL. `*reply` is the body of the answer, with a terminating zero; the caller frees it.
 * `*status` is the status code (200). Returns 0, BY_EINVAL (the address), BY_EIO, BY_ETIMEDOUT,
 * BY_EFORMAT (the answer is not HTTP) or BY_ELIMIT (it is longer than 256 MiB) with `problem`.
 */
int by_http_ask(const char *address, const char *method, const char *path, const char *body,
                uint32_t timeout_ms, int *status, char **reply, struct by_problem *problem);

#endif
