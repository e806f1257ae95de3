/* Implements loop.h. */
#include "tests/unit/control/service/daemon/loop.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "control/base/alloc.h"
#include "control/service/daemon/jobs.h"
#include "control/service/daemon/members_inside.h"
#include "tests/unit/control/tables/bench.h"

static struct by_daemon *daemon_of_test;
static char folder[64], address[96]; /* of members_serve */

static void ignore(struct by_daemon *daemon, const struct by_daemon_event *event)
{
    (void)daemon;
    (void)event;
}

int members_open(const struct by_daemon_options *options)
{
    daemon_of_test = by_alloc(1, sizeof(*daemon_of_test));
    daemon_of_test->topology = bench_topology("h0 h1", "h0-h1");
    daemon_of_test->epoll = epoll_create1(EPOLL_CLOEXEC);
    daemon_of_test->now_ms = 1000;
    daemon_of_test->reduce = ignore;
    daemon_of_test->options = *options;
    return by_members_open(daemon_of_test);
}

/* The sum of what is queued for hosts is right, since it has a limit. */
static void check_waiting(const struct by_members *members)
{
    size_t waiting = 0;

    for (const struct members_peer *peer = members->peers; peer != NULL; peer = peer->next)
        waiting += peer->out.used - peer->out.at;
    assert_int_equal(members->waiting, waiting);
}

void members_close(void)
{
    check_waiting(daemon_of_test->members);
    by_members_close(daemon_of_test);
    while (daemon_of_test->job_count > 0)
        by_jobs_remove(daemon_of_test, daemon_of_test->jobs[0]);
    close(daemon_of_test->epoll);
    by_topology_free(daemon_of_test->topology);
    free(daemon_of_test);
    daemon_of_test = NULL;
}

int members_serve(void (*reduce)(struct by_daemon *daemon, const struct by_daemon_event *event))
{
    int error;

    snprintf(folder, sizeof(folder), "/tmp/banyan-test-XXXXXX");
    assert_non_null(mkdtemp(folder));
    snprintf(address, sizeof(address), "unix:%s/members", folder);
    error = members_open(&(struct by_daemon_options){.member_count = 1, .members = {address}});
    daemon_of_test->reduce = reduce;
    return error;
}

int members_stop(void)
{
    members_close();
    return rmdir(folder);
}

int members_join(void)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    snprintf(to.sun_path, sizeof(to.sun_path), "%s", address + strlen("unix:"));
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
    members_turn();
    return fd;
}

struct by_job *members_job(const char *text)
{
    const struct by_topology *topology = daemon_of_test->topology;
    const struct by_lower_options options = {0};
    struct by_job *job = by_alloc(1, sizeof(*job));
    struct by_problem problem = {0};
    struct by_fabric_loss loss;

    assert_int_equal(by_job_parse(text, topology, &job->spec, &problem), 0);
    job->state = BY_JOB_RUNNING;
    job->tables = by_alloc(1, sizeof(*job->tables));
    job->tables->gen = 1;
    job->tables->lost_links = by_alloc(topology->link_count, sizeof(bool));
    by_fabric_loss_init(&loss, topology);
    assert_int_equal(by_fabric_plan(topology, &job->spec, &loss, NULL, NULL,
                                    &(struct by_apart){.limit_ms = 60000, .stop_fd = -1}, job->tables,
                                    &problem),
                     0);
    assert_int_equal(by_fabric_lower(topology, job->spec.job, &options, job->tables, &problem), 0);
    by_fabric_loss_free(&loss);
    by_jobs_insert(daemon_of_test, job);
    return job;
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
