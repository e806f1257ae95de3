/* One HTTP/1.0 request. The answer ends when the server closes the connection. See http.h. */
#include "control/service/controller/http.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "control/base/alloc.h"
#include "control/fabric/build.h"
#include "control/service/controller/dial.h"
#include "offload/base/errors.h"

/* Maximum size of an answer (bytes), sufficient for the status of a large fabric. */
#define REPLY_BYTES_MAX (256u << 20)
#define SCHEME          "http://"
/* The status with which a follower refuses a request. */
#define UNAVAILABLE 503

/* Sockets on which banyand accepts commands from its user only: root's, and the one in a user's
 * runtime folder. Sockets of switches in the same folder are called NAME.sock. */
#define SOCKET     "/run/banyan/banyand.socket"
#define SOCKET_OWN "%s/banyan/banyand.socket"

/* Among several servers: how long to wait for one to answer, for each answer, and between two
 * rounds (milliseconds). */
#define TAKEOVER_MS 4000
#define LOOK_MS     1000u
#define PAUSE_MS    100

struct call {
    struct by_dial dial;
    int64_t deadline_ms;
    int fd;
    struct by_problem *problem;
};

static int await(const struct call *call, short events)
{
    return by_dial_wait(&call->dial, call->fd, events, call->deadline_ms, call->problem);
}

/* Connects to "unix:PATH" or "[http://]HOST:PORT[/...]". */
static int dial(struct call *call)
{
    const char *address = call->dial.address;
    int error;

    if (strncmp(address, "unix:", 5) == 0) {
        error = by_dial_unix(&call->dial, address + 5, call->deadline_ms, &call->fd, call->problem);
    } else {
        if (strncmp(address, SCHEME, strlen(SCHEME)) == 0)
            address += strlen(SCHEME);
        error = by_dial_tcp(&call->dial, address, strcspn(address, "/"), call->deadline_ms, &call->fd,
                            call->problem);
    }
    /* No retry: BY_EAGAIN means a switch that may start later; a banyand that is absent is an
     * error. */
    return error == BY_EAGAIN ? BY_EIO : error;
}

static int send_all(const struct call *call, const char *bytes, size_t count)
{
    for (size_t done = 0; done < count;) {
        ssize_t sent = send(call->fd, bytes + done, count - done, MSG_NOSIGNAL);
        int error;

        if (sent > 0)
            done += (size_t)sent;
        else if (errno != EAGAIN && errno != EINTR)
            return by_problem_say(call->problem, BY_EIO, "%s: the connection is lost: %s", call->dial.address,
                                  strerror(errno));
        else if ((error = await(call, POLLOUT)) != 0)
            return error;
    }
    return 0;
}

/* Reads up to the end of the connection. */
static int receive_all(const struct call *call, char **bytes, size_t *count)
{
    size_t room = 0;

    *bytes = NULL;
    *count = 0;
    for (;;) {
        ssize_t got;
        int error;

        if (*count + 4096 > room)
            *bytes = by_realloc(*bytes, room = room ? 2 * room : 65536, 1);
        got = recv(call->fd, *bytes + *count, room - *count - 1, 0);
        if (got == 0)
            break;
        if (got > 0)
            *count += (size_t)got;
        else if (errno != EAGAIN && errno != EINTR)
            return by_problem_say(call->problem, BY_EIO, "%s: the connection is lost: %s", call->dial.address,
                                  strerror(errno));
        else if ((error = await(call, POLLIN)) != 0)
            return error;
        if (*count > REPLY_BYTES_MAX)
            return by_problem_say(call->problem, BY_ELIMIT, "%s: the answer exceeds %u bytes",
                                  call->dial.address, REPLY_BYTES_MAX);
    }
    (*bytes)[*count] = 0;
    return 0;
}

/* Removes the head: returns the status in `*status` and moves the body to the front. */
static int take_head(const struct call *call, char *bytes, size_t count, int *status)
{
    char *body = strstr(bytes, "\r\n\r\n");

    if (sscanf(bytes, "HTTP/1.%*c %d ", status) != 1 || body == NULL)
        return by_problem_say(call->problem, BY_EFORMAT,
                              "%.100s: the answer is not HTTP: check that banyand listens there",
                              call->dial.address);
    body += 4;
    memmove(bytes, body, count - (size_t)(body - bytes) + 1);
    return 0;
}

