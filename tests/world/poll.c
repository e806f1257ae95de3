/* Descriptors that wait: events, timers, signals, poll and epoll. See vm.h. */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <time.h>

#include "tests/world/vm.h"
#include "tests/world/vm_inside.h"

/* How long a call that does not wait takes, if it could be repeated until time has passed. */
#define CALL_NS UINT64_C(50000)

/* ---- events and timers ---- */

int __wrap_eventfd(unsigned value, int flags);
int __wrap_eventfd_write(int fd, eventfd_t value);
int __wrap_eventfd_read(int fd, eventfd_t *value);
int __wrap_timerfd_create(int clock, int flags);
int __wrap_timerfd_settime(int fd, int flags, const struct itimerspec *time, struct itimerspec *old);
int __wrap_signalfd(int fd, const void *set, int flags);
ssize_t __wrap_read(int fd, void *data, size_t bytes);
ssize_t __real_read(int fd, void *data, size_t bytes);
ssize_t __wrap_write(int fd, const void *data, size_t bytes);
ssize_t __real_write(int fd, const void *data, size_t bytes);

int __wrap_eventfd(unsigned value, int flags)
{
    int fd = vm_fd_open(FD_EVENT);

    (void)flags;
    if (fd >= 0)
        vm_fd_of(fd)->count = value;
    return fd;
}

int __wrap_eventfd_write(int number, eventfd_t value)
{
    struct vm_fd *fd = vm_fd_of(number);

    vm_call();
    fd->count += value;
    vm_fd_changed(fd);
    return 0;
}

int __wrap_eventfd_read(int number, eventfd_t *value)
{
    struct vm_fd *fd = vm_fd_of(number);

    vm_call();
    if (fd->count == 0)
        return vm_fail(EAGAIN);
    *value = fd->count;
    fd->count = 0;
    return 0;
}

static void on_timer(void *context, uint64_t number)
{
    struct vm_fd *fd = context;

    if (fd->kind != FD_TIMER || fd->timer != number || fd->dead)
        return;
    fd->count++;
    fd->next_ns += fd->period_ns;
    if (fd->period_ns > 0)
        vm_at(fd->next_ns, on_timer, fd, number);
    vm_fd_changed(fd);
}

int __wrap_timerfd_create(int clock, int flags)
{
    (void)clock;
    (void)flags;
    return vm_fd_open(FD_TIMER);
}

int __wrap_timerfd_settime(int number, int flags, const struct itimerspec *time, struct itimerspec *old)
{
    static uint64_t timers;
    struct vm_fd *fd = vm_fd_of(number);

    (void)flags;
    (void)old;
    fd->timer = ++timers;
    fd->period_ns = (uint64_t)time->it_interval.tv_sec * VM_S + (uint64_t)time->it_interval.tv_nsec;
    fd->next_ns = vm.now_ns + (uint64_t)time->it_value.tv_sec * VM_S + (uint64_t)time->it_value.tv_nsec;
    if (fd->next_ns > vm.now_ns && !fd->dead)
        vm_at(fd->next_ns, on_timer, fd, fd->timer);
    return 0;
}

int __wrap_signalfd(int number, const void *set, int flags)
{
    int fd = vm_fd_open(FD_SIGNAL);

    (void)number;
    (void)set;
    (void)flags;
    vm_self()->signal_fd = fd;
    return fd;
}

void vm_process_signal(struct vm_process *process)
{
    struct vm_fd *fd = vm_fd_of(process->signal_fd);

    process->signals++;
    if (fd != NULL && fd->process == process)
        vm_fd_changed(fd);
}

ssize_t __wrap_read(int number, void *data, size_t bytes)
{
    struct vm_fd *fd = vm_fd_of(number);

    if (fd == NULL)
        return __real_read(number, data, bytes);
    vm_call();
    if (fd->kind == FD_SIGNAL && (fd->process->signals > 0 || fd->process->zombie)) {
        struct signalfd_siginfo info = {.ssi_signo = 15};

        fd->process->signals = 0;
        memcpy(data, &info, sizeof(info));
        return sizeof(info);
    }
    if (fd->count == 0 || bytes < sizeof(uint64_t))
        return vm_fail(EAGAIN);
    memcpy(data, &fd->count, sizeof(uint64_t));
    fd->count = 0;
    return sizeof(uint64_t);
}

ssize_t __wrap_write(int number, const void *data, size_t bytes)
{
    if (vm_fd_of(number) == NULL)
        return __real_write(number, data, bytes);
    vm_call();
    return (ssize_t)bytes;
}

int vm_ready_open(const uint32_t *count)
{
    int fd = vm_fd_open(FD_READY);

    if (fd >= 0)
        vm_fd_of(fd)->ready = count;
    return fd;
}

void vm_ready_changed(int number)
{
    struct vm_fd *fd = vm_fd_of(number);

    if (fd != NULL)
        vm_fd_changed(fd);
}

/* ---- waiting ---- */

