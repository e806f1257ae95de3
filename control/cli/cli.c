/*
 * Functions shared by all subcommands: error messages, output files, and reading a topology.
 * Single-threaded.
 */
#include "control/cli/cli.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "control/base/clock.h"
#include "control/fabric/site.h"
#include "offload/base/errors.h"

int by_cli_refuse(const char *file, const struct by_problem *problem)
{
    if (problem->line > 0)
        fprintf(stderr, "banyan: %s:%d:%d: %s\n", file, problem->line, problem->column, problem->text);
    else
        fprintf(stderr, "banyan: %s: %s\n", file, problem->text);
    return BY_EXIT_USAGE;
}

int by_cli_refuse_work(const char *file, int error, const struct by_problem *problem)
{
    by_cli_refuse(file, problem);
    return error == BY_ETIMEDOUT ? BY_EXIT_ENVIRONMENT : BY_EXIT_USAGE;
}

int by_cli_fail(int status, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    fputs("banyan: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    return status;
}

static int lost(const char *path)
{
    return by_cli_fail(BY_EXIT_ENVIRONMENT, "cannot write '%s': %s", path, strerror(errno));
}

bool by_cli_create(struct by_output *output, const char *path)
{
    if (by_output_open(output, path, 0666) == 0)
        return true;
    lost(path);
    return false;
}

int by_cli_finish(struct by_output *output, bool right)
{
    return by_output_close(output, right) == 0 ? BY_EXIT_DONE : lost(output->path);
}

static void end_searches(int signal_number)
{
    (void)signal_number;
    atomic_store_explicit(&by_plan_ended, true, memory_order_relaxed);
}

void by_cli_end_by_signal(void)
{
    struct sigaction action = {.sa_handler = end_searches, .sa_flags = (int)(SA_RESETHAND | SA_RESTART)};

    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

int by_cli_become(const char *program, char *const argv[])
{
    char path[4096];
    ssize_t bytes = readlink("/proc/self/exe", path, sizeof(path) - 64);
    char *slash;

    if (bytes < 0)
        return by_cli_fail(BY_EXIT_ENVIRONMENT, "/proc/self/exe cannot be read: %s", strerror(errno));
    path[bytes] = 0;
    slash = strrchr(path, '/');
    if (slash == NULL)
        return by_cli_fail(BY_EXIT_ENVIRONMENT, "%s is not an absolute path", path);
    snprintf(slash + 1, 64, "%s", program);
    execv(path, argv);
    return by_cli_fail(BY_EXIT_ENVIRONMENT, "cannot start %s: %s", path, strerror(errno));
}

struct by_topology *by_cli_topology(const char *path)
{
    struct by_topology *topology = NULL;
    struct by_problem problem = {0};

    if (by_topology_read(path, &topology, &problem) != 0) {
        by_cli_refuse(path, &problem);
        return NULL;
    }
    return topology;
}

struct by_topology *by_cli_topology_site(const char *path, const char *site)
{
    struct by_topology *topology = by_cli_topology(path);
    struct by_problem problem = {0};

    if (topology != NULL && site != NULL && by_site_read(site, topology, &problem) != 0) {
        by_cli_refuse(site, &problem);
        by_topology_free(topology);
        return NULL;
    }
    return topology;
}
