/* One question to a banyand over HTTP on this machine, and its answer. Single-threaded. */
#ifndef BY_CLI_HTTP_H
#define BY_CLI_HTTP_H

#include <jansson.h>
#include <stddef.h>

#include "control/fabric/topology.h"

struct by_cli_answer {
    int status; /* of HTTP: 200, 409, ... */
    char *body; /* ends in a zero that does not count; the caller's to free */
    size_t bytes;
};

/*
 * Asks `address` (unix:PATH, HOST:PORT or http://HOST:PORT; NULL: by_http_default()). `body` may be
 * NULL. 0 when there is an answer, whatever it says; BY_EINVAL (the address), BY_EIO or
 * BY_ETIMEDOUT with `problem`. Waits at most `seconds`.
 */
int by_cli_ask(const char *address, const char *method, const char *path, const char *body, unsigned seconds,
               struct by_cli_answer *answer, struct by_problem *problem);

/* The same for JSON: the object of an answer below 300, else an exit status after banyand's own
 * words were printed. 0 and *object, the caller's reference. */
int by_cli_ask_json(const char *address, const char *method, const char *path, const char *body,
                    unsigned seconds, json_t **object);

#endif
