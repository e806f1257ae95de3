/* What holds for both doors (http.h), whether this banyand leads (http.c) or follows (follow.c):
 * where they are, who may send requests, and the headers of answers. Any thread. */
#ifndef BY_SERVICE_DAEMON_HTTP_LOCAL_H
#define BY_SERVICE_DAEMON_HTTP_LOCAL_H

#include <microhttpd.h>
#include <stdbool.h>

#include "control/service/daemon/daemon.h"

/* The reason of a refusal where by_http_is_foreign. */
#define BY_HTTP_FOREIGN                                                                                      \
    "only programs on this machine and the page at / may send requests: omit Origin, and use Host: localhost"

/* For MHD_start_daemon: refuses connections of other machines, whatever address the door is bound
 * to. */
enum MHD_Result by_http_accept_local(void *context, const struct sockaddr *address, socklen_t bytes);
/* Whether a web page of another origin sends the request. `reads`: the method is GET or HEAD. */
bool by_http_is_foreign(struct MHD_Connection *connection, bool reads);
/* Queues an answer with the headers of every answer, and `allow`, unless it is NULL, as the methods
 * of the path. */
enum MHD_Result by_http_queue(struct MHD_Connection *connection, unsigned status, const char *type,
                              const void *bytes, size_t size, enum MHD_ResponseMemoryMode mode,
                              const char *allow);
/* Listens at the socket of the options, and creates the folder of the default path. Returns the
 * descriptor, or -1 with `problem`. */
int by_http_listen(const struct by_daemon_options *options, struct by_problem *problem);
/* Reports, by errno, that the port of the options cannot be opened; returns BY_EIO. */
int by_http_no_port(const struct by_daemon_options *options, struct by_problem *problem);

#endif
