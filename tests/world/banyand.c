/* The banyand of the world: the whole program, from its command line on, in a process that can be
 * killed; and its user, who creates and ends jobs as the HTTP server would. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include "control/service/daemon/jobs.h"
#include "control/service/daemon/state.h"
#include "tests/world/world.h"

#define REQUESTS_MAX 16u

struct user_request {
    struct world_job *job;
    bool create;
    uint32_t start; /* of banyand: an answer of another process does not exist */
};

static struct user_request requests[REQUESTS_MAX];
static uint32_t request_count;

void __wrap_by_daemon_run(struct by_daemon *daemon);
void __real_by_daemon_run(struct by_daemon *daemon);
void __wrap_by_daemon_say(const char *format, ...);
int __wrap_printf(const char *format, ...);
int __wrap_fprintf(FILE *stream, const char *format, ...);

/* ---- what it prints ---- */

void __wrap_by_daemon_say(const char *format, ...)
{
    char text[700];
    va_list arguments;

    if (vm_self() != NULL && vm_self()->zombie)
        return;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    vm_trace("banyand: %s", text);
}

int __wrap_printf(const char *format, ...)
{
    char text[700];
    va_list arguments;
    int result;

    va_start(arguments, format);
    if (vm_self() == NULL) {
        result = vprintf(format, arguments);
    } else {
        result = vsnprintf(text, sizeof(text), format, arguments);
        text[strcspn(text, "\n")] = 0;
        vm_trace("%s", text);
    }
    va_end(arguments);
    return result;
}

int __wrap_fprintf(FILE *stream, const char *format, ...)
{
    char text[700];
    va_list arguments;
    int result;

    va_start(arguments, format);
    if (vm_self() == NULL || stream != stderr) {
        result = vfprintf(stream, format, arguments);
    } else {
        result = vsnprintf(text, sizeof(text), format, arguments);
        text[strcspn(text, "\n")] = 0;
        if (!vm_self()->zombie)
            vm_trace("%s", text);
    }
    va_end(arguments);
    return result;
}

/* ---- its user ---- */

static void on_reply(struct by_daemon *daemon, void *context, int error, const struct by_job *job,
                     const char *text)
{
    struct world_job *known = context;

    (void)daemon;
    (void)job;
    if (vm_self()->zombie)
        return; /* no answer leaves a process that was killed */
    vm_trace("user: job %u: %s", known->job, error == 0 ? "done" : text);
    if (known->state == WORLD_CREATING)
        known->state = error == 0 ? WORLD_EXISTS : WORLD_UNKNOWN;
    else if (known->state == WORLD_ENDING)
        known->state = error == 0 ? WORLD_ENDED : WORLD_UNKNOWN;
}

static void on_requests(struct by_daemon *daemon, struct by_watcher *watcher, uint32_t events)
{
    eventfd_t count;

    (void)events;
    eventfd_read(watcher->fd, &count);
    while (request_count > 0) {
        struct user_request request = requests[0];
        struct by_job_spec spec = {.job = request.job->job, .share = {0, 1}, .window = 4};
        struct by_problem problem = {0};

        memmove(&requests[0], &requests[1], --request_count * sizeof(requests[0]));
        if (!request.create) {
            by_jobs_end(daemon, request.job->job, on_reply, request.job);
            continue;
        }
        if (request.job->rank_count < world.host_count) {
            spec.member = calloc(daemon->topology->node_count, sizeof(*spec.member));
            for (uint32_t i = 0; i < world.host_count; i++)
                spec.member[world.hosts[i].node] = request.job->members[i];
        }
        if (by_job_wants(&spec, "allreduce", daemon->topology, &problem) == 0)
            by_jobs_create(daemon, &spec, on_reply, request.job);
        by_job_spec_free(&spec);
    }
}

void world_request(struct world_job *job, bool create)
{
    if (world.daemon == NULL || world.daemon->start != NULL || world.requests_fd < 0 ||
        request_count == REQUESTS_MAX)
        return;
    vm_trace("user: %s job %u", create ? "create" : "end", job->job);
    job->state = create ? WORLD_CREATING : WORLD_ENDING;
    requests[request_count++] = (struct user_request){.job = job, .create = create, .start = world.starts};
    vm_ready_changed(world.requests_fd);
}

/* ---- its process ---- */

void __wrap_by_daemon_run(struct by_daemon *daemon)
{
    world.daemon = daemon;
    world.requests_fd = vm_ready_open(&request_count);
    world.watcher = (struct by_watcher){.fd = world.requests_fd, .ready = on_requests};
    by_daemon_watch(daemon, &world.watcher, EPOLLIN);
    __real_by_daemon_run(daemon);
    world.daemon = NULL;
    vm_ready_close(world.requests_fd);
    world.requests_fd = -1;
}

static void run(void *context)
{
    static char to[WORLD_SWITCHES_MAX][80];
    char *argv[40] = {"banyand",
                      "/w/topology.json",
                      "--http",
                      "off",
                      "--socket",
                      "off",
                      "--state",
                      "/w/state",
                      "--members",
                      "unix:/w/members",
                      "--timeout",
                      "1",
                      "--mtu",
                      "576",
                      "--quiet",
                      "500",
                      "--trust",
                      "1000",
                      "--heartbeat",
                      world.options.heartbeat,
                      "--lose",
                      world.options.lose,
                      "--renew-after",
                      world.options.renew,
                      "--standby",
                      world.options.standby,
                      world.options.keyed};
    int count = 27;

    (void)context;
    for (uint32_t i = 0; i < world.switch_count; i++) {
        snprintf(to[i], sizeof(to[i]), "%s=unix:%s", world.switches[i].name, world.switches[i].server.path);
        argv[count++] = "--to";
        argv[count++] = to[i];
    }
    world.status = by_daemon_main(count, argv);
    world.runs = false;
    if (!vm_self()->zombie)
        vm_trace("banyand ends with status %d", world.status);
}

/* What was asked of it has an unknown outcome. */
static void on_killed(void *context)
{
    world.counts.kills += context == NULL;
    world.daemon = NULL;
    request_count = 0;
    for (uint32_t i = 0; i < WORLD_JOBS_MAX; i++)
        if (world.jobs[i].state == WORLD_CREATING || world.jobs[i].state == WORLD_ENDING)
            world.jobs[i].state = WORLD_UNKNOWN;
}

void world_banyand_start(void)
{
    if (world.runs)
        return;
    world.runs = true;
    world.starts++;
    on_killed(&world); /* also after an orderly end */
    world.banyand = (struct vm_process){.killed = on_killed};
    vm_trace("banyand starts");
    vm_process_start(&world.banyand, "banyand", run, NULL);
}
