/* See loop.h. */
#include "tests/unit/control/daemon/loop.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <cmocka.h>

#include "control/topology/alloc.h"
#include "tests/unit/control/lower/bench.h"

static struct by_daemon *daemon_of_test;

int members_open(const struct by_options *options)
{
    daemon_of_test = by_alloc(1, sizeof(*daemon_of_test));
    daemon_of_test->topology = bench_topology("h0 h1", "h0-h1");
    daemon_of_test->epoll = epoll_create1(EPOLL_CLOEXEC);
    daemon_of_test->now_ms = 1000;
    daemon_of_test->options = *options;
    return by_members_open(daemon_of_test);
}

void members_close(void)
{
    by_members_close(daemon_of_test);
    close(daemon_of_test->epoll);
    by_topology_free(daemon_of_test->topology);
    free(daemon_of_test);
    daemon_of_test = NULL;
}

struct by_daemon *members_daemon(void)
{
    return daemon_of_test;
}

void members_turn(void)
{
    struct epoll_event events[16];
    int count;

    while ((count = epoll_wait(daemon_of_test->epoll, events, 16, 20)) > 0)
        for (int i = 0; i < count; i++) {
            struct by_watcher *watcher = events[i].data.ptr;

            watcher->ready(daemon_of_test, watcher, events[i].events);
        }
    by_members_tick(daemon_of_test);
}
