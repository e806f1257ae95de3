/* Descriptors: sockets, epoll, events, timers, poll. See vm.h. */
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <time.h>

#include "tests/world/vm.h"
#include "tests/world/vm_inside.h"

#define SERVERS_MAX 16

struct vm_fd vm_fds[FDS_MAX];
int vm_fd_high;
static struct vm_stream *streams;
static struct vm_server *servers[SERVERS_MAX];
static uint32_t server_count;
/* Paths of sockets: servers of programs. Such a file remains when the program is killed. */
static char socket_path[108];
static int socket_fd;
static struct {
    struct vm_process *process;
    struct vm_link *link;
} links[32];
static uint32_t link_count;

int __real_close(int fd);
int __wrap_close(int fd);

struct vm_fd *vm_fd_of(int fd)
{
    return fd >= FD_FIRST && fd < FD_FIRST + FDS_MAX && vm_fds[fd - FD_FIRST].kind != FD_FREE
               ? &vm_fds[fd - FD_FIRST]
               : NULL;
}

int vm_fd_open(enum fd_kind kind)
{
    for (int i = 0; i < FDS_MAX; i++)
        if (vm_fds[i].kind == FD_FREE) {
            vm_fds[i] = (struct vm_fd){.kind = kind, .process = vm_self(), .epoll = -1};
            vm_fds[i].dead = vm_self() != NULL && vm_self()->zombie;
            if (i >= vm_fd_high)
                vm_fd_high = i + 1;
            return FD_FIRST + i;
        }
    errno = EMFILE;
    return -1;
}

int vm_fail(int number)
{
    errno = number;
    return -1;
}

void vm_fd_changed(struct vm_fd *fd)
{
    if (fd->waiter != NULL)
        vm_wake(fd->waiter);
    if (fd->epoll >= 0 && vm_fds[fd->epoll].waiter != NULL)
        vm_wake(vm_fds[fd->epoll].waiter);
}

/* ---- streams ---- */

struct vm_segment {
    struct vm_stream *to;
    size_t count;
    uint8_t bytes[];
};

static struct vm_stream *stream_new(struct vm_server *server, struct vm_link *link)
{
    struct vm_stream *stream = calloc(1, sizeof(*stream));

    if (stream == NULL)
        abort();
    stream->server = server;
    stream->link = link;
    stream->fd = -1;
    stream->all = streams;
    streams = stream;
    return stream;
}

void **vm_stream_data(struct vm_stream *stream)
{
    return &stream->data;
}

/* When something that is sent now arrives. */
static uint64_t arrival(const struct vm_link *link, uint64_t after_ns)
{
    uint64_t at =
        vm.now_ns + (link != NULL ? link->latency_ns + vm_draw((uint32_t)link->latency_ns + 1) : 1000);

    if (link != NULL && at < link->silent_until_ns)
        at = link->silent_until_ns;
    return at > after_ns ? at : after_ns;
}

static void stream_changed(struct vm_stream *stream)
{
    struct vm_fd *fd = vm_fd_of(stream->fd);

    if (fd != NULL)
        vm_fd_changed(fd);
}

static void on_end(void *context, uint64_t reset)
{
    struct vm_stream *stream = context;

    if (stream->closed || stream->reset)
        return;
    stream->ended = true;
    stream->reset = reset != 0;
    if (stream->server != NULL) {
        stream->closed = true;
        stream->server->closed(stream->server->context, stream);
    }
    stream_changed(stream);
}

void vm_stream_close(struct vm_stream *stream, bool reset)
{
    if (stream->closed)
        return;
    stream->closed = true;
    if (stream->server != NULL)
        stream->server->closed(stream->server->context, stream);
    if (stream->peer != NULL) {
        stream->peer->last_ns = arrival(stream->link, stream->peer->last_ns);
        vm_at(stream->peer->last_ns, on_end, stream->peer, reset);
    }
}

