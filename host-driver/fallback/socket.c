/* Sockets with deadlines, for connections between ranks; see peers.h. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "host-driver/clock.h"
#include "host-driver/fallback/peers.h"
#include "offload/base/errors.h"

#define RETRY_MS 20 /* interval between attempts to connect */

/* Milliseconds until the deadline, rounded up; 0 when it has passed. */
static int left_ms(uint64_t deadline_ns)
{
    uint64_t now_ns = by_clock_ns();
    uint64_t left = deadline_ns > now_ns ? (deadline_ns - now_ns + 999999u) / 1000000u : 0;

    return left < 60000 ? (int)left : 60000;
}

static int wait_for(int fd, short events, uint64_t deadline_ns)
{
    struct pollfd one = {.fd = fd, .events = events};
    int ready;

    do {
        ready = poll(&one, 1, left_ms(deadline_ns));
    } while ((ready < 0 && errno == EINTR) || (ready == 0 && left_ms(deadline_ns) > 0));
    return ready > 0 ? 0 : ready == 0 ? BY_ETIMEDOUT : BY_EIO;
}

void by_peer_prepare(int fd)
{
    int one = 1;

    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
    fcntl(fd, F_SETFD, FD_CLOEXEC);
}

int by_peer_write(int fd, const void *bytes, size_t size, uint64_t deadline_ns)
{
    const uint8_t *at = bytes;

    while (size > 0) {
        ssize_t sent = send(fd, at, size, MSG_NOSIGNAL | MSG_DONTWAIT);

        if (sent < 0 && errno != EAGAIN && errno != EINTR)
            return BY_EIO;
        if (sent < 0) {
            int error = wait_for(fd, POLLOUT, deadline_ns);

            if (error != 0)
                return error;
            continue;
        }
        at += sent;
        size -= (size_t)sent;
    }
    return 0;
}

int by_peer_read(int fd, void *bytes, size_t size, uint64_t deadline_ns)
{
    uint8_t *at = bytes;

    while (size > 0) {
        ssize_t got = recv(fd, at, size, MSG_DONTWAIT);

        if (got == 0) {
            errno = 0;
            return BY_EIO;
        }
        if (got < 0 && errno != EAGAIN && errno != EINTR)
            return BY_EIO;
        if (got < 0) {
            int error = wait_for(fd, POLLIN, deadline_ns);

            if (error != 0)
                return error;
            continue;
        }
        at += got;
        size -= (size_t)got;
    }
    return 0;
}

static struct sockaddr_in address_of(uint32_t ip, uint16_t port)
{
    return (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(ip), .sin_port = htons(port)};
}

static int try_connect(uint32_t ip, uint16_t port, uint64_t deadline_ns)
{
    struct sockaddr_in address = address_of(ip, port);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    int failure = 0;
    socklen_t bytes = sizeof(failure);

    if (fd < 0)
        return BY_EIO;
    if (connect(fd, (struct sockaddr *)&address, sizeof(address)) != 0 && errno == EINPROGRESS) {
        if (wait_for(fd, POLLOUT, deadline_ns) != 0) {
            close(fd);
            errno = ETIMEDOUT;
            return BY_ETIMEDOUT;
        }
        getsockopt(fd, SOL_SOCKET, SO_ERROR, &failure, &bytes);
        errno = failure;
    } else {
        failure = errno;
        if (getpeername(fd, (struct sockaddr *)&address, &(socklen_t){sizeof(address)}) == 0)
            failure = 0;
        errno = failure;
    }
    if (failure != 0) {
        close(fd);
        errno = failure;
        return BY_EIO;
    }
    by_peer_prepare(fd);
    return fd;
}

int by_peer_connect(uint32_t ip, uint16_t port, uint64_t deadline_ns)
{
    for (;;) {
        int fd = try_connect(ip, port, deadline_ns);
        int why = errno;

        if (fd >= 0)
            return fd;
        if (fd == BY_EIO && why != ECONNREFUSED && why != ECONNRESET && why != ENETUNREACH &&
            why != EHOSTUNREACH)
            return BY_EIO;
        if (left_ms(deadline_ns) == 0) {
            errno = why;
            return BY_ETIMEDOUT;
        }
        poll(NULL, 0, RETRY_MS);
    }
}

int by_peer_listen(uint32_t ip, uint16_t port)
{
    struct sockaddr_in address = address_of(ip, port);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    int one = 1;
    int why;

    if (fd < 0)
        return BY_EIO;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    if (bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0 && listen(fd, SOMAXCONN) == 0)
        return fd;
    why = errno;
    close(fd);
    errno = why;
    return why == EADDRINUSE ? BY_EBUSY : why == EADDRNOTAVAIL ? BY_ENOENT : BY_EIO;
}
