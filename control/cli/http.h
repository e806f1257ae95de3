/* Sends one HTTP request to a local banyand and returns its answer. Single-threaded. */
#ifndef BY_CLI_HTTP_H
#define BY_CLI_HTTP_H

#include <jansson.h>
#include <stddef.h>

#include "control/fabric/topology.h"

struct by_cli_answer {
    int status; /* HTTP status: 200, 409, ... */
    char *body; /* ends in a zero that `bytes` does not count; the caller frees it */
    size_t bytes;
};

/*
 * Sends a request to `address` (unix:PATH, HOST:PORT or http://HOST:PORT; NULL: by_http_default()).
 * `body` may be NULL. Waits at most `seconds`. Returns 0 for any HTTP answer, whatever its status;
 * BY_EINVAL (invalid address), BY_EIO or BY_ETIMEDOUT with `problem` filled.
 */
int by_cli_ask(const char *address, const char *method, const char *path, const char *body, unsigned seconds,
               struct by_cli_answer *answer, struct by_problem *problem);

/*
 * Sends a request whose answer is JSON. For a status below 300 it returns 0 and *object, a
 * reference that the caller owns. Otherwise it prints banyand's error message and returns an exit
 * status.
 */
int by_cli_ask_json(const char *address, const char *method, const char *path, const char *body,
                    unsigned seconds, json_t **object);

/* What the row of --controller holds; AT is the table's BY_OPTION_AT. */
#define BY_CLI_CONTROLLER_ROW(member)                                                                        \
    BY_ROW_TEXT(0, "controller", "URL", AT(member),                                                          \
                "use banyand at unix:PATH or http://HOST:PORT, of several with commas between the one that " \
                "leads (default: BANYAN_CONTROLLER if that is "                                              \
                "http://, else the socket of this user's or root's banyand, else 127.0.0.1:46249)")

#endif