static void on_segment(void *context, uint64_t number)
{
    struct vm_segment *segment = context;
    struct vm_stream *to = segment->to;

    (void)number;
    to->flying -= segment->count;
    if (to->closed || to->reset)
        return;
    if (to->server != NULL) {
        to->server->input(to->server->context, to, segment->bytes, segment->count);
    } else {
        if (to->at == to->used)
            to->at = to->used = 0;
        if (to->used + segment->count > to->room) {
            to->room = 2 * (to->used + segment->count);
            to->bytes = realloc(to->bytes, to->room);
            if (to->bytes == NULL)
                abort();
        }
        memcpy(to->bytes + to->used, segment->bytes, segment->count);
        to->used += segment->count;
        stream_changed(to);
    }
    if (to->peer != NULL)
        stream_changed(to->peer); /* there is room again */
}

void vm_stream_send(struct vm_stream *stream, const uint8_t *bytes, size_t count)
{
    struct vm_segment *segment;

    if (stream->closed || stream->peer == NULL || stream->peer->closed)
        return;
    segment = malloc(sizeof(*segment) + count);
    if (segment == NULL)
        abort();
    segment->to = stream->peer;
    segment->count = count;
    memcpy(segment->bytes, bytes, count);
    stream->peer->flying += count;
    stream->peer->last_ns = arrival(stream->link, stream->peer->last_ns);
    vm_at_with(stream->peer->last_ns, on_segment, segment);
}

void vm_link_cut(const struct vm_link *link)
{
    for (struct vm_stream *stream = streams; stream != NULL; stream = stream->all)
        if (stream->link == link && !stream->closed)
            on_end(stream, 1);
}

void vm_server_add(struct vm_server *server)
{
    servers[server_count++] = server;
}

void vm_server_reset(struct vm_server *server)
{
    for (struct vm_stream *stream = streams; stream != NULL; stream = stream->all)
        if (stream->server == server)
            vm_stream_close(stream, vm_draw(2) == 0);
}

void vm_process_link(struct vm_process *process, struct vm_link *link)
{
    links[link_count].process = process;
    links[link_count++].link = link;
}

static struct vm_link *link_of(const struct vm_process *process)
{
    for (uint32_t i = 0; i < link_count; i++)
        if (links[i].process == process)
            return links[i].link;
    return NULL;
}

/* ---- sockets ---- */

int __wrap_socket(int family, int type, int protocol);
int __wrap_connect(int fd, const struct sockaddr *address, socklen_t bytes);
int __wrap_bind(int fd, const struct sockaddr *address, socklen_t bytes);
int __wrap_listen(int fd, int backlog);
int __wrap_accept4(int fd, struct sockaddr *address, socklen_t *bytes, int flags);
int __wrap_getsockopt(int fd, int level, int name, void *value, socklen_t *bytes);
int __wrap_setsockopt(int fd, int level, int name, const void *value, socklen_t bytes);
ssize_t __wrap_send(int fd, const void *data, size_t bytes, int flags);
ssize_t __wrap_recv(int fd, void *data, size_t bytes, int flags);
int __wrap_shutdown(int fd, int how);

int __wrap_socket(int family, int type, int protocol)
{
    (void)family;
    (void)type;
    (void)protocol;
    vm_call();
    return vm_fd_open(FD_SOCKET);
}

/* A connection to a program becomes ready for accept when its first packet arrives. */
static void on_knock(void *context, uint64_t number)
{
    struct vm_stream *stream = context; /* the server's end */
    struct vm_fd *listener = socket_fd >= 0 ? vm_fd_of(socket_fd) : NULL;

    (void)number;
    if (stream->closed)
        return;
    if (listener == NULL || listener->dead || listener->queued == QUEUE_MAX) {
        stream->closed = true;
        on_end(stream->peer, 1);
        return;
    }
    listener->queue[listener->queued++] = stream;
    vm_fd_changed(listener);
}

static void on_open(void *context, uint64_t number)
{
    struct vm_stream *stream = context; /* the server's end */

    (void)number;
    if (stream->closed)
        return;
    if (!stream->server->listens) {
        stream->closed = true;
        on_end(stream->peer, 1);
        return;
    }
    stream->server->opened(stream->server->context, stream);
}

