/* Sockets with deadlines, for connections between ranks; see peers.h. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "host-driver/clock.h"
#include "host-driver/fallback/peers.h"
#include "offload/base/errors.h"

#define RETRY_MS     20 /* interval between attempts to connect */
#define FILES_STEP   1024u
#define REASON_BYTES 256u

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

/* ---- the number of open files */

bool by_files_raise(void)
{
    struct rlimit files;
    int why = errno;
    bool raised = false;

    if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < files.rlim_max) {
        files.rlim_cur =
            files.rlim_max - files.rlim_cur > FILES_STEP ? files.rlim_cur + FILES_STEP : files.rlim_max;
        raised = setrlimit(RLIMIT_NOFILE, &files) == 0;
    }
    errno = why;
    return raised;
}

bool by_files_allow(uint64_t count)
{
    struct rlimit files;

    return getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_max >= count;
}

const char *by_files_reason(int why)
{
    static _Thread_local char text[REASON_BYTES];
    struct rlimit files = {0};

    if (why == EMFILE && getrlimit(RLIMIT_NOFILE, &files) == 0)
        snprintf(text, sizeof(text),
                 "this process has all %llu files open that it may open; raise its limit (ulimit -n, or "
                 "LimitNOFILE= of a unit of systemd), or start fewer ranks",
                 (unsigned long long)files.rlim_cur);
    else if (why == ENFILE)
        snprintf(text, sizeof(text),
                 "this host has all files open that it may open; raise the sysctl fs.file-max");
    else
        snprintf(text, sizeof(text), "%s", strerror(why));
    return text;
}

/* ---- connecting */

static int open_socket(void)
{
    int fd;

    do {
        fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    } while (fd < 0 && errno == EMFILE && by_files_raise());
    return fd;
}

int by_peer_dial(uint32_t ip, uint16_t port)
{
    struct sockaddr_in address = address_of(ip, port);
    int fd = open_socket();
    int why;

    if (fd < 0)
        return BY_EIO;
    by_peer_prepare(fd);
    if (connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0 || errno == EINPROGRESS)
        return fd;
    why = errno;
    close(fd);
    errno = why;
    return BY_EIO;
}

int by_peer_dialled(int fd)
{
    struct pollfd one = {.fd = fd, .events = POLLOUT};
    int failure = 0;
    socklen_t bytes = sizeof(failure);

    if (poll(&one, 1, 0) <= 0)
        return BY_EAGAIN;
    getsockopt(fd, SOL_SOCKET, SO_ERROR, &failure, &bytes);
    errno = failure;
    return failure == 0 ? 0 : BY_EIO;
}

static int try_connect(uint32_t ip, uint16_t port, uint64_t deadline_ns)
{
    int fd = by_peer_dial(ip, port);
    int error, why;

    if (fd < 0)
        return BY_EIO;
    if (wait_for(fd, POLLOUT, deadline_ns) != 0) {
        close(fd);
        errno = ETIMEDOUT;
        return BY_ETIMEDOUT;
    }
    error = by_peer_dialled(fd);
    if (error == 0)
        return fd;
    why = errno;
    close(fd);
    errno = why;
    return BY_EIO;
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
    int fd = open_socket();
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
