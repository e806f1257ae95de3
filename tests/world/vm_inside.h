/* What the files of the virtual machine room share: descriptors, and files behind them. See
 * vm.h. */
#ifndef BY_TESTS_WORLD_VM_INSIDE_H
#define BY_TESTS_WORLD_VM_INSIDE_H

#include <sys/epoll.h>

#include "tests/world/vm.h"

struct vm_file;

#define FD_FIRST 100000
#define FDS_MAX  2048
/* Bytes that may be on their way in one direction of a connection. */
#define BUFFER_BYTES ((size_t)1 << 20)
#define QUEUE_MAX    64

enum fd_kind {
    FD_FREE,
    FD_SOCKET,
    FD_LISTENER,
    FD_STREAM,
    FD_EVENT,
    FD_TIMER,
    FD_SIGNAL,
    FD_EPOLL,
    FD_READY,
    FD_FILE
};

/* One end of a connection. */
struct vm_stream {
    struct vm_stream *all, *peer;
    struct vm_server *server; /* its owner, or NULL: a descriptor */
    void *data;
    struct vm_link *link;
    uint8_t *bytes;
    size_t at, used, room;
    size_t flying;     /* bytes on their way to this end */
    uint64_t last_ns;  /* time of the last delivery to this end */
    uint64_t ready_ns; /* the connection is established */
    int fd;            /* -1: none */
    bool closed;       /* by its owner */
    bool ended, reset; /* by the other end */
};

struct vm_fd {
    enum fd_kind kind;
    struct vm_process *process;
    bool dead; /* of a process that was killed */
    struct vm_fiber *waiter;
    int epoll; /* that watches it, or -1 */
    uint32_t events;
    epoll_data_t data;
    struct vm_stream *stream;
    char path[108]; /* listener */
    struct vm_stream *queue[QUEUE_MAX];
    uint32_t queued;
    uint64_t count, next_ns, period_ns, timer;
    const uint32_t *ready;
    struct vm_file *file;
};

extern struct vm_fd vm_fds[FDS_MAX];
extern int vm_fd_high;

/* net.c: the object of a descriptor, or NULL; a new one; what waits for one is woken; errno. */
struct vm_fd *vm_fd_of(int fd);
int vm_fd_open(enum fd_kind kind);
void vm_fd_changed(struct vm_fd *fd);
int vm_fail(int number);

/* net.c */
int vm_fd_of_file(struct vm_file *file);
struct vm_file *vm_file_of_fd(int fd);
bool vm_is_socket(const char *path);
void vm_socket_unlink(const char *path);
/* disk.c: the process closes a descriptor of the file, and loses its lock. */
void vm_file_close(struct vm_file *file, const struct vm_process *process);

#endif
