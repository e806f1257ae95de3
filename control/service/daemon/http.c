/* The HTTP server, with libmicrohttpd on the daemon's loop. See http.h; http_read.c answers
 * requests that only read, http_jobs.c those for jobs; follow.c serves while another one leads. */
#include "control/service/daemon/http.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "control/base/alloc.h"
#include "control/fabric/build.h"
#include "control/service/daemon/http_inside.h"
#include "control/service/daemon/http_local.h"
#include "offload/base/errors.h"

/* Maximum number of server runs in one turn of the loop (count), so that heartbeats are not
 * delayed. */
#define TURNS_MAX 16

static enum MHD_Result answer(struct by_http_request *request, unsigned status, const char *type,
                              const void *bytes, size_t size, enum MHD_ResponseMemoryMode mode)
{
    return by_http_queue(request->connection, status, type, bytes, size, mode,
                         status == MHD_HTTP_METHOD_NOT_ALLOWED ? request->allow : NULL);
}

enum MHD_Result by_http_answer(struct by_http_request *request, unsigned status, const char *type,
                               void *bytes, size_t size)
{
    return answer(request, status, type, bytes, size, MHD_RESPMEM_MUST_FREE);
}

enum MHD_Result by_http_answer_copy(struct by_http_request *request, const char *type, const void *bytes,
                                    size_t size)
{
    return answer(request, MHD_HTTP_OK, type, bytes, size, MHD_RESPMEM_MUST_COPY);
}

