/* Internal declarations of the HTTP server. See http.h. */
#ifndef BY_SERVICE_DAEMON_HTTP_INSIDE_H
#define BY_SERVICE_DAEMON_HTTP_INSIDE_H

#include <jansson.h>
#include <microhttpd.h>

#include "control/service/daemon/daemon.h"

enum by_http_phase {
    BY_HTTP_COMES = 0, /* its body is arriving */
    BY_HTTP_ASKED,     /* jobs.c has the request and may answer at once */
    BY_HTTP_WAITS,     /* the connection is suspended until the answer */
    BY_HTTP_DONE,      /* `status` and `result` are set */
};

/* A connection at a door. */
struct by_http_connection {
    struct MHD_Connection *connection;
    struct by_http_connection *next;
};

/* One of the two doors: the socket of the daemon's user or the loopback port. */
struct by_http_door {
    struct by_daemon *daemon;
    struct MHD_Daemon *server; /* NULL: closed */
    struct by_watcher watcher;
    bool may_change; /* requests may create and end jobs */
    uint32_t connection_count;
    struct by_http_connection *oldest; /* by their last request or their start; without those already ended */
};

/* An answer that is kept for a while, so that many readers cost no more than one. */
struct by_http_kept {
    char *text; /* NULL: none yet */
    size_t bytes;
    uint64_t made_ms, news; /* time, and latest line of news, when it was made */
};

struct by_http {
    struct by_http_door socket, port;
    bool has_socket;               /* this process created the file and removes it */
    struct by_http_request *first; /* list of all requests */
    struct by_http_kept fabric, live, history;
};

struct by_http_request {
    struct by_daemon *daemon;
    struct by_http_door *door;
    struct MHD_Connection *connection;
    enum by_http_phase phase;
    unsigned status;
    json_t *result;
    bool too_large;
    const char *allow; /* methods that a refusal with 405 names; or NULL */
    char *body;
    size_t body_bytes;
    struct by_http_request *next;
};

/* Queue an answer; take over `bytes` and `object`. */
enum MHD_Result by_http_answer(struct by_http_request *request, unsigned status, const char *type,
                               void *bytes, size_t size);
/* Answer 200 with a copy of the bytes, or with bytes that never change. */
enum MHD_Result by_http_answer_copy(struct by_http_request *request, const char *type, const void *bytes,
                                    size_t size);
enum MHD_Result by_http_answer_constant(struct by_http_request *request, const char *type, const void *bytes,
                                        size_t size);
enum MHD_Result by_http_answer_json(struct by_http_request *request, unsigned status, json_t *object);
enum MHD_Result by_http_refuse(struct by_http_request *request, unsigned status, const char *text);
/* Sets the answer of a request that is suspended or about to be. */
void by_http_finish(struct by_http_request *request, unsigned status, json_t *result);

/* Handles everything below /v1/jobs: `rest` is the path after it. */
enum MHD_Result by_http_jobs(struct by_http_request *request, const char *rest, const char *method);

/* http_read.c: the paths that only read. Opens and closes what they keep. */
void by_http_read_open(struct by_daemon *daemon);
void by_http_read_close(struct by_daemon *daemon);
/* Answers and returns true if there is such a path. `reads`: the method is GET or HEAD. */
bool by_http_read(struct by_http_request *request, const char *path, bool reads, enum MHD_Result *result);

#endif
