/* The loop of the daemon: what it waits for, its clock, and its ends, with the calls of the kernel
 * and the other parts of the daemon replaced. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "control/service/daemon/daemon.h"
#include "control/service/daemon/lead.h"
#include "offload/base/errors.h"
#include "offload/linux/notify.h"
#include "tests/unit/control/service/daemon/record.h"

enum { NONE = -2, EPOLL = 100, QUEUE, TIMER, SIGNALS, LOST, OWN, DESCRIPTORS };

static struct {
    struct by_daemon daemon;
    int fds[DESCRIPTORS]; /* what the calls return for them */
    int refuses;          /* epoll refuses this descriptor, or NONE */
    struct by_watcher *watchers[DESCRIPTORS];
    int turns[8][4]; /* the ready descriptors of each turn, 0: the end; after the last turn it ends */
    unsigned turn, last;
    struct timespec now[9]; /* at each reading of the clock */
    unsigned readings;
    struct itimerspec period;
    uint32_t alive_ms;
    bool unreadable; /* nothing is there to read */
    unsigned queued;
    sigset_t blocked;
} rig;

/* ---- the kernel ---- */

int __wrap_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_epoll_ctl(int epoll, int operation, int fd, struct epoll_event *event);
int __wrap_epoll_wait(int epoll, struct epoll_event *events, int count, int timeout);
int __wrap_timerfd_create(int clock, int flags);
int __wrap_timerfd_settime(int fd, int flags, const struct itimerspec *value, struct itimerspec *old);
int __wrap_signalfd(int fd, const sigset_t *set, int flags);
int __wrap_sigprocmask(int how, const sigset_t *set, sigset_t *old);
ssize_t __wrap_read(int fd, void *bytes, size_t size);
int __wrap_close(int fd);

int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
    assert_int_equal(clock, CLOCK_MONOTONIC);
    assert_true(rig.readings < sizeof(rig.now) / sizeof(rig.now[0]));
    *now = rig.now[rig.readings++];
    return 0;
}

int __wrap_epoll_ctl(int epoll, int operation, int fd, struct epoll_event *event)
{
    assert_int_equal(epoll, EPOLL);
    if (fd == rig.refuses || fd < 0) {
        errno = fd < 0 ? EBADF : EPERM;
        return -1;
    }
    assert_true(fd < DESCRIPTORS);
    rig.watchers[fd] = operation == EPOLL_CTL_DEL ? NULL : event->data.ptr;
    record("%s %d %s\n",
           operation == EPOLL_CTL_ADD   ? "add"
           : operation == EPOLL_CTL_MOD ? "change"
                                        : "remove",
           fd,
           event->events == EPOLLIN    ? "in"
           : event->events == EPOLLOUT ? "out"
                                       : "");
    return 0;
}

int __wrap_epoll_wait(int epoll, struct epoll_event *events, int count, int timeout)
{
    const int *fds = rig.turns[rig.turn];
    int ready = 0;

    assert_true(epoll == EPOLL && count >= 4 && timeout == -1);
    if (rig.turn++ >= rig.last) {
        rig.daemon.ending = true;
        errno = EINTR;
        return -1;
    }
    for (; ready < 4 && fds[ready] != 0; ready++)
        events[ready] = (struct epoll_event){.events = EPOLLIN | (uint32_t)ready << 8,
                                             .data.ptr = rig.watchers[fds[ready]]};
    return ready;
}

int __wrap_timerfd_create(int clock, int flags)
{
    assert_true(clock == CLOCK_MONOTONIC && flags == (TFD_CLOEXEC | TFD_NONBLOCK));
    return rig.fds[TIMER];
}

int __wrap_timerfd_settime(int fd, int flags, const struct itimerspec *value, struct itimerspec *old)
{
    assert_true(fd == rig.fds[TIMER] && flags == 0 && old == NULL);
    rig.period = *value;
    return 0;
}

int __wrap_signalfd(int fd, const sigset_t *set, int flags)
{
    assert_true(fd == -1 && flags == (SFD_CLOEXEC | SFD_NONBLOCK));
    for (int i = 1; i < 32; i++)
        assert_int_equal(sigismember(set, i), sigismember(&rig.blocked, i));
    return rig.fds[SIGNALS];
}