static void on_ready(void *context, uint64_t number)
{
    (void)number;
    stream_changed(context);
}

int __wrap_connect(int number, const struct sockaddr *address, socklen_t bytes)
{
    const char *path = ((const struct sockaddr_un *)address)->sun_path;
    struct vm_fd *fd = vm_fd_of(number);
    struct vm_server *server = NULL;
    struct vm_stream *far;
    struct vm_link *link;

    (void)bytes;
    if (vm_call())
        return vm_fail(ECONNREFUSED);
    for (uint32_t i = 0; i < server_count && server == NULL; i++)
        if (strcmp(servers[i]->path, path) == 0)
            server = servers[i];
    link = server != NULL ? server->link : link_of(vm_self());
    if (server == NULL && strcmp(path, socket_path) != 0)
        return vm_fail(ENOENT);
    if (link == NULL || link->silent_until_ns <= vm.now_ns)
        if (server != NULL ? !server->listens : socket_fd < 0 || vm_fd_of(socket_fd)->dead)
            return vm_fail(ECONNREFUSED);
    fd->kind = FD_STREAM;
    fd->stream = stream_new(NULL, link);
    fd->stream->fd = number;
    far = stream_new(server, link);
    fd->stream->peer = far;
    far->peer = fd->stream;
    far->last_ns = arrival(link, 0);
    vm_at(far->last_ns, server != NULL ? on_open : on_knock, far, 0);
    if (link == NULL || link->silent_until_ns <= vm.now_ns)
        return 0;
    fd->stream->ready_ns = link->silent_until_ns;
    vm_at(link->silent_until_ns, on_ready, fd->stream, 0);
    return vm_fail(EINPROGRESS);
}

int __wrap_bind(int number, const struct sockaddr *address, socklen_t bytes)
{
    (void)bytes;
    if (vm_call())
        return vm_fail(EIO);
    snprintf(vm_fd_of(number)->path, sizeof(vm_fds[0].path), "%s",
             ((const struct sockaddr_un *)address)->sun_path);
    return 0;
}

int __wrap_listen(int number, int backlog)
{
    struct vm_fd *fd = vm_fd_of(number);

    (void)backlog;
    if (vm_call())
        return vm_fail(EIO);
    fd->kind = FD_LISTENER;
    snprintf(socket_path, sizeof(socket_path), "%s", fd->path);
    socket_fd = number;
    return 0;
}

int __wrap_accept4(int number, struct sockaddr *address, socklen_t *bytes, int flags)
{
    struct vm_fd *fd = vm_fd_of(number);
    struct vm_stream *stream;
    int made;

    (void)address;
    (void)bytes;
    (void)flags;
    if (vm_call() || fd->queued == 0)
        return vm_fail(EAGAIN);
    stream = fd->queue[0];
    memmove(&fd->queue[0], &fd->queue[1], --fd->queued * sizeof(fd->queue[0]));
    made = vm_fd_open(FD_STREAM);
    if (made < 0)
        return -1;
    vm_fd_of(made)->stream = stream;
    stream->fd = made;
    return made;
}

int __wrap_getsockopt(int number, int level, int name, void *value, socklen_t *bytes)
{
    const struct vm_fd *fd = vm_fd_of(number);

    (void)level;
    (void)name;
    (void)bytes;
    *(int *)value = fd->dead || (fd->stream != NULL && fd->stream->reset) ? ECONNREFUSED : 0;
    return 0;
}

int __wrap_setsockopt(int fd, int level, int name, const void *value, socklen_t bytes)
{
    (void)fd;
    (void)level;
    (void)name;
    (void)value;
    (void)bytes;
    return 0;
}

int __wrap_shutdown(int fd, int how)
{
    (void)fd;
    (void)how;
    return 0;
}

