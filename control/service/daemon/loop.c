/*
 * The event loop: one epoll for the event queue, a timer of one heartbeat, signals, and the
 * descriptors of other parts (by_daemon_watch: hosts' connections, HTTP). All code that owns struct
 * by_daemon runs from here.
 */
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "control/service/daemon/daemon.h"
#include "control/service/daemon/lead.h"
#include "offload/base/errors.h"
#include "offload/linux/notify.h"

/* Maximum number of descriptors that one wait reports (count). */
#define EVENTS_MAX 64

static void end(struct by_daemon *daemon, int status, const char *format, va_list arguments)
{
    char text[700];

    if (daemon->ending)
        return;
    vsnprintf(text, sizeof(text), format, arguments);
    by_daemon_say("%s", text);
    daemon->ending = true;
    daemon->status = status;
}

void by_daemon_end(struct by_daemon *daemon, int status, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    end(daemon, status, format, arguments);
    va_end(arguments);
    by_notify("STOPPING=1");
}

void by_daemon_retire(struct by_daemon *daemon, const char *format, ...)
{
    va_list arguments;

    daemon->retires |= !daemon->ending && daemon->lead != NULL; /* several switches may refuse it */
    va_start(arguments, format);
    end(daemon, 3, format, arguments);
    va_end(arguments);
}

static int control(struct by_daemon *daemon, int operation, struct by_watcher *watcher, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.ptr = watcher};

    return epoll_ctl(daemon->epoll, operation, watcher->fd, &event) == 0 ? 0 : BY_EIO;
}

int by_daemon_watch(struct by_daemon *daemon, struct by_watcher *watcher, uint32_t events)
{
    return control(daemon, EPOLL_CTL_ADD, watcher, events);
}

int by_daemon_rewatch(struct by_daemon *daemon, struct by_watcher *watcher, uint32_t events)
{
    return control(daemon, EPOLL_CTL_MOD, watcher, events);
}

void by_daemon_unwatch(struct by_daemon *daemon, struct by_watcher *watcher)
{
    control(daemon, EPOLL_CTL_DEL, watcher, 0);
    /* The caller may free it, in the handler of another watcher of the same turn. */
    for (int i = 0; i < daemon->ready_count; i++)
        if (daemon->ready[i].data.ptr == watcher)
            daemon->ready[i].data.ptr = NULL;
}

void by_daemon_tell(struct by_daemon *daemon, const struct by_daemon_event *event)
{
    daemon->reduce(daemon, event);
}

static void update_clock(struct by_daemon *daemon)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    daemon->now_ms = (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* Handles the events of the other threads. */
static void on_queue(struct by_daemon *daemon, struct by_watcher *watcher, uint32_t events)
{
    struct by_daemon_event event;

    (void)watcher;
    (void)events;
    while (by_event_take(daemon->events, &event))
        by_daemon_tell(daemon, &event);
}

/* Notifies systemd twice in its period, as sd_watchdog_enabled(3) advises. A loop that hangs does
 * not, and is restarted. */
static void report_alive(struct by_daemon *daemon)
{
    if (daemon->alive_ms == 0 || daemon->now_ms - daemon->reported_ms < daemon->alive_ms / 2)
        return;
    by_notify("WATCHDOG=1");
    daemon->reported_ms = daemon->now_ms;
}

static void on_timer(struct by_daemon *daemon, struct by_watcher *watcher, uint32_t events)
{
    uint64_t count;

    (void)events;
    if (read(watcher->fd, &count, sizeof(count)) != (ssize_t)sizeof(count))
        return;
    by_daemon_tell(daemon, &(struct by_daemon_event){.kind = BY_EVENT_TICK});
    report_alive(daemon);
}

static void on_signal(struct by_daemon *daemon, struct by_watcher *watcher, uint32_t events)
{
    struct signalfd_siginfo info;

    (void)events;
    if (read(watcher->fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
        by_daemon_end(daemon, 0, "ending because of signal '%s'; jobs and tables remain",
                      strsignal((int)info.ssi_signo));
}

static void on_lost(struct by_daemon *daemon, struct by_watcher *watcher, uint32_t events)
{
    (void)watcher;
    (void)events;
    by_daemon_retire(daemon, "%s", by_lead_text(daemon->lead));
}

static int timer_open(uint32_t period_ms)
{
    int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    struct timespec period = {.tv_sec = period_ms / 1000, .tv_nsec = (long)(period_ms % 1000) * 1000000};

    if (fd >= 0)
        timerfd_settime(fd, 0, &(struct itimerspec){.it_interval = period, .it_value = period}, NULL);
    return fd;
}

int by_daemon_signals(void)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    sigprocmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

void by_daemon_run(struct by_daemon *daemon)
{
    struct by_watcher own[] = {{.fd = by_event_queue_fd(daemon->events), .ready = on_queue},
                               {.fd = timer_open(daemon->options.heartbeat_ms), .ready = on_timer},
                               {.fd = by_daemon_signals(), .ready = on_signal}};
    struct by_watcher lost = {.ready = on_lost};
    struct epoll_event events[EVENTS_MAX];

    for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
        if (own[i].fd < 0 || by_daemon_watch(daemon, &own[i], EPOLLIN) != 0)
            by_daemon_end(daemon, 3, "cannot wait for events: %s", strerror(errno));
    if (daemon->lead != NULL) {
        lost.fd = by_lead_fd(daemon->lead);
        if (by_daemon_watch(daemon, &lost, EPOLLIN) != 0)
            by_daemon_end(daemon, 3, "cannot wait for events: %s", strerror(errno));
    }
    daemon->alive_ms = by_notify_watchdog_ms();
    update_clock(daemon);
    while (!daemon->ending) {
        daemon->ready = events;
        daemon->ready_count = epoll_wait(daemon->epoll, events, EVENTS_MAX, -1);
        update_clock(daemon);
        for (int i = 0; i < daemon->ready_count && !daemon->ending; i++) {
            struct by_watcher *watcher = events[i].data.ptr;

            if (watcher != NULL)
                watcher->ready(daemon, watcher, events[i].events);
        }
    }
    daemon->ready_count = 0;
    for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++) {
        by_daemon_unwatch(daemon, &own[i]);
        if (i > 0 && own[i].fd >= 0)
            close(own[i].fd);
    }
}