int __wrap_sigprocmask(int how, const sigset_t *set, sigset_t *old)
{
    assert_true(how == SIG_BLOCK && old == NULL);
    rig.blocked = *set;
    return 0;
}

ssize_t __wrap_read(int fd, void *bytes, size_t size)
{
    assert_true(fd == TIMER || fd == SIGNALS);
    if (rig.unreadable) {
        errno = EAGAIN;
        return -1;
    }
    memset(bytes, 0, size);
    if (fd == SIGNALS)
        ((struct signalfd_siginfo *)bytes)->ssi_signo = SIGHUP;
    return (ssize_t)size;
}

int __wrap_close(int fd)
{
    record("close %d\n", fd);
    return 0;
}

/* ---- the other parts ---- */

void by_notify(const char *line)
{
    record("systemd: %s\n", line);
}

uint32_t by_notify_watchdog_ms(void)
{
    return rig.alive_ms;
}

int by_event_queue_fd(const struct by_event_queue *queue)
{
    (void)queue;
    return rig.fds[QUEUE];
}

int by_event_take(struct by_event_queue *queue, struct by_daemon_event *event)
{
    (void)queue;
    if (rig.queued == 0)
        return 0;
    *event = (struct by_daemon_event){.kind = BY_EVENT_PUSHED};
    rig.queued--;
    return 1;
}

int by_lead_fd(const struct by_lead *lead)
{
    (void)lead;
    return rig.fds[LOST];
}

const char *by_lead_text(const struct by_lead *lead)
{
    (void)lead;
    return "another one leads";
}

/* ---- the daemon ---- */

static void reduce(struct by_daemon *daemon, const struct by_daemon_event *event)
{
    assert_ptr_equal(daemon, &rig.daemon);
    record("%s at %llu\n", event->kind == BY_EVENT_TICK ? "tick" : "pushed",
           (unsigned long long)daemon->now_ms);
}

static void open_daemon(void)
{
    memset(&rig, 0, sizeof(rig));
    record_clear();
    rig.refuses = NONE;
    rig.daemon.epoll = EPOLL;
    rig.daemon.reduce = reduce;
    rig.daemon.options.heartbeat_ms = 100;
    for (int fd = EPOLL; fd < DESCRIPTORS; fd++)
        rig.fds[fd] = fd;
    for (unsigned i = 0; i < 9; i++)
        rig.now[i].tv_sec = 5;
}

#define ADDED   "add 101 in\nadd 102 in\nadd 103 in\n"
#define REMOVED "remove 101 \nremove 102 \nclose 102\nremove 103 \nclose 103\n"

/* ---- tests ---- */

static void the_first_end_counts(void **state)
{
    char longest[1000];

    (void)state;
    open_daemon();
    by_daemon_end(&rig.daemon, 3, "no %s is left", "path");
    record_expect("said: no path is left\nsystemd: STOPPING=1\n");
    assert_true(rig.daemon.ending && rig.daemon.status == 3);
    rig.daemon.lead = (struct by_lead *)&rig;
    by_daemon_retire(&rig.daemon, "late");
    by_daemon_end(&rig.daemon, 1, "later");
    record_expect("systemd: STOPPING=1\n");
    assert_true(rig.daemon.status == 3 && !rig.daemon.retires);
    open_daemon();
    memset(longest, 'a', sizeof(longest));
    longest[699] = 0;
    by_daemon_end(&rig.daemon, 1, "%s", longest); /* a text of this length is whole */
    assert_int_equal(strlen(recorded), 6 + 699 + 1 + strlen("systemd: STOPPING=1\n"));
}

/* It waits to lead again only if its store is shared. */
static void a_daemon_that_no_longer_leads_retires(void **state)
{
    (void)state;
    for (unsigned shared = 0; shared < 2; shared++) {
        open_daemon();
        rig.daemon.lead = shared ? (struct by_lead *)&rig : NULL;
        by_daemon_retire(&rig.daemon, "switch %s has another controller", "x0");
        by_daemon_retire(&rig.daemon, "switch %s has another controller", "x1");
        record_expect("said: switch x0 has another controller\n");
        assert_true(rig.daemon.ending && rig.daemon.status == 3);
        assert_int_equal(rig.daemon.retires, shared);
    }
}