ssize_t __wrap_send(int number, const void *data, size_t bytes, int flags)
{
    struct vm_fd *fd = vm_fd_of(number);
    size_t room;

    (void)flags;
    if (vm_call() || fd == NULL || fd->dead || fd->stream == NULL || fd->stream->reset)
        return vm_fail(ECONNRESET);
    if (fd->stream->ended)
        return vm_fail(EPIPE);
    room = fd->stream->peer->flying < BUFFER_BYTES ? BUFFER_BYTES - fd->stream->peer->flying : 0;
    if (room == 0 || fd->stream->ready_ns > vm.now_ns)
        return vm_fail(EAGAIN);
    if (bytes > room)
        bytes = room;
    vm_stream_send(fd->stream, data, bytes);
    return (ssize_t)bytes;
}

ssize_t __wrap_recv(int number, void *data, size_t bytes, int flags)
{
    struct vm_fd *fd = vm_fd_of(number);
    struct vm_stream *stream;
    size_t have;

    (void)flags;
    if (vm_call() || fd == NULL || fd->dead || fd->stream == NULL)
        return vm_fail(ECONNRESET);
    stream = fd->stream;
    have = stream->used - stream->at;
    if (stream->reset)
        return vm_fail(ECONNRESET);
    if (have == 0)
        return stream->ended ? 0 : vm_fail(EAGAIN);
    if (bytes > have)
        bytes = have;
    memcpy(data, stream->bytes + stream->at, bytes);
    stream->at += bytes;
    return (ssize_t)bytes;
}

int __wrap_close(int number)
{
    struct vm_fd *fd = vm_fd_of(number);

    if (number < FD_FIRST)
        return __real_close(number);
    vm_call();
    if (fd == NULL)
        return vm_fail(EBADF);
    if (fd->kind == FD_STREAM && !fd->dead)
        vm_stream_close(fd->stream, false);
    if (fd->stream != NULL)
        fd->stream->fd = -1;
    if (fd->kind == FD_LISTENER && socket_fd == number) {
        for (uint32_t i = 0; i < fd->queued; i++)
            vm_stream_close(fd->queue[i], true);
        socket_fd = -1;
    }
    if (fd->kind == FD_FILE)
        vm_file_close(fd->file, fd->process);
    if (fd->kind == FD_EPOLL)
        for (int i = 0; i < vm_fd_high; i++)
            if (vm_fds[i].epoll == number - FD_FIRST)
                vm_fds[i].epoll = -1;
    fd->kind = FD_FREE;
    return 0;
}

/* ---- files and socket files ---- */

int vm_fd_of_file(struct vm_file *file)
{
    int fd = vm_fd_open(FD_FILE);

    if (fd >= 0)
        vm_fd_of(fd)->file = file;
    return fd;
}

struct vm_file *vm_file_of_fd(int fd)
{
    return vm_fd_of(fd) != NULL ? vm_fd_of(fd)->file : NULL;
}

bool vm_is_socket(const char *path)
{
    return socket_path[0] != 0 && strcmp(path, socket_path) == 0;
}

void vm_socket_unlink(const char *path)
{
    if (vm_is_socket(path))
        socket_path[0] = 0;
}

/* ---- the run ---- */

void vm_net_killed(struct vm_process *process)
{
    for (int i = 0; i < vm_fd_high; i++) {
        struct vm_fd *fd = &vm_fds[i];

        if (fd->kind == FD_FREE || fd->process != process)
            continue;
        fd->dead = true;
        if (fd->kind == FD_STREAM)
            vm_stream_close(fd->stream, vm_draw(2) == 0);
        if (fd->kind == FD_LISTENER)
            for (; fd->queued > 0; fd->queued--)
                vm_stream_close(fd->queue[fd->queued - 1], true);
    }
}

void vm_net_open(void)
{
    memset(vm_fds, 0, sizeof(vm_fds[0]) * (size_t)vm_fd_high);
    vm_fd_high = 0;
    server_count = link_count = 0;
    socket_path[0] = 0;
    socket_fd = -1;
}

void vm_net_close(void)
{
    while (streams != NULL) {
        struct vm_stream *next = streams->all;

        free(streams->bytes);
        free(streams);
        streams = next;
    }
}

void vm_ready_close(int number)
{
    __wrap_close(number);
}
