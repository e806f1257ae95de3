/* How hosts that share memory come and go; see link_host.h. Whatever they hand over is checked before it is
 * used. Loop's thread. */
#include "dataplane/link_host.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "dataplane/say.h"
#include "offload/base/errors.h"

static void close_fd(int fd)
{
    if (fd >= 0)
        close(fd);
}

void by_link_bell(int bell)
{
    const uint64_t one = 1;

    if (write(bell, &one, sizeof one) < 0)
        return; /* the counter is full: it has been rung often enough */
}

void by_link_host_wake(struct by_link_host *host)
{
    uint64_t rings;

    host->asleep = false;
    by_shm_wake(&host->receiver);
    if (read(host->to_switch, &rings, sizeof rings) < 0)
        return; /* nobody has rung */
}

/* ---- greetings
 * -------------------------------------------------------------------------------------------------------------
 */

/* The answer: 0 with the engine's memory, or an error with its reason. */
static void answer(const struct by_link *link, const struct by_link_host *host, int status, const char *text)
{
    struct by_shm_welcome welcome = {.magic = BY_SHM_MAGIC,
                                     .version = BY_SHM_VERSION,
                                     .status = status,
                                     .memory_bytes = status == 0 ? link->memory_bytes : 0};
    uint8_t control[CMSG_SPACE(sizeof(int))] __attribute__((aligned(8))) = {0};
    struct iovec piece = {&welcome, sizeof welcome};
    struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1};

    snprintf(welcome.text, sizeof welcome.text, "%s", text);
    if (status == 0) {
        struct cmsghdr *header;

        message.msg_control = control;
        message.msg_controllen = sizeof control;
        header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(header), &link->memory_fd, sizeof(int));
    }
    if (sendmsg(host->socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
        by_say("%s: a host left before it was answered", link->path);
}

/* The greeting and its descriptors; the number of these, or -1 when it is none. */
static int read_hello(const struct by_link_host *host, struct by_shm_hello *hello, int fds[BY_SHM_HELLO_FDS])
{
    uint8_t control[CMSG_SPACE(BY_SHM_HELLO_FDS * sizeof(int))] __attribute__((aligned(8)));
    struct iovec piece = {hello, sizeof *hello};
    struct msghdr message = {
        .msg_iov = &piece, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    ssize_t bytes = recvmsg(host->socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    struct cmsghdr *header = bytes >= 0 ? CMSG_FIRSTHDR(&message) : NULL;
    unsigned count = 0;

    if (header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS) {
        count = (unsigned)((header->cmsg_len - CMSG_LEN(0)) / sizeof(int));
        memcpy(fds, CMSG_DATA(header), count * sizeof(int));
    }
    return bytes == (ssize_t)sizeof *hello ? (int)count : -1;
}

/* Maps `bytes` of a descriptor that nobody can make shorter; NULL when it is not such a one. */
static void *map(int fd, uint64_t bytes, int protection)
{
    int seals = fcntl(fd, F_GET_SEALS);
    struct stat stat;
    void *memory;

    if (bytes == 0 || seals < 0 || !(seals & F_SEAL_SHRINK) || fstat(fd, &stat) != 0 ||
        (uint64_t)stat.st_size < bytes)
        return NULL;
    memory = mmap(NULL, bytes, protection, MAP_SHARED | MAP_NORESERVE, fd, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

/* Why the host is not let in, or NULL when all that it handed over is in place. */
static const char *take_over(struct by_link *link, struct by_link_host *host,
                             const struct by_shm_hello *hello, const int fds[BY_SHM_HELLO_FDS])
{
    if (hello->version != BY_SHM_VERSION)
        return "the library and the switch are of different versions";
    if (hello->room_bytes < 64 || hello->room_bytes % 64 != 0 || hello->room_bytes > BY_PAYLOAD_MAX)
        return "its packets are too large";
    for (unsigned i = 0; i < link->host_count; i++)
        if (link->host[i]->greeted && link->host[i]->udp_port == hello->udp_port)
            return "another process has this job here";
    host->room_bytes = hello->room_bytes;
    host->cable_bytes = by_shm_bytes(hello->room_bytes);
    host->cable = map(fds[0], host->cable_bytes, PROT_READ | PROT_WRITE);
    host->memory_bytes = hello->memory_bytes;
    host->memory = map(fds[1], host->memory_bytes, PROT_READ);
    if (!host->cable || !host->memory)
        return "its memory cannot be mapped, or is not sealed";
    madvise((void *)(uintptr_t)host->memory, host->memory_bytes, MADV_HUGEPAGE);
    host->to_switch = fds[2];
    host->to_host = fds[3];
    if (fcntl(host->to_switch, F_SETFL, O_NONBLOCK) != 0 || fcntl(host->to_host, F_SETFL, O_NONBLOCK) != 0)
        return "its bells are none";
    host->udp_port = hello->udp_port;
    host->sender.queue = &host->cable->down;
    host->receiver.queue = &host->cable->up;
    for (unsigned i = 0; i < BY_SHM_SLOTS; i++)
        host->ref[i] = BY_REF_NONE;
    return NULL;
}

int by_link_host_greet(struct by_link *link, struct by_link_host *host)
{
    int fds[BY_SHM_HELLO_FDS] = {-1, -1, -1, -1};
    struct by_shm_hello hello = {0};
    int count = read_hello(host, &hello, fds);
    const char *refusal = "what it says is not understood";

    if (count == (int)BY_SHM_HELLO_FDS && hello.magic == BY_SHM_MAGIC)
        refusal = take_over(link, host, &hello, fds);
    close_fd(fds[0]);
    close_fd(fds[1]);
    if (!refusal) {
        answer(link, host, 0, "");
        host->greeted = true;
        return 0;
    }
    if (host->to_switch < 0) {
        close_fd(fds[2]);
        close_fd(fds[3]);
    }
    if (count >= 0) {
        by_say("%s: a host is not let in: %s", link->path, refusal);
        answer(link, host, BY_EINVAL, refusal);
    }
    return BY_EINVAL;
}

void by_link_host_free(struct by_link *link, struct by_link_host *host)
{
    for (unsigned i = 0; host->greeted && i < BY_SHM_SLOTS; i++)
        if (host->ref[i] != BY_REF_NONE)
            by_engine_release(link->engine, host->ref[i]);
    /* The host has that bell, too: closing ours would not take it from the epoll. */
    if (host->greeted)
        epoll_ctl(link->bells, EPOLL_CTL_DEL, host->to_switch, NULL);
    close_fd(host->socket);
    close_fd(host->to_switch);
    close_fd(host->to_host);
    if (host->cable)
        munmap(host->cable, host->cable_bytes);
    if (host->memory)
        munmap((void *)(uintptr_t)host->memory, host->memory_bytes);
    free(host);
}

/* ---- the socket
 * ------------------------------------------------------------------------------------------------------------
 */

static void let_in(struct by_link *link)
{
    struct by_link_host *host;
    int socket = accept4(link->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    struct epoll_event event = {.events = EPOLLIN, .data.fd = socket};

    if (socket < 0)
        return;
    host = link->host_count < BY_LINK_HOSTS_MAX ? calloc(1, sizeof *host) : NULL;
    if (!host) {
        by_say("%s: a host is not let in: no memory, or more than %u", link->path, BY_LINK_HOSTS_MAX);
        close(socket);
        return;
    }
    host->socket = socket;
    host->to_switch = host->to_host = -1;
    link->host[link->host_count++] = host;
    epoll_ctl(link->bells, EPOLL_CTL_ADD, socket, &event);
}

/* What a host's socket has to say: its greeting, or its end. False when it is to be forgotten. */
static bool listen_to(struct by_link *link, struct by_link_host *host)
{
    struct epoll_event event = {.events = EPOLLIN};
    char byte;

    if (host->greeted) {
        ssize_t bytes = recv(host->socket, &byte, 1, MSG_DONTWAIT);

        return bytes < 0 && (errno == EAGAIN || errno == EINTR);
    }
    if (recv(host->socket, &byte, 1, MSG_DONTWAIT | MSG_PEEK) < 0 && (errno == EAGAIN || errno == EINTR))
        return true;
    if (by_link_host_greet(link, host) != 0)
        return false;
    event.data.fd = host->to_switch;
    epoll_ctl(link->bells, EPOLL_CTL_ADD, host->to_switch, &event);
    return true;
}

void by_link_serve(struct by_link *link)
{
    let_in(link);
    for (unsigned i = 0; i < link->host_count;) {
        if (listen_to(link, link->host[i])) {
            i++;
            continue;
        }
        by_link_host_free(link, link->host[i]);
        link->host[i] = link->host[--link->host_count];
    }
}

int by_link_open(struct by_link **out, const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct by_link *link = calloc(1, sizeof *link);
    struct epoll_event event = {.events = EPOLLIN};
    struct stat stat;

    if (!link || !(link->path = strdup(path))) {
        free(link);
        return BY_ENOMEM;
    }
    link->memory_fd = -1;
    link->bells = epoll_create1(EPOLL_CLOEXEC);
    link->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (strlen(path) >= sizeof address.sun_path) {
        by_say("--shm %s: a socket's path has at most %zu characters", path, sizeof address.sun_path - 1);
        by_link_close(link);
        return BY_EINVAL;
    }
    memcpy(address.sun_path, path, strlen(path) + 1);
    /* A socket that nobody listens at was left by a switch that was killed. */
    if (link->listener >= 0 && lstat(path, &stat) == 0 && S_ISSOCK(stat.st_mode) &&
        connect(link->listener, (struct sockaddr *)&address, sizeof address) != 0 && errno == ECONNREFUSED)
        unlink(path);
    if (link->listener < 0 || bind(link->listener, (struct sockaddr *)&address, sizeof address) != 0 ||
        listen(link->listener, BY_LINK_HOSTS_MAX) != 0) {
        int error = errno;

        by_say("--shm %s: no socket there: %s", path, strerror(error));
        by_link_close(link);
        return error == EADDRINUSE ? BY_EEXIST : error == ENOENT ? BY_EINVAL : BY_EIO;
    }
    link->bound = true;
    event.data.fd = link->listener;
    if (link->bells < 0 || epoll_ctl(link->bells, EPOLL_CTL_ADD, link->listener, &event) != 0) {
        by_say("--shm %s: no descriptor to sleep on: %s", path, strerror(errno));
        by_link_close(link);
        return BY_EIO;
    }
    *out = link;
    return 0;
}

void by_link_start(struct by_link *link, struct by_engine *engine, const uint8_t *memory,
                   uint64_t memory_bytes, int memory_fd)
{
    link->engine = engine;
    link->memory = memory;
    link->memory_bytes = memory_bytes;
    link->memory_fd = memory_fd;
}

void by_link_close(struct by_link *link)
{
    while (link->host_count > 0)
        by_link_host_free(link, link->host[--link->host_count]);
    if (link->bound)
        unlink(link->path);
    close_fd(link->listener);
    close_fd(link->bells);
    free(link->path);
    free(link);
}

int by_link_fd(const struct by_link *link)
{
    return link->bells;
}
