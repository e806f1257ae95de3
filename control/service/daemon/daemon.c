/*
 * Start and end of banyand: reads the command line and the topology, finds the addresses of the
 * switches, and runs the loop until a signal. It releases everything in reverse order; tables on
 * the switches stay. The calling thread is the loop's.
 */
#include <errno.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "control/base/alloc.h"
#include "control/service/controller/target.h"
#include "control/service/daemon/ahead.h"
#include "control/service/daemon/changes.h"
#include "control/service/daemon/daemon.h"
#include "control/service/daemon/follow.h"
#include "control/service/daemon/history.h"
#include "control/service/daemon/http.h"
#include "control/service/daemon/jobs.h"
#include "control/service/daemon/lead.h"
#include "control/service/daemon/members.h"
#include "control/service/daemon/news.h"
#include "control/service/daemon/notice.h"
#include "control/service/daemon/rates.h"
#include "control/service/daemon/recovery.h"
#include "control/service/daemon/reduce.h"
#include "control/service/daemon/state.h"
#include "control/service/daemon/thread.h"
#include "offload/base/errors.h"

#define EXIT_USAGE       2
#define EXIT_ENVIRONMENT 3

static int refuse(const char *file, const struct by_problem *problem)
{
    if (problem->line > 0)
        fprintf(stderr, "banyand: %s:%d:%d: %s\n", file, problem->line, problem->column, problem->text);
    else
        fprintf(stderr, "banyand: %s: %s\n", file, problem->text);
    return EXIT_USAGE;
}

/* Finds the address of a switch: from --to, else in --sockets, else from the site. Returns 0 or
 * EXIT_USAGE. */
static int find_address(const struct by_daemon_options *options, const struct by_topology *topology,
                        struct by_daemon_switch *device)
{
    const char *control = by_site_control(topology, device->node);
    struct by_problem problem = {0};
    size_t length = strlen(device->name);
    int used = 0;

    for (uint32_t i = 0; i < options->to_count; i++)
        if (strncmp(options->to[i], device->name, length) == 0 && options->to[i][length] == '=')
            used = snprintf(device->address, sizeof(device->address), "%s", options->to[i] + length + 1);
    if (used == 0 && options->sockets != NULL)
        used = snprintf(device->address, sizeof(device->address), "unix:%s/%s.sock", options->sockets,
                        device->name);
    if (used == 0 && control != NULL) {
        used = snprintf(device->address, sizeof(device->address), "%s", control);
        if (by_target_check(control, &problem) != 0) {
            fprintf(stderr, "banyand: %s: switch %s: %s\n", options->site, device->name, problem.text);
            return EXIT_USAGE;
        }
    }
    if (used == 0)
        fprintf(stderr,
                "banyand: %s: no address for switch %s: add --to %s=ADDR, or its \"control\" to the site\n",
                options->topology, device->name, device->name);
    else if (used >= (int)sizeof(device->address))
        fprintf(stderr, "banyand: the address of switch %s has %d characters; the limit is %zu\n",
                device->name, used, sizeof(device->address) - 1);
    return used > 0 && used < (int)sizeof(device->address) ? 0 : EXIT_USAGE;
}

/* Checks that every --to names a switch of the fabric. */
static int check_to(const struct by_daemon *daemon)
{
    const struct by_daemon_options *options = &daemon->options;

    for (uint32_t i = 0; i < options->to_count; i++) {
        int length = (int)strcspn(options->to[i], "=");
        char name[BY_NAME_MAX + 2]; /* a longer name is that of no node */
        int64_t node;

        snprintf(name, sizeof(name), "%.*s", length, options->to[i]);
        node = by_topology_find(daemon->topology, name);
        if (node >= 0 && by_site_is_switch(daemon->topology, (uint32_t)node))
            continue;
        fprintf(stderr, "banyand: --to %s: no switch '%.*s' in %s\n", options->to[i], (int)length,
                options->to[i], options->topology);
        return EXIT_USAGE;
    }
    return 0;
}

