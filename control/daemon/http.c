/* The server: requests of libmicrohttpd on the daemon's loop. See http.h; http_jobs.c answers what is about
 * jobs. */
#include "control/daemon/http.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "control/daemon/http_inside.h"
#include "control/daemon/status.h"
#include "control/topology/alloc.h"
#include "control/topology/build.h"
#include "offload/base/errors.h"

/* Turns of the server in one turn of the loop (count): then heartbeats come first again. */
#define TURNS_MAX 16

struct by_http {
    struct MHD_Daemon *server;
    struct by_watcher watcher;
    struct by_http_request *first; /* all that are there */
};

/* Who is not on this machine does not come in, whatever the socket is bound to. */
static enum MHD_Result accept_local(void *context, const struct sockaddr *address, socklen_t bytes)
{
    const struct sockaddr_in *from = (const struct sockaddr_in *)(const void *)address;

    (void)context;
    return bytes >= sizeof(*from) && address->sa_family == AF_INET &&
                   ntohl(from->sin_addr.s_addr) >> 24 == 127
               ? MHD_YES
               : MHD_NO;
}

enum MHD_Result by_http_answer(struct by_http_request *request, unsigned status, const char *type,
                               void *bytes, size_t size)
{
    struct MHD_Response *response = MHD_create_response_from_buffer(size, bytes, MHD_RESPMEM_MUST_FREE);
    enum MHD_Result result;

    if (response == NULL) {
        free(bytes);
        return MHD_NO;
    }
    MHD_add_response_header(response, "Content-Type", type);
    MHD_add_response_header(response, "Cache-Control", "no-store");
    result = MHD_queue_response(request->connection, status, response);
    MHD_destroy_response(response);
    return result;
}

enum MHD_Result by_http_answer_json(struct by_http_request *request, unsigned status, json_t *object)
{
    char *text = json_dumps(object, JSON_INDENT(1));

    json_decref(object);
    if (text == NULL)
        return MHD_NO;
    return by_http_answer(request, status, "application/json", text, strlen(text));
}

enum MHD_Result by_http_refuse(struct by_http_request *request, unsigned status, const char *text)
{
    return by_http_answer_json(request, status, json_pack("{s:s}", "error", text));
}

/* A page of a browser may not speak to us: neither by a name that it has made to mean this machine, nor as
 * another origin. */
static bool is_page(struct MHD_Connection *connection)
{
    static const char *const names[] = {"localhost", "127.0.0.1"};
    const char *host = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Host");

    if (MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Origin") != NULL)
        return true;
    for (size_t i = 0; host != NULL && i < sizeof(names) / sizeof(names[0]); i++) {
        size_t bytes = strlen(names[i]);

        if (strncmp(host, names[i], bytes) == 0 && (host[bytes] == 0 || host[bytes] == ':'))
            return false;
    }
    return host != NULL;
}

static enum MHD_Result answer_metrics(struct by_http_request *request)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *stream = open_memstream(&text, &bytes);

    if (stream == NULL)
        return MHD_NO;
    by_status_metrics(request->daemon, stream);
    fclose(stream);
    return by_http_answer(request, MHD_HTTP_OK, "text/plain; version=0.0.4", text, bytes);
}

static enum MHD_Result route(struct by_http_request *request, const char *path, const char *method)
{
    bool get = strcmp(method, "GET") == 0;

    if (is_page(request->connection))
        return by_http_refuse(request, MHD_HTTP_FORBIDDEN,
                              "requests come from programs on this machine: leave out Origin, and say Host: "
                              "localhost");
    if (request->too_large)
        return by_http_refuse(request, MHD_HTTP_CONTENT_TOO_LARGE, "a body has at most 1 MiB");
    if (get && strcmp(path, "/metrics") == 0)
        return answer_metrics(request);
    if (get && strcmp(path, "/v1/status") == 0)
        return by_http_answer_json(request, MHD_HTTP_OK, by_status_json(request->daemon));
    if (strncmp(path, "/v1/jobs", 8) == 0 && (path[8] == 0 || path[8] == '/'))
        return by_http_jobs(request, path + 8, method);
    return by_http_refuse(request, MHD_HTTP_NOT_FOUND,
                          "there are GET /v1/status, GET /metrics, GET and POST /v1/jobs, GET and DELETE "
                          "/v1/jobs/N, GET /v1/jobs/N/tables/HOST");
}

