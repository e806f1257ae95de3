/* HTTP/1.0 as a client of one request for each connection, which ends the answer. See http.h. */
#include "control/cli/http.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "control/cli/cli.h"
#include "control/topology/alloc.h"
#include "control/topology/build.h"
#include "offload/base/errors.h"

/* An answer (bytes): the status of a large fabric has some. */
#define ANSWER_BYTES_MAX ((size_t)256 << 20)

static int open_socket(const char *address, unsigned seconds, int *result, struct by_problem *problem)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found = NULL;
    struct timeval limit = {.tv_sec = seconds};
    const char *colon = strrchr(address, ':');
    char host[200];
    int error;

    if (colon == NULL || colon == address || colon[1] == 0 || (size_t)(colon - address) >= sizeof(host))
        return by_problem_say(problem, BY_EINVAL, "'%.100s' is no address of a banyand: write HOST:PORT",
                              address);
    snprintf(host, sizeof(host), "%.*s", (int)(colon - address), address);
    error = getaddrinfo(host, colon + 1, &hints, &found);
    if (error != 0)
        return by_problem_say(problem, BY_EINVAL, "%.100s: %s", address, gai_strerror(error));
    *result = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    setsockopt(*result, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    setsockopt(*result, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
    error = *result >= 0 && connect(*result, found->ai_addr, found->ai_addrlen) == 0 ? 0 : BY_EIO;
    freeaddrinfo(found);
    if (error == 0)
        return 0;
    by_problem_say(problem, error, "%.100s: %s: is banyand running, with this --http?", address,
                   strerror(errno));
    if (*result >= 0)
        close(*result);
    return error;
}

static int fail(const char *address, struct by_problem *problem)
{
    if (errno == EAGAIN || errno == EWOULDBLOCK)
        return by_problem_say(problem, BY_ETIMEDOUT, "%.100s: no answer in time", address);
    return by_problem_say(problem, BY_EIO, "%.100s: the connection is lost: %s", address, strerror(errno));
}

static int send_all(int fd, const char *bytes, size_t count)
{
    while (count > 0) {
        ssize_t sent = send(fd, bytes, count, MSG_NOSIGNAL);

        if (sent <= 0)
            return -1;
        bytes += sent;
        count -= (size_t)sent;
    }
    return 0;
}

/* Everything until the other side ends, in one buffer with a zero behind. */
static int receive_all(int fd, const char *address, char **bytes, size_t *count, struct by_problem *problem)
{
    size_t room = 1 << 16;
    ssize_t got = 1;

    *bytes = by_alloc(room, 1);
    *count = 0;
    while (got > 0 && *count < ANSWER_BYTES_MAX) {
        if (room - *count < 2)
            *bytes = by_realloc(*bytes, room *= 2, 1);
        got = recv(fd, *bytes + *count, room - *count - 1, 0);
        *count += got > 0 ? (size_t)got : 0;
    }
    (*bytes)[*count] = 0;
    if (got == 0)
        return 0;
    return got < 0 ? fail(address, problem)
                   : by_problem_say(problem, BY_ELIMIT, "%.100s: the answer is too long", address);
}

/* "HTTP/1.1 200 OK", lines, an empty line, the body. */
static int split(const char *address, char *bytes, size_t count, struct by_cli_answer *answer,
                 struct by_problem *problem)
{
    char *end = strstr(bytes, "\r\n\r\n");

    if (strncmp(bytes, "HTTP/1.", 7) != 0 || end == NULL || strlen(bytes) < 12)
        return by_problem_say(problem, BY_EFORMAT,
                              "%.100s answers something else than HTTP: is that a banyand?", address);
    answer->status = atoi(bytes + 9);
    answer->bytes = count - (size_t)(end + 4 - bytes);
    answer->body = by_alloc(answer->bytes + 1, 1);
    memcpy(answer->body, end + 4, answer->bytes);
    return 0;
}

int by_cli_ask(const char *address, const char *method, const char *path, const char *body, unsigned seconds,
               struct by_cli_answer *answer, struct by_problem *problem)
{
    char head[1024], *bytes = NULL;
    size_t count = 0, body_bytes = body != NULL ? strlen(body) : 0;
    int fd = -1, error;

    *answer = (struct by_cli_answer){0};
    if (address == NULL) { /* which hosts have for another purpose */
        address = getenv("BANYAN_CONTROLLER");
        address = address != NULL && strncmp(address, "http://", 7) == 0 ? address : BY_CLI_HTTP_ADDRESS;
    }
    address += strncmp(address, "http://", 7) == 0 ? 7 : 0;
    error = open_socket(address, seconds, &fd, problem);
    if (error != 0)
        return error;
    snprintf(head, sizeof(head),
             "%s %.600s HTTP/1.0\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: "
             "%zu\r\n\r\n",
             method, path, body_bytes);
    if (send_all(fd, head, strlen(head)) != 0 || send_all(fd, body != NULL ? body : "", body_bytes) != 0)
        error = fail(address, problem);
    if (error == 0)
        error = receive_all(fd, address, &bytes, &count, problem);
    close(fd);
    if (error == 0)
        error = split(address, bytes, count, answer, problem);
    free(bytes);
    return error;
}

int by_cli_ask_json(const char *address, const char *method, const char *path, const char *body,
                    unsigned seconds, json_t **object)
{
    struct by_cli_answer answer;
    struct by_problem problem = {0};
    const char *text;
    int error = by_cli_ask(address, method, path, body, seconds, &answer, &problem);
    int status = 0;

    *object = NULL;
    if (error != 0)
        return by_cli_fail(error == BY_EINVAL ? BY_EXIT_USAGE : BY_EXIT_ENVIRONMENT, "%s", problem.text);
    *object = json_loadb(answer.body, answer.bytes, 0, NULL);
    if (answer.status < 200 || answer.status >= 300) {
        text = json_string_value(json_object_get(*object, "error"));
        status = by_cli_fail(answer.status < 500 ? BY_EXIT_NO : BY_EXIT_ENVIRONMENT, "%s",
                             text != NULL ? text : "banyand refuses, and does not say why");
        if (answer.status == 400)
            status = BY_EXIT_USAGE;
    } else if (*object == NULL) {
        status = by_cli_fail(BY_EXIT_ENVIRONMENT, "banyand's answer is no JSON: is it of this version?");
    }
    free(answer.body);
    if (status != 0) {
        json_decref(*object);
        *object = NULL;
    }
    return status;
}