static int find_switches(struct by_daemon *daemon)
{
    const struct by_topology *topology = daemon->topology;
    const struct by_daemon_options *options = &daemon->options;
    int status = 0;

    daemon->switches = by_alloc(topology->node_count, sizeof(*daemon->switches));
    daemon->switch_of = by_alloc(topology->node_count, sizeof(*daemon->switch_of));
    for (uint32_t i = 0; i < topology->node_count && status == 0; i++) {
        struct by_daemon_switch *device = &daemon->switches[daemon->switch_count];

        daemon->switch_of[i] = UINT32_MAX;
        if (!by_site_is_switch(topology, i))
            continue;
        daemon->switch_of[i] = daemon->switch_count++;
        device->node = i;
        device->name = topology->nodes[i].name;
        status = find_address(options, topology, device);
    }
    return status == 0 ? check_to(daemon) : status;
}

/* Checks the syntax of the jobs before anything starts. */
static int check_jobs(const struct by_daemon *daemon)
{
    for (uint32_t i = 0; i < daemon->options.job_count; i++) {
        struct by_job_spec spec;
        struct by_problem problem = {0};

        if (by_job_parse(daemon->options.jobs[i], daemon->topology, &spec, &problem) != 0)
            return refuse("--job", &problem);
        by_job_spec_free(&spec);
    }
    return 0;
}

static int open_http(struct by_daemon *daemon)
{
    struct by_problem problem = {0};

    if (by_http_open(daemon, &problem) == 0)
        return 0;
    fprintf(stderr, "banyand: %s\n", problem.text);
    return EXIT_ENVIRONMENT;
}

/* Waits until this process leads. daemon->ending after a signal. */
static int await_lead(struct by_daemon *daemon, struct by_problem *problem)
{
    const struct by_daemon_options *options = &daemon->options;
    struct by_follow *follow;
    int signals = by_daemon_signals(), error = 0;

    if (options->lower.cover != 0 && !options->access.plain_keys &&
        by_etcd_is_exposed(by_lead_etcd(daemon->lead)))
        error =
            by_problem_say(problem, BY_EINVAL,
                           "--store: the state contains the keys of jobs, which http:// would expose: use "
                           "https://, or --plain-keys where no other program can listen");
    if (error == 0) {
        follow = by_follow_open(&daemon->options, daemon->topology->name);
        error = by_lead_wait(daemon->lead, signals, by_follow_see, follow, problem);
        by_follow_close(follow);
    }
    close(signals);
    daemon->ending = error == BY_EABORTED;
    return daemon->ending ? 0 : error;
}

/* Opens the store. Returns 0, also when a signal ended the wait for a shared one, or the exit
 * status. */
static int open_state(struct by_daemon *daemon)
{
    const struct by_daemon_options *options = &daemon->options;
    struct by_problem problem = {0};
    int error = 0;

    if (options->store != NULL) {
        error = by_lead_open(options->store, options->store_keys, &daemon->lead, &problem);
        if (error == 0)
            error = await_lead(daemon, &problem);
        if (error == 0 && !daemon->ending)
            error = by_state_open_etcd(daemon->lead, options->store, daemon->topology, &options->lower,
                                       &daemon->state, &problem);
    } else if (options->state != NULL) {
        error = by_state_open(options->state, daemon->topology, &options->lower, &daemon->state, &problem);
    }
    if (error == 0)
        return 0;
    fprintf(stderr, "banyand: %s%s\n", daemon->lead == NULL && options->store != NULL ? "--store: " : "",
            problem.text);
    return error == BY_EINVAL ? EXIT_USAGE : EXIT_ENVIRONMENT;
}