enum MHD_Result by_http_answer_constant(struct by_http_request *request, const char *type, const void *bytes,
                                        size_t size)
{
    return answer(request, MHD_HTTP_OK, type, bytes, size, MHD_RESPMEM_PERSISTENT);
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

static enum MHD_Result route(struct by_http_request *request, const char *path, const char *method)
{
    bool reads = strcmp(method, MHD_HTTP_METHOD_GET) == 0 || strcmp(method, MHD_HTTP_METHOD_HEAD) == 0;
    bool jobs = strncmp(path, "/v1/jobs", 8) == 0 && (path[8] == 0 || path[8] == '/');
    enum MHD_Result result;

    if (by_http_is_foreign(request->connection, reads))
        return by_http_refuse(request, MHD_HTTP_FORBIDDEN, BY_HTTP_FOREIGN);
    if (jobs && !reads && !request->door->may_change)
        return by_http_refuse(request, MHD_HTTP_FORBIDDEN,
                              "this port is open to every user of the machine and read-only: create and end "
                              "jobs through banyand's socket (banyan job --controller unix:PATH), or here "
                              "after banyand --http-open");
    if (request->too_large)
        return by_http_refuse(request, MHD_HTTP_CONTENT_TOO_LARGE, "a body has at most 1 MiB");
    if (jobs) /* the server omits the body of an answer to HEAD */
        return by_http_jobs(request, path + 8, reads ? MHD_HTTP_METHOD_GET : method);
    if (by_http_read(request, path, reads, &result))
        return result;
    return by_http_refuse(
        request, MHD_HTTP_NOT_FOUND,
        "no such path; available: GET / (the live page), GET /v1/status, GET /v1/fabric, "
        "GET /v1/live, GET /v1/history, GET /metrics, GET and POST /v1/jobs, GET and DELETE "
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

/* libmicrohttpd calls this for the head, for pieces of the body, at its end, and after a
 * resumption. */
static enum MHD_Result handle(void *context, struct MHD_Connection *connection, const char *path,
                              const char *method, const char *version, const char *upload,
                              size_t *upload_bytes, void **state)
{
    struct by_http_door *door = context;
    struct by_daemon *daemon = door->daemon;
    struct by_http_request *request = *state;

    (void)version;
    if (request == NULL) {
        request = by_alloc(1, sizeof(*request));
        request->daemon = daemon;
        request->door = door;
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

/* Appends a connection to the list of its door. */
static void append(struct by_http_door *door, struct by_http_connection *connection)
{
    struct by_http_connection **at = &door->oldest;

    while (*at != NULL)
        at = &(*at)->next;
    *at = connection;
    connection->next = NULL;
    door->connection_count++;
}

/* Removes a connection. Returns false if it was ended and is no longer in the list. */
static bool take_out(struct by_http_door *door, const struct by_http_connection *connection)
{
    struct by_http_connection **at = &door->oldest;

    while (*at != NULL && *at != connection)
        at = &(*at)->next;
    if (*at == NULL)
        return false;
    *at = connection->next;
    door->connection_count--;
    return true;
}

/* Ends the connection that has been idle for longest, except those that wait for an answer. */
static void end_oldest(struct by_http_door *door)
{
    for (struct by_http_connection *at = door->oldest; at != NULL; at = at->next) {
        if (MHD_get_connection_info(at->connection, MHD_CONNECTION_INFO_CONNECTION_SUSPENDED)->suspended)
            continue;
        shutdown(MHD_get_connection_info(at->connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd,
                 SHUT_RDWR); /* the server notices and closes it */
        take_out(door, at);
        return;
    }
}

static void on_connection(void *context, struct MHD_Connection *connection, void **state,
                          enum MHD_ConnectionNotificationCode code)
{
    struct by_http_door *door = context;

    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        struct by_http_connection *own = by_alloc(1, sizeof(*own));

        own->connection = connection;
        *state = own;
        if (door->connection_count >= BY_HTTP_CONNECTIONS_KEPT)
            end_oldest(door);
        append(door, own);
    } else if (*state != NULL) {
        take_out(door, *state);
        free(*state);
        *state = NULL;
    }
}

/* Moves the connection to the end of the list after a request. */
static void renew(struct by_http_door *door, struct MHD_Connection *connection)
{
    struct by_http_connection *own =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;

    if (own != NULL && take_out(door, own))
        append(door, own);
}

static void forget(void *context, struct MHD_Connection *connection, void **state,
                   enum MHD_RequestTerminationCode code)
{
    struct by_daemon *daemon = context;
    struct by_http_request *request = *state, **at = &daemon->http->first;

    (void)code;
    if (request == NULL)
        return;
    renew(request->door, connection);
    while (*at != request)
        at = &(*at)->next;
    *at = request->next;
    json_decref(request->result);
    free(request->body);
    free(request);
    *state = NULL;
}

static void run(const struct by_http_door *door)
{
    MHD_UNSIGNED_LONG_LONG wait;

    if (door->server == NULL)
        return;
    MHD_run(door->server);
    for (unsigned i = 0; i < TURNS_MAX && MHD_get_timeout(door->server, &wait) == MHD_YES && wait == 0; i++)
        MHD_run(door->server);
}

static void on_ready(struct by_daemon *daemon, struct by_watcher *watcher, uint32_t events)
{
    (void)daemon;
    (void)events;
    run(watcher->context);
}

void by_http_tick(struct by_daemon *daemon)
{
    if (daemon->http == NULL)
        return;
    run(&daemon->http->socket);
    run(&daemon->http->port);
}

/* Opens one door: on the listening socket `fd`, or, if it is -1, at the loopback port of the
 * options. */
static int open_door(struct by_daemon *daemon, struct by_http_door *door, int fd)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons(daemon->options.http_port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct MHD_OptionItem where[] = {
        {fd >= 0 ? MHD_OPTION_LISTEN_SOCKET : MHD_OPTION_SOCK_ADDR, fd, fd >= 0 ? NULL : (void *)&address},
        {MHD_OPTION_END, 0, NULL}};

    door->daemon = daemon;
    door->server = MHD_start_daemon(
        MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME, daemon->options.http_port, by_http_accept_local, NULL,
        handle, door, MHD_OPTION_ARRAY, where, MHD_OPTION_CONNECTION_LIMIT, BY_HTTP_CONNECTIONS_MAX,
        MHD_OPTION_CONNECTION_TIMEOUT, BY_HTTP_IDLE_S, MHD_OPTION_NOTIFY_COMPLETED, forget, daemon,
        MHD_OPTION_NOTIFY_CONNECTION, on_connection, door, MHD_OPTION_END);
    if (door->server == NULL)
        return BY_EIO;
    door->watcher =
        (struct by_watcher){.fd = MHD_get_daemon_info(door->server, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd,
                            .ready = on_ready,
                            .context = door};
    return by_daemon_watch(daemon, &door->watcher, EPOLLIN);
}

static int open_socket(struct by_daemon *daemon, struct by_problem *problem)
{
    int fd = by_http_listen(&daemon->options, problem);

    if (fd < 0)
        return BY_EIO;
    daemon->http->has_socket = true;
    daemon->http->socket.may_change = true;
    if (open_door(daemon, &daemon->http->socket, fd) == 0)
        return 0;
    return by_problem_say(problem, BY_EIO, "--socket %s: cannot serve HTTP there", daemon->options.socket);
}

static int open_port(struct by_daemon *daemon, struct by_problem *problem)
{
    struct by_http_door *door = &daemon->http->port;
    const union MHD_DaemonInfo *info;

    door->may_change = daemon->options.http_open;
    if (open_door(daemon, door, -1) != 0)
        return by_http_no_port(&daemon->options, problem);
    info = MHD_get_daemon_info(door->server, MHD_DAEMON_INFO_BIND_PORT);
    if (info != NULL)
        daemon->options.http_port = info->port;
    return 0;
}

int by_http_open(struct by_daemon *daemon, struct by_problem *problem)
{
    int error = 0;

    if (daemon->options.socket == NULL && !daemon->options.http)
        return 0;
    daemon->http = by_alloc(1, sizeof(*daemon->http));
    by_http_read_open(daemon);
    if (daemon->options.socket != NULL)
        error = open_socket(daemon, problem);
    if (error == 0 && daemon->options.http)
        error = open_port(daemon, problem);
    return error;
}

static void close_door(struct by_http_door *door)
{
    if (door->server == NULL)
        return;
    run(door);
    by_daemon_unwatch(door->daemon, &door->watcher);
    MHD_stop_daemon(door->server); /* this also closes the listening socket */
}

void by_http_close(struct by_daemon *daemon)
{
    struct by_http *http = daemon->http;

    if (http == NULL)
        return;
    for (struct by_http_request *request = http->first; request != NULL; request = request->next)
        if (request->phase == BY_HTTP_WAITS)
            by_http_finish(request, MHD_HTTP_SERVICE_UNAVAILABLE,
                           json_pack("{s:s}", "error", "banyand is ending"));
    close_door(&http->socket);
    close_door(&http->port);
    if (http->has_socket)
        unlink(daemon->options.socket);
    by_http_read_close(daemon);
    free(http);
    daemon->http = NULL;
}