static short look(const struct vm_fd *fd, short wanted)
{
    const struct vm_stream *stream = fd->stream;
    short events = 0;

    switch (fd->kind) {
    case FD_STREAM:
        if (fd->dead || stream->reset)
            return (short)(POLLERR | POLLHUP | (wanted & (POLLIN | POLLOUT | POLLRDHUP)));
        if (stream->used > stream->at || stream->ended)
            events |= POLLIN;
        if (stream->ended)
            events |= POLLRDHUP;
        if (stream->ready_ns <= vm.now_ns && stream->peer->flying < BUFFER_BYTES)
            events |= POLLOUT;
        break;
    case FD_LISTENER:
        events = fd->queued > 0 && !fd->dead ? POLLIN : 0;
        break;
    case FD_EVENT:
        events = (short)((fd->count > 0 ? POLLIN : 0) | POLLOUT);
        break;
    case FD_TIMER:
        events = fd->count > 0 ? POLLIN : 0;
        break;
    case FD_SIGNAL:
        events = fd->process->signals > 0 || fd->process->zombie ? POLLIN : 0;
        break;
    case FD_READY:
        events = *fd->ready > 0 ? POLLIN : 0;
        break;
    case FD_SOCKET:
        events = fd->dead ? POLLERR | POLLHUP : 0;
        return events;
    case FD_FREE:
    case FD_EPOLL:
    case FD_FILE:
    default:
        break;
    }
    return (short)(events & wanted);
}

int __wrap_poll(struct pollfd *entries, nfds_t count, int timeout_ms);
int __wrap_ppoll(struct pollfd *entries, nfds_t count, const struct timespec *timeout, const void *mask);
int __wrap_epoll_create1(int flags);
int __wrap_epoll_ctl(int epoll, int operation, int fd, struct epoll_event *event);
int __wrap_epoll_wait(int epoll, struct epoll_event *events, int most, int timeout_ms);

static int poll_until(struct pollfd *entries, nfds_t count, uint64_t until_ns)
{
    for (;;) {
        int ready = 0;

        vm_call();
        for (nfds_t i = 0; i < count; i++) {
            const struct vm_fd *fd = entries[i].fd >= 0 ? vm_fd_of(entries[i].fd) : NULL;

            entries[i].revents = fd != NULL ? look(fd, entries[i].events) : 0;
            ready += entries[i].revents != 0;
        }
        if (ready > 0 || vm_time() >= until_ns) {
            /* Calls take time, so that a program which polls until some time has passed goes on. */
            if (ready == 0)
                vm_block(vm_time() + CALL_NS);
            return ready;
        }
        for (nfds_t i = 0; i < count; i++)
            if (entries[i].fd >= 0 && vm_fd_of(entries[i].fd) != NULL)
                vm_fd_of(entries[i].fd)->waiter = vm_fiber();
        vm_block(until_ns);
        for (nfds_t i = 0; i < count; i++)
            if (entries[i].fd >= 0 && vm_fd_of(entries[i].fd) != NULL)
                vm_fd_of(entries[i].fd)->waiter = NULL;
    }
}

int __wrap_poll(struct pollfd *entries, nfds_t count, int timeout_ms)
{
    return poll_until(entries, count, timeout_ms < 0 ? VM_NEVER : vm_time() + (uint64_t)timeout_ms * VM_MS);
}

int __wrap_ppoll(struct pollfd *entries, nfds_t count, const struct timespec *timeout, const void *mask)
{
    (void)mask;
    return poll_until(entries, count,
                      timeout == NULL
                          ? VM_NEVER
                          : vm_time() + (uint64_t)timeout->tv_sec * VM_S + (uint64_t)timeout->tv_nsec);
}

int __wrap_epoll_create1(int flags)
{
    (void)flags;
    return vm_fd_open(FD_EPOLL);
}

int __wrap_epoll_ctl(int epoll, int operation, int number, struct epoll_event *event)
{
    struct vm_fd *fd = vm_fd_of(number);

    if (fd == NULL)
        return vm_fail(EBADF);
    fd->epoll = operation == EPOLL_CTL_DEL ? -1 : epoll - FD_FIRST;
    fd->events = event->events;
    fd->data = event->data;
    return 0;
}

int __wrap_epoll_wait(int epoll, struct epoll_event *events, int most, int timeout_ms)
{
    struct vm_fd *self = vm_fd_of(epoll);

    (void)timeout_ms;
    for (;;) {
        bool zombie = vm_call();
        int count = 0, first = vm_fd_high > 0 ? (int)vm_draw((uint32_t)vm_fd_high) : 0;

        for (int i = 0; i < vm_fd_high && count < most; i++) {
            struct vm_fd *fd = &vm_fds[(first + i) % vm_fd_high];
            short ready;

            if (fd->kind == FD_FREE || fd->epoll != epoll - FD_FIRST || (zombie && fd->kind != FD_SIGNAL))
                continue;
            ready = look(fd, (short)(fd->events | POLLERR | POLLHUP));
            if (ready != 0)
                events[count++] = (struct epoll_event){.events = (uint32_t)ready, .data = fd->data};
        }
        if (count > 0)
            return count;
        self->waiter = vm_fiber();
        vm_block(VM_NEVER);
        self->waiter = NULL;
    }
}