static int open_daemon(struct by_daemon *daemon)
{
    struct by_problem problem = {0};
    int status;

    if (by_topology_read(daemon->options.topology, &daemon->topology, &problem) != 0)
        return refuse(daemon->options.topology, &problem);
    if (daemon->options.site != NULL && by_site_read(daemon->options.site, daemon->topology, &problem) != 0)
        return refuse(daemon->options.site, &problem);
    if (daemon->options.lower.mtu == 0)
        daemon->options.lower.mtu = by_lower_mtu_least(daemon->topology);
    if (by_address_map_make(daemon->topology, &daemon->map, &problem) != 0)
        return refuse(daemon->options.topology, &problem);
    status = find_switches(daemon);
    if (status == 0)
        status = check_jobs(daemon);
    if (status != 0)
        return status;
    status = open_state(daemon);
    if (status != 0 || daemon->ending)
        return status;
    daemon->links = by_alloc(daemon->topology->link_count, sizeof(*daemon->links));
    daemon->started_ms = by_news_clock_ms();
    daemon->news = by_news_open();
    daemon->rates = by_rates_open(daemon->topology->link_count);
    daemon->history = by_history_open(daemon->topology->link_count);
    by_fabric_loss_init(&daemon->loss, daemon->topology);
    daemon->reduce = by_reduce;
    daemon->epoll = epoll_create1(EPOLL_CLOEXEC);
    daemon->events = by_event_queue_open();
    daemon->work = by_work_start(daemon->events);
    daemon->requests = by_jobs_open();
    by_recovery_open(daemon);
    by_notice_open(daemon);
    switch (by_members_open(daemon)) {
    case 0:
        break;
    case BY_EINVAL:
        return EXIT_USAGE;
    default:
        return EXIT_ENVIRONMENT;
    }
    return open_http(daemon);
}

/* How long the end waits for threads (milliseconds). */
#define END_MS 1500u

/* Ends the process if threads take longer. Their work is atomic: the store's transactions, and
 * pushes, which the next start settles. */
struct daemon_ending {
    sem_t ended; /* posted when the threads have ended */
    int status;
};

static void *end_anyway(void *argument)
{
    struct daemon_ending *ending = argument;
    struct timespec until;
    int result;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += END_MS / 1000;
    until.tv_nsec += END_MS % 1000 * 1000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    while ((result = sem_clockwait(&ending->ended, CLOCK_MONOTONIC, &until)) != 0 && errno == EINTR)
        ;
    if (result == 0)
        return NULL;
    by_daemon_say("ends before its threads: the next start settles an unfinished push");
    _exit(ending->status);
}

static void close_daemon(struct by_daemon *daemon)
{
    struct daemon_ending ending = {.status = daemon->status};
    pthread_t thread = 0;

    by_start_close(daemon);
    if (daemon->events != NULL) {
        by_ahead_close(daemon);
        by_http_close(daemon);
        by_members_close(daemon);
        if (!daemon->retires) {
            sem_init(&ending.ended, 0, 0);
            by_thread_start(&thread, end_anyway, &ending);
        }
        by_switches_stop(daemon);
        by_work_stop(daemon->work);
        if (!daemon->retires) {
            sem_post(&ending.ended);
            pthread_join(thread, NULL);
            sem_destroy(&ending.ended);
        }
        by_notice_close(daemon);
        by_recovery_close(daemon);
        by_change_free(daemon->change);
        by_jobs_close(daemon);
        by_event_queue_close(daemon->events);
        close(daemon->epoll);
    }
    for (uint32_t i = 0; i < daemon->switch_count; i++)
        free(daemon->switches[i].image.bytes);
    by_state_close(daemon->state);
    by_lead_close(daemon->lead);
    by_history_close(daemon->history);
    by_rates_close(daemon->rates);
    by_news_close(daemon->news);
    by_fabric_loss_free(&daemon->loss);
    by_address_map_free(&daemon->map);
    free(daemon->links);
    free(daemon->switches);
    free(daemon->switch_of);
    by_topology_free(daemon->topology);
    free(daemon);
}

/* Runs once, up to the end or to the loss of the leadership. Returns the exit status; *again: it
 * waits to lead again. */
static int run(const struct by_daemon_options *options, bool *again)
{
    struct by_daemon *daemon = by_alloc(1, sizeof(*daemon));
    int status;

    daemon->options = *options;
    status = open_daemon(daemon);
    if (status == 0 && !daemon->ending) {
        by_start_open(daemon);
        by_daemon_run(daemon);
    }
    if (status == 0)
        status = daemon->status; /* also of a part that has ended it while it opened */
    *again = daemon->retires;
    close_daemon(daemon);
    return status;
}

int by_daemon_main(int argc, char **argv)
{
    struct by_daemon_options *options = by_alloc(1, sizeof(*options));
    mode_t before = umask(0077); /* its files hold keys */
    int status = by_daemon_options_parse(options, argc, argv);
    bool again = status < 0;

    while (again)
        status = run(options, &again);
    free(options);
    umask(before);
    return status;
}
