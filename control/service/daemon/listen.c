/* Listening sockets. See listen.h. */
#include "control/service/daemon/listen.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "firmware/secure/hostport.h"

/* Connections that may wait to be accepted (count). */
#define BACKLOG 256

/* Returns the descriptor, or closes it and returns -1. */
static int bind_to(int fd, const struct sockaddr *address, socklen_t bytes)
{
    int number;

    if (fd < 0 || (bind(fd, address, bytes) == 0 && listen(fd, BACKLOG) == 0))
        return fd;
    number = errno;
    close(fd);
    errno = number;
    return -1;
}

static bool is_alive(const struct sockaddr_un *address)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    bool alive = fd >= 0 && (connect(fd, (const struct sockaddr *)address, sizeof(*address)) == 0 ||
                             errno == EAGAIN); /* its queue is full */

    if (fd >= 0)
        close(fd);
    return alive;
}

int by_listen_unix(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct stat status;
    int fd;

    if (path[0] == 0 || strlen(path) >= sizeof(address.sun_path)) {
        errno = path[0] == 0 ? EINVAL : ENAMETOOLONG;
        return -1;
    }
    memcpy(address.sun_path, path, strlen(path) + 1);
    if (lstat(path, &status) == 0) {
        if (!S_ISSOCK(status.st_mode) || is_alive(&address)) {
            errno = S_ISSOCK(status.st_mode) ? EADDRINUSE : EEXIST;
            return -1;
        }
        unlink(path);
    }
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    /* Before bind, which creates the file, so that other users never have access to it. */
    if (fd >= 0 && fchmod(fd, 0600) != 0) {
        int number = errno;

        close(fd);
        errno = number;
        return -1;
    }
    return bind_to(fd, (const struct sockaddr *)&address, sizeof(address));
}

int by_listen_tcp(const char *text, bool *loopback)
{
    const struct addrinfo hints = {
        .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    struct addrinfo *found = NULL;
    struct by_hostport at;
    int fd, one = 1, error = EAI_NONAME;

    if (by_hostport_read(text, strlen(text), &at) == 0)
        error = getaddrinfo(at.host[0] != 0 ? at.host : NULL, at.port, &hints, &found);
    if (error != 0) {
        errno = error == EAI_SYSTEM ? errno : EINVAL; /* for other errors errno has any value */
        return -1;
    }
    *loopback = by_hostport_is_loopback(found->ai_addr);
    fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0)
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    fd = bind_to(fd, found->ai_addr, found->ai_addrlen);
    freeaddrinfo(found);
    return fd;
}