bool by_http_socket(char path[BY_HTTP_PATH_MAX])
{
    const char *folder = getenv("XDG_RUNTIME_DIR");
    int used = 0;

    if (geteuid() == 0)
        used = snprintf(path, BY_HTTP_PATH_MAX, SOCKET);
    else if (folder != NULL && folder[0] == '/')
        used = snprintf(path, BY_HTTP_PATH_MAX, SOCKET_OWN, folder);
    return used > 0 && used < (int)BY_HTTP_PATH_MAX;
}

void by_http_default(char address[BY_HTTP_PATH_MAX])
{
    const char *chosen = getenv("BANYAN_CONTROLLER");
    char path[BY_HTTP_PATH_MAX];

    if (chosen != NULL && strncmp(chosen, SCHEME, strlen(SCHEME)) == 0 && strlen(chosen) < BY_HTTP_PATH_MAX)
        snprintf(address, BY_HTTP_PATH_MAX, "%s", chosen);
    else if (by_http_socket(path) && strlen(path) + 6 < BY_HTTP_PATH_MAX && access(path, W_OK) == 0)
        snprintf(address, BY_HTTP_PATH_MAX, "unix:%.*s", (int)BY_HTTP_PATH_MAX - 6, path);
    else if (access(SOCKET, W_OK) == 0)
        snprintf(address, BY_HTTP_PATH_MAX, "unix:" SOCKET);
    else
        snprintf(address, BY_HTTP_PATH_MAX, "http://127.0.0.1:46249");
}

static int ask(const char *address, const char *method, const char *path, const char *body,
               uint32_t timeout_ms, int *status, char **reply, struct by_problem *problem)
{
    struct call call = {.dial = {.address = address,
                                 .form = "unix:PATH or http://HOST:PORT",
                                 .silent = "check that banyand is alive",
                                 .refused = "check that banyand runs with this --socket or --http",
                                 .timeout_ms = timeout_ms},
                        .deadline_ms = by_dial_now_ms() + timeout_ms,
                        .fd = -1,
                        .problem = problem};
    char head[1024], *bytes = NULL;
    size_t count = 0;
    int error = dial(&call);

    if (error == 0) {
        snprintf(head, sizeof(head),
                 "%s %.700s HTTP/1.0\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: "
                 "%zu\r\nConnection: close\r\n\r\n",
                 method, path, body ? strlen(body) : 0);
        error = send_all(&call, head, strlen(head));
    }
    if (error == 0 && body != NULL)
        error = send_all(&call, body, strlen(body));
    if (error == 0)
        error = receive_all(&call, &bytes, &count);
    if (error == 0)
        error = take_head(&call, bytes, count, status);
    if (call.fd >= 0)
        close(call.fd);
    if (error != 0) {
        free(bytes);
        return error;
    }
    *reply = bytes;
    return 0;
}

/* Finds the server of a list that leads: followers answer 503. Returns 0 and its address; that of a
 * follower, which names the leader, if no other answers; or the error of the last one. */
static int find_server(const char *list, char address[BY_HTTP_PATH_MAX], struct by_problem *problem)
{
    const int64_t end_ms = by_dial_now_ms() + TAKEOVER_MS;
    int error = BY_EINVAL;
    bool follower = false;

    if (strlen(list) >= BY_HTTP_PATH_MAX)
        return by_problem_say(problem, BY_EINVAL, "the addresses have more than %u bytes",
                              BY_HTTP_PATH_MAX - 1);
    for (;;) {
        char copy[BY_HTTP_PATH_MAX], *rest = NULL;

        snprintf(copy, sizeof(copy), "%s", list);
        for (char *each = strtok_r(copy, ",", &rest); each != NULL; each = strtok_r(NULL, ",", &rest)) {
            char *reply = NULL;
            int status;

            error = ask(each, "HEAD", "/", NULL, LOOK_MS, &status, &reply, problem);
            free(reply);
            if (error == BY_EINVAL)
                return error;
            if (error != 0)
                continue;
            snprintf(address, BY_HTTP_PATH_MAX, "%s", each);
            if (status != UNAVAILABLE)
                return 0;
            follower = true;
        }
        if (by_dial_now_ms() >= end_ms)
            return follower ? 0 : error;
        usleep(PAUSE_MS * 1000);
    }
}

int by_http_ask(const char *address, const char *method, const char *path, const char *body,
                uint32_t timeout_ms, int *status, char **reply, struct by_problem *problem)
{
    char found[BY_HTTP_PATH_MAX];
    int error;

    if (strchr(address, ',') == NULL)
        return ask(address, method, path, body, timeout_ms, status, reply, problem);
    error = find_server(address, found, problem);
    return error != 0 ? error : ask(found, method, path, body, timeout_ms, status, reply, problem);
}
