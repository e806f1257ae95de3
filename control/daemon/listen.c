/* Listening sockets; see listen.h. */
#include "control/daemon/listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* Who may wait to be accepted (count). */
#define BACKLOG 256

/* The descriptor, or -1 after it is closed. */
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
    if (fd >= 0)
        fchmod(fd, 0600); /* before bind, which makes the file: at no time may others use it */
    return bind_to(fd, (const struct sockaddr *)&address, sizeof(address));
}

static bool is_loopback(const struct sockaddr *address)
{
    if (address->sa_family == AF_INET)
        return ntohl(((const struct sockaddr_in *)(const void *)address)->sin_addr.s_addr) >> 24 == 127;
    return address->sa_family == AF_INET6 &&
           IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)(const void *)address)->sin6_addr);
}

int by_listen_tcp(const char *text, bool *loopback)
{
    const struct addrinfo hints = {
        .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    struct addrinfo *found = NULL;
    char host[256], *name = host;
    char *colon;
    int fd, one = 1;

    snprintf(host, sizeof(host), "%s", text);
    colon = strrchr(host, ':');
    if (colon != NULL)
        *colon = 0;
    if (colon != NULL && colon > host + 2 && host[0] == '[' && colon[-1] == ']') { /* IPv6, RFC 3986 */
        colon[-1] = 0;
        name++;
    }
    errno = EINVAL;
    if (colon == NULL || getaddrinfo(name[0] != 0 ? name : NULL, colon + 1, &hints, &found) != 0)
        return -1;
    *loopback = is_loopback(found->ai_addr);
    fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0)
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    fd = bind_to(fd, found->ai_addr, found->ai_addrlen);
    freeaddrinfo(found);
    return fd;
}
