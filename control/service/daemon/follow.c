/* The doors of a follower. See follow.h. */
#include "control/service/daemon/follow.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "control/base/alloc.h"
#include "control/fabric/build.h"
#include "control/service/daemon/http.h"
#include "control/service/daemon/http_local.h"
#include "control/service/daemon/metrics.h"
#include "control/service/daemon/say.h"
#include "control/service/daemon/status.h"
#include "offload/base/errors.h"

/* How long a connection may be idle (seconds): short, so that idle ones leave room for others. */
#define IDLE_S 5u

struct by_follow {
    struct by_daemon_options *options;
    const char *topology;
    bool open;
    struct MHD_Daemon *socket, *port; /* NULL: closed */
    pthread_mutex_t lock;             /* of the rest, which the threads of the doors read */
    bool asked;                       /* etcd answered the last look */
    char leader[160];                 /* "": none seen yet */
    char text[400];
};

/* What a request gets; `text` is allocated. */
struct follow_answer {
    unsigned status;
    const char *type;
    char *text;
};

static struct follow_answer status_answer(const struct by_follow *follow)
{
    json_t *object = json_pack("{s:s, s:s, s:b, s:b, s:o, s:o}", "version", BY_VERSION, "topology",
                               follow->topology, "leads", 0, "follows", 1, "leader",
                               follow->leader[0] != 0 ? by_status_text(follow->leader) : json_null(), "text",
                               by_status_text(follow->text));
    char *text = json_dumps(object, JSON_INDENT(1));

    json_decref(object);
    return (struct follow_answer){MHD_HTTP_OK, "application/json", text};
}

static struct follow_answer metrics_answer(const struct by_follow *follow)
{
    size_t bytes = 0;
    char *text = NULL;
    FILE *stream = by_text_open(&text, &bytes);

    by_metrics_follower(follow->leader, follow->asked, stream);
    fclose(stream);
    return (struct follow_answer){MHD_HTTP_OK, BY_METRICS_TYPE, text};
}

static struct follow_answer refusal(unsigned status, const char *reason)
{
    json_t *object = json_pack("{s:o}", "error", by_status_text(reason));
    char *text = json_dumps(object, JSON_INDENT(1));

    json_decref(object);
    return (struct follow_answer){status, "application/json", text};
}

static struct follow_answer answer_of(const struct by_follow *follow, const char *path, bool reads)
{
    char reason[sizeof(follow->text) + 200];
    bool status = strcmp(path, "/v1/status") == 0;

    if (status || strcmp(path, "/metrics") == 0) {
        if (!reads)
            return refusal(MHD_HTTP_METHOD_NOT_ALLOWED, "this path supports GET and HEAD");
        return status ? status_answer(follow) : metrics_answer(follow);
    }
    snprintf(reason, sizeof(reason),
             "this banyand follows and accepts no requests: %s. Send them to the leader; here are GET "
             "/v1/status and GET /metrics",
             follow->text);
    return refusal(MHD_HTTP_SERVICE_UNAVAILABLE, reason);
}

/* libmicrohttpd calls this for the head, for pieces of the body, and at its end. */
static enum MHD_Result handle(void *context, struct MHD_Connection *connection, const char *path,
                              const char *method, const char *version, const char *upload,
                              size_t *upload_bytes, void **state)
{
    static int begun;
    bool reads = strcmp(method, MHD_HTTP_METHOD_GET) == 0 || strcmp(method, MHD_HTTP_METHOD_HEAD) == 0;
    struct by_follow *follow = context;
    struct follow_answer answer;

    (void)version;
    (void)upload;
    if (*state == NULL || *upload_bytes > 0) {
        *state = &begun;
        *upload_bytes = 0;
        return MHD_YES;
    }
    if (by_http_is_foreign(connection, reads)) {
        answer = refusal(MHD_HTTP_FORBIDDEN, BY_HTTP_FOREIGN);
    } else {
        pthread_mutex_lock(&follow->lock);
        answer = answer_of(follow, path, reads);
        pthread_mutex_unlock(&follow->lock);
    }
    if (answer.text == NULL)
        return MHD_NO;
    return by_http_queue(connection, answer.status, answer.type, answer.text, strlen(answer.text),
                         MHD_RESPMEM_MUST_FREE,
                         answer.status == MHD_HTTP_METHOD_NOT_ALLOWED ? "GET, HEAD" : NULL);
}

/* Opens one door: on the listening socket `fd`, or, if it is -1, at the loopback port. */
static struct MHD_Daemon *open_door(struct by_follow *follow, int fd)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons(follow->options->http_port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct MHD_OptionItem where[] = {
        {fd >= 0 ? MHD_OPTION_LISTEN_SOCKET : MHD_OPTION_SOCK_ADDR, fd, fd >= 0 ? NULL : (void *)&address},
        {MHD_OPTION_END, 0, NULL}};

    return MHD_start_daemon(MHD_USE_EPOLL_INTERNAL_THREAD, follow->options->http_port, by_http_accept_local,
                            NULL, handle, follow, MHD_OPTION_ARRAY, where, MHD_OPTION_CONNECTION_LIMIT,
                            BY_HTTP_CONNECTIONS_MAX, MHD_OPTION_CONNECTION_TIMEOUT, IDLE_S, MHD_OPTION_END);
}

static int open_doors(struct by_follow *follow, struct by_problem *problem)
{
    struct by_daemon_options *options = follow->options;

    if (options->socket != NULL) {
        int fd = by_http_listen(options, problem);

        if (fd < 0)
            return BY_EIO;
        follow->socket = open_door(follow, fd);
        if (follow->socket == NULL) {
            close(fd);
            unlink(options->socket);
            return by_problem_say(problem, BY_EIO, "--socket %s: cannot serve HTTP there", options->socket);
        }
    }
    if (options->http) {
        const union MHD_DaemonInfo *info;

        follow->port = open_door(follow, -1);
        if (follow->port == NULL)
            return by_http_no_port(options, problem);
        info = MHD_get_daemon_info(follow->port, MHD_DAEMON_INFO_BIND_PORT);
        if (info != NULL)
            options->http_port = info->port;
        by_daemon_say("status and metrics of this follower are at http 127.0.0.1:%u", options->http_port);
    }
    return 0;
}

struct by_follow *by_follow_open(struct by_daemon_options *options, const char *topology)
{
    struct by_follow *follow = by_alloc(1, sizeof(*follow));

    follow->options = options;
    follow->topology = topology;
    pthread_mutex_init(&follow->lock, NULL);
    return follow;
}

int by_follow_see(void *context, const char *leader, const char *text, struct by_problem *problem)
{
    struct by_follow *follow = context;

    pthread_mutex_lock(&follow->lock);
    follow->asked = leader != NULL;
    if (leader != NULL)
        snprintf(follow->leader, sizeof(follow->leader), "%s", leader);
    snprintf(follow->text, sizeof(follow->text), "%s", text);
    pthread_mutex_unlock(&follow->lock);
    if (follow->open)
        return 0;
    follow->open = true;
    return open_doors(follow, problem);
}

void by_follow_close(struct by_follow *follow)
{
    if (follow == NULL)
        return;
    if (follow->socket != NULL) {
        MHD_stop_daemon(follow->socket); /* this also closes the listening socket */
        unlink(follow->options->socket);
    }
    if (follow->port != NULL)
        MHD_stop_daemon(follow->port);
    pthread_mutex_destroy(&follow->lock);
    free(follow);
}
