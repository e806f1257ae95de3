/* Connections with a deadline. See dial.h. */
#include "control/service/controller/dial.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "control/fabric/build.h"
#include "firmware/secure/hostport.h"
#include "offload/base/errors.h"

int64_t by_dial_now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int by_dial_wait(const struct by_dial *dial, int fd, short events, int64_t deadline_ms,
                 struct by_problem *problem)
{
    for (;;) {
        struct pollfd entries[] = {{.fd = fd, .events = events},
                                   {.fd = dial->stop_fd > 0 ? dial->stop_fd : -1, .events = POLLIN}};
        int64_t left = deadline_ms - by_dial_now_ms();
        int count = left > 0 ? poll(entries, 2, (int)left) : 0;

        if (count > 0 && entries[1].revents != 0)
            return by_problem_say(problem, BY_EABORTED, "%s: stopped, because another change is needed",
                                  dial->address);
        if (count > 0)
            return 0;
        if (count == 0)
            return by_problem_say(problem, BY_ETIMEDOUT, "%s: no answer within %u ms: %s", dial->address,
                                  dial->timeout_ms, dial->silent);
        if (errno != EINTR)
            return by_problem_say(problem, BY_EIO, "%s: poll: %s", dial->address, strerror(errno));
    }
}

static int refused(const struct by_dial *dial, int number, struct by_problem *problem)
{
    return by_problem_say(problem, number == ECONNREFUSED || number == ENOENT ? BY_EAGAIN : BY_EIO,
                          "%s: cannot connect: %s: %s", dial->address, strerror(number),
                          number == EACCES ? "check that this user may use that socket" : dial->refused);
}

static int connect_to(const struct by_dial *dial, const struct sockaddr *to, socklen_t bytes,
                      int64_t deadline_ms, int *fd, struct by_problem *problem)
{
    int number = 0, error = 0;
    socklen_t size = sizeof(number);

    *fd = socket(to->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (*fd < 0)
        return by_problem_say(problem, BY_EIO, "%s: socket: %s", dial->address, strerror(errno));
    if (connect(*fd, to, bytes) == 0)
        return 0;
    number = errno;
    if (number == EINPROGRESS) {
        number = 0;
        error = by_dial_wait(dial, *fd, POLLOUT, deadline_ms, problem);
        if (error == 0)
            getsockopt(*fd, SOL_SOCKET, SO_ERROR, &number, &size);
    }
    if (error == 0 && number != 0)
        error = refused(dial, number, problem);
    if (error != 0) {
        close(*fd);
        *fd = -1;
    }
    return error;
}

int by_dial_unix(const struct by_dial *dial, const char *path, int64_t deadline_ms, int *fd,
                 struct by_problem *problem)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};

    if (path[0] == 0 || strlen(path) >= sizeof(to.sun_path))
        return by_problem_say(problem, BY_EINVAL,
                              "%s: a socket's path has 1 to %zu characters: use a shorter folder",
                              dial->address, sizeof(to.sun_path) - 1);
    memcpy(to.sun_path, path, strlen(path) + 1);
    return connect_to(dial, (const struct sockaddr *)&to, sizeof(to), deadline_ms, fd, problem);
}

int by_dial_tcp(const struct by_dial *dial, const char *text, size_t length, int64_t deadline_ms, int *fd,
                struct by_problem *problem)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found = NULL;
    struct by_hostport to;
    int error;

    if (by_hostport_read(text, length, &to) != 0 || to.host[0] == 0)
        return by_problem_say(problem, BY_EINVAL, "%.200s: not an address: write %s, with a port up to 65535",
                              dial->address, dial->form);
    error = getaddrinfo(to.host, to.port, &hints, &found);
    if (error != 0)
        return by_problem_say(problem, BY_EINVAL, "%s: %s: check host and port", dial->address,
                              gai_strerror(error));
    error = BY_EIO;
    for (const struct addrinfo *entry = found; entry != NULL && error != 0; entry = entry->ai_next)
        error = connect_to(dial, entry->ai_addr, entry->ai_addrlen, deadline_ms, fd, problem);
    freeaddrinfo(found);
    return error;
}