static void take_body(struct by_http_request *request, const char *bytes, size_t count)
{
    if (request->body_bytes + count > BY_HTTP_BODY_MAX) {
        request->too_large = true;
        return;
    }
    request->body = by_realloc(request->body, request->body_bytes + count + 1, 1);
    memcpy(request->body + request->body_bytes, bytes, count);
    request->body_bytes += count;
    request->body[request->body_bytes] = 0;
}

/* libmicrohttpd calls this with the head, with pieces of the body, at its end, and again when it is resumed.
 */
static enum MHD_Result handle(void *context, struct MHD_Connection *connection, const char *path,
                              const char *method, const char *version, const char *upload,
                              size_t *upload_bytes, void **state)
{
    struct by_daemon *daemon = context;
    struct by_http_request *request = *state;

    (void)version;
    if (request == NULL) {
        request = by_alloc(1, sizeof(*request));
        request->daemon = daemon;
        request->connection = connection;
        request->next = daemon->http->first;
        daemon->http->first = request;
        *state = request;
        return MHD_YES;
    }
    if (*upload_bytes > 0) {
        take_body(request, upload, *upload_bytes);
        *upload_bytes = 0;
        return MHD_YES;
    }
    if (request->phase == BY_HTTP_DONE)
        return by_http_answer_json(request, request->status, json_incref(request->result));
    return route(request, path, method);
}

static void forget(void *context, struct MHD_Connection *connection, void **state,
                   enum MHD_RequestTerminationCode code)
{
    struct by_daemon *daemon = context;
    struct by_http_request *request = *state, **at = &daemon->http->first;

    (void)connection;
    (void)code;
    if (request == NULL)
        return;
    while (*at != request)
        at = &(*at)->next;
    *at = request->next;
    json_decref(request->result);
    free(request->body);
    free(request);
    *state = NULL;
}

static void run(struct by_http *http)
{
    MHD_UNSIGNED_LONG_LONG wait;

    MHD_run(http->server);
    for (unsigned i = 0; i < TURNS_MAX && MHD_get_timeout(http->server, &wait) == MHD_YES && wait == 0; i++)
        MHD_run(http->server);
}

static void on_ready(struct by_daemon *daemon, struct by_watcher *watcher, uint32_t events)
{
    (void)watcher;
    (void)events;
    run(daemon->http);
}

void by_http_tick(struct by_daemon *daemon)
{
    if (daemon->http != NULL)
        run(daemon->http);
}

int by_http_open(struct by_daemon *daemon, uint16_t *port, struct by_problem *problem)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons(daemon->options.http_port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct by_http *http = by_alloc(1, sizeof(*http));
    const union MHD_DaemonInfo *info;

    daemon->http = http;
    http->server =
        MHD_start_daemon(MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME, daemon->options.http_port, accept_local,
                         daemon, handle, daemon, MHD_OPTION_SOCK_ADDR, (struct sockaddr *)&address,
                         MHD_OPTION_CONNECTION_LIMIT, BY_HTTP_CONNECTIONS_MAX, MHD_OPTION_CONNECTION_TIMEOUT,
                         BY_HTTP_IDLE_S, MHD_OPTION_NOTIFY_COMPLETED, forget, daemon, MHD_OPTION_END);
    if (http->server == NULL) {
        int number = errno;

        free(http);
        daemon->http = NULL;
        return by_problem_say(
            problem, BY_EIO,
            "--http %u: cannot listen on 127.0.0.1: %s; another port, or 0 for any that is free",
            daemon->options.http_port, strerror(number));
    }
    info = MHD_get_daemon_info(http->server, MHD_DAEMON_INFO_BIND_PORT);
    *port = info != NULL ? info->port : daemon->options.http_port;
    http->watcher = (struct by_watcher){
        .fd = MHD_get_daemon_info(http->server, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd, .ready = on_ready};
    return by_daemon_watch(daemon, &http->watcher, EPOLLIN);
}

void by_http_close(struct by_daemon *daemon)
{
    struct by_http *http = daemon->http;

    if (http == NULL)
        return;
    for (struct by_http_request *request = http->first; request != NULL; request = request->next)
        if (request->phase == BY_HTTP_WAITS)
            by_http_finish(request, MHD_HTTP_SERVICE_UNAVAILABLE,
                           json_pack("{s:s}", "error", "banyand ends"));
    run(http);
    by_daemon_unwatch(daemon, &http->watcher);
    MHD_stop_daemon(http->server);
    free(http);
    daemon->http = NULL;
}