static void descriptors_are_added_changed_and_removed(void **state)
{
    struct by_watcher own = {.fd = OWN}, other = {.fd = TIMER};
    struct epoll_event ready[3] = {{.data.ptr = &other}, {.data.ptr = &own}, {.data.ptr = &own}};

    (void)state;
    open_daemon();
    assert_int_equal(by_daemon_watch(&rig.daemon, &own, EPOLLIN), 0);
    assert_ptr_equal(rig.watchers[OWN], &own);
    assert_int_equal(by_daemon_rewatch(&rig.daemon, &own, EPOLLOUT), 0);
    rig.refuses = OWN;
    assert_int_equal(by_daemon_watch(&rig.daemon, &own, EPOLLIN), BY_EIO);
    assert_int_equal(by_daemon_rewatch(&rig.daemon, &own, EPOLLIN), BY_EIO);
    rig.refuses = NONE;
    rig.daemon.ready = ready;
    rig.daemon.ready_count = 2; /* the third is of an earlier turn */
    by_daemon_unwatch(&rig.daemon, &own);
    record_expect("add 105 in\nchange 105 out\nremove 105 \n");
    assert_true(ready[0].data.ptr == &other && ready[1].data.ptr == NULL && ready[2].data.ptr == &own);
    by_daemon_unwatch(&rig.daemon, &other);
    assert_null(ready[0].data.ptr);
}

static void a_descriptor_that_cannot_be_watched_ends_it(void **state)
{
    static const char line[] = "said: cannot wait for events: ";

    (void)state;
    for (int fd = QUEUE; fd <= LOST; fd++)
        for (unsigned refused = 0; refused < 2; refused++) {
            open_daemon();
            rig.daemon.lead = (struct by_lead *)&rig;
            if (refused || fd == LOST)
                rig.refuses = fd;
            else
                rig.fds[fd] = -1;
            by_daemon_run(&rig.daemon);
            assert_non_null(strstr(recorded, line));
            assert_non_null(strstr(recorded, "systemd: STOPPING=1\n"));
            assert_true(rig.daemon.ending && rig.daemon.status == 3 && rig.turn == 0);
            assert_null(strstr(recorded, "close -1"));
        }
    rig.fds[LOST] = -1; /* without a shared store there is none */
    rig.daemon = (struct by_daemon){.epoll = EPOLL, .reduce = reduce};
    record_clear();
    rig.refuses = NONE;
    by_daemon_run(&rig.daemon);
    record_expect(ADDED REMOVED);
}

/* A program that was started without a standard input gets its number. */
static void descriptor_zero_is_one(void **state)
{
    (void)state;
    open_daemon();
    rig.fds[TIMER] = 0;
    by_daemon_run(&rig.daemon);
    record_expect(
        "add 101 in\nadd 0 in\nadd 103 in\nremove 101 \nremove 0 \nclose 0\nremove 103 \nclose 103\n");
    assert_int_equal(rig.period.it_value.tv_nsec, 100000000);
}

static void the_timer_has_the_period_of_a_heartbeat(void **state)
{
    static const struct {
        uint32_t ms;
        long seconds, ns;
    } rows[] = {{1, 0, 1000000}, {999, 0, 999000000}, {1000, 1, 0}, {2050, 2, 50000000}};

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        open_daemon();
        rig.daemon.options.heartbeat_ms = rows[i].ms;
        by_daemon_run(&rig.daemon);
        assert_true(rig.period.it_value.tv_sec == rows[i].seconds &&
                    rig.period.it_value.tv_nsec == rows[i].ns);
        assert_memory_equal(&rig.period.it_interval, &rig.period.it_value, sizeof(rig.period.it_value));
    }
}

static void each_turn_has_its_time(void **state)
{
    (void)state;
    open_daemon();
    rig.now[1] = (struct timespec){7, 999999}; /* less than a millisecond */
    rig.now[2] = (struct timespec){8, 1000000};
    rig.now[3] = (struct timespec){9, 999999999};
    rig.turns[0][0] = rig.turns[1][0] = rig.turns[2][0] = TIMER;
    rig.turns[1][1] = QUEUE;
    rig.queued = 3;
    rig.last = 4;
    by_daemon_run(&rig.daemon);
    record_expect(ADDED "tick at 7000\ntick at 8001\npushed at 8001\npushed at 8001\npushed at 8001\n"
                        "tick at 9999\n" REMOVED);
    assert_int_equal(rig.readings, 6);
    assert_int_equal(rig.daemon.ready_count, 0);
}

