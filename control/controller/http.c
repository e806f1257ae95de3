/* One request of HTTP/1.0, whose answer ends with the connection; see http.h. */
#include "control/controller/http.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "control/topology/alloc.h"
#include "control/topology/build.h"
#include "offload/base/errors.h"

/* An answer (bytes): the status of a large fabric has some. */
#define REPLY_BYTES_MAX (256u << 20)
#define SCHEME          "http://"

struct call {
    const char *address;
    uint32_t timeout_ms;
    int64_t deadline_ms;
    int fd;
    struct by_problem *problem;
};

static int64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int await(const struct call *call, short events)
{
    for (;;) {
        struct pollfd entry = {.fd = call->fd, .events = events};
        int64_t left = call->deadline_ms - now_ms();
        int count = left > 0 ? poll(&entry, 1, (int)left) : 0;

        if (count > 0)
            return 0;
        if (count == 0)
            return by_problem_say(call->problem, BY_ETIMEDOUT,
                                  "%s: no answer within %u ms: is banyand alive?", call->address,
                                  call->timeout_ms);
        if (errno != EINTR)
            return by_problem_say(call->problem, BY_EIO, "%s: poll: %s", call->address, strerror(errno));
    }
}

static int refused(const struct call *call, int number)
{
    return by_problem_say(call->problem, BY_EIO, "%.100s: %s: is banyand running, with this --http?",
                          call->address, strerror(number));
}

static int connect_to(struct call *call, const struct addrinfo *to)
{
    int number = 0, error;
    socklen_t size = sizeof(number);

    call->fd = socket(to->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (call->fd < 0)
        return refused(call, errno);
    if (connect(call->fd, to->ai_addr, to->ai_addrlen) == 0)
        return 0;
    if (errno != EINPROGRESS)
        return refused(call, errno);
    error = await(call, POLLOUT);
    if (error != 0)
        return error;
    getsockopt(call->fd, SOL_SOCKET, SO_ERROR, &number, &size);
    return number ? refused(call, number) : 0;
}

/* "[http://]HOST:PORT[/...]" */
static int dial(struct call *call)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found = NULL;
    const char *host =
        call->address + (strncmp(call->address, SCHEME, strlen(SCHEME)) == 0 ? strlen(SCHEME) : 0);
    size_t length = strcspn(host, "/");
    const char *colon;
    char text[200], port[16];
    int error;

    colon = memrchr(host, ':', length);
    if (colon == NULL || colon == host || (size_t)(colon - host) >= sizeof(text) ||
        length - (size_t)(colon - host) > sizeof(port))
        return by_problem_say(call->problem, BY_EINVAL,
                              "'%.100s' is no address of a banyand: write http://HOST:PORT", call->address);
    snprintf(text, sizeof(text), "%.*s", (int)(colon - host), host);
    snprintf(port, sizeof(port), "%.*s", (int)(length - (size_t)(colon - host) - 1), colon + 1);
    error = getaddrinfo(text, port, &hints, &found);
    if (error != 0)
        return by_problem_say(call->problem, BY_EINVAL, "%s: %s: check host and port", call->address,
                              gai_strerror(error));
    error = BY_EIO;
    for (const struct addrinfo *entry = found; entry != NULL && error != 0; entry = entry->ai_next) {
        if (call->fd >= 0)
            close(call->fd);
        error = connect_to(call, entry);
    }
    freeaddrinfo(found);
    return error;
}

static int send_all(const struct call *call, const char *bytes, size_t count)
{
    for (size_t done = 0; done < count;) {
        ssize_t sent = send(call->fd, bytes + done, count - done, MSG_NOSIGNAL);
        int error;

        if (sent > 0)
            done += (size_t)sent;
        else if (errno != EAGAIN && errno != EINTR)
            return by_problem_say(call->problem, BY_EIO, "%s: the connection is lost: %s", call->address,
                                  strerror(errno));
        else if ((error = await(call, POLLOUT)) != 0)
            return error;
    }
    return 0;
}

/* Everything up to the connection's end. */
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
            return by_problem_say(call->problem, BY_EIO, "%s: the connection is lost: %s", call->address,
                                  strerror(errno));
        else if ((error = await(call, POLLIN)) != 0)
            return error;
        if (*count > REPLY_BYTES_MAX)
            return by_problem_say(call->problem, BY_ELIMIT, "%s: answers more than %u bytes", call->address,
                                  REPLY_BYTES_MAX);
    }
    (*bytes)[*count] = 0;
    return 0;
}

/* Takes the head off: the status, and the body to the front. */
static int take_head(const struct call *call, char *bytes, size_t count, int *status)
{
    char *body = strstr(bytes, "\r\n\r\n");

    if (sscanf(bytes, "HTTP/1.%*c %d ", status) != 1 || body == NULL)
        return by_problem_say(call->problem, BY_EFORMAT,
                              "%.100s answers something else than HTTP: is that a banyand?", call->address);
    body += 4;
    memmove(bytes, body, count - (size_t)(body - bytes) + 1);
    return 0;
}

const char *by_http_default(void)
{
    const char *address = getenv("BANYAN_CONTROLLER");

    return address != NULL && strncmp(address, SCHEME, strlen(SCHEME)) == 0 ? address
                                                                            : "http://127.0.0.1:46249";
}

int by_http_ask(const char *address, const char *method, const char *path, const char *body,
                uint32_t timeout_ms, int *status, char **reply, struct by_problem *problem)
{
    struct call call = {.address = address,
                        .timeout_ms = timeout_ms,
                        .deadline_ms = now_ms() + timeout_ms,
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