static void a_timer_that_is_read_already_is_no_heartbeat(void **state)
{
    (void)state;
    open_daemon();
    rig.unreadable = true;
    rig.turns[0][0] = TIMER;
    rig.turns[0][1] = SIGNALS;
    rig.last = 1;
    by_daemon_run(&rig.daemon);
    record_expect(ADDED REMOVED);
}

static void a_signal_ends_it_and_the_rest_of_the_turn_is_left(void **state)
{
    (void)state;
    open_daemon();
    rig.turns[0][0] = TIMER;
    rig.turns[0][1] = SIGNALS;
    rig.turns[0][2] = TIMER;
    rig.last = 2;
    by_daemon_run(&rig.daemon);
    record_expect(ADDED "tick at 5000\n"
                        "said: ending because of signal 'Hangup'; jobs and tables remain\n"
                        "systemd: STOPPING=1\n" REMOVED);
    assert_true(rig.daemon.status == 0 && rig.turn == 1);
}

static void a_lead_that_is_lost_ends_it(void **state)
{
    (void)state;
    open_daemon();
    rig.daemon.lead = (struct by_lead *)&rig;
    rig.turns[0][0] = LOST;
    rig.last = 1;
    by_daemon_run(&rig.daemon);
    record_expect(ADDED "add 104 in\nsaid: another one leads\n" REMOVED);
    assert_true(rig.daemon.retires && rig.daemon.status == 3);
}

/* sd_watchdog_enabled(3): twice in the period. */
static void systemd_is_told_twice_in_its_period(void **state)
{
    (void)state;
    for (unsigned told = 0; told < 2; told++) {
        open_daemon();
        rig.alive_ms = told ? 1001 : 0;
        rig.now[1] = (struct timespec){0, 499000000};
        rig.now[2] = (struct timespec){0, 500000000};
        rig.now[3] = (struct timespec){0, 999000000};
        rig.now[4] = (struct timespec){1, 0};
        for (unsigned i = 0; i < 4; i++)
            rig.turns[i][0] = TIMER;
        rig.last = 4;
        by_daemon_run(&rig.daemon);
        record_expect(told ? ADDED "tick at 499\ntick at 500\nsystemd: WATCHDOG=1\ntick at 999\ntick at "
                                   "1000\nsystemd: WATCHDOG=1\n" REMOVED
                           : ADDED "tick at 499\ntick at 500\ntick at 999\ntick at 1000\n" REMOVED);
    }
}

static void the_signals_that_end_it_are_read(void **state)
{
    (void)state;
    open_daemon();
    signal(SIGPIPE, SIG_DFL);
    assert_int_equal(by_daemon_signals(), SIGNALS);
    for (int i = 1; i < 32; i++)
        assert_int_equal(sigismember(&rig.blocked, i), i == SIGTERM || i == SIGINT || i == SIGHUP);
    assert_true(signal(SIGPIPE, SIG_DFL) == SIG_IGN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_end_counts),
        cmocka_unit_test(a_daemon_that_no_longer_leads_retires),
        cmocka_unit_test(descriptors_are_added_changed_and_removed),
        cmocka_unit_test(a_descriptor_that_cannot_be_watched_ends_it),
        cmocka_unit_test(descriptor_zero_is_one),
        cmocka_unit_test(the_timer_has_the_period_of_a_heartbeat),
        cmocka_unit_test(each_turn_has_its_time),
        cmocka_unit_test(a_timer_that_is_read_already_is_no_heartbeat),
        cmocka_unit_test(a_signal_ends_it_and_the_rest_of_the_turn_is_left),
        cmocka_unit_test(a_lead_that_is_lost_ends_it),
        cmocka_unit_test(systemd_is_told_twice_in_its_period),
        cmocka_unit_test(the_signals_that_end_it_are_read),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
