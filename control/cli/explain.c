/*
 * The command `banyan explain`: shows which path a job would use for a call: the trees, the
 * transport, offloaded or by which schedule and why, and the best possible time according to the
 * plan. libbanyan makes this decision, so banyan-perf, a program in the same directory, prints it.
 * This command converts the plans to the table of one host, and their bounds to optima.
 * Single-threaded.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "control/base/alloc.h"
#include "control/base/fraction.h"
#include "control/cli/cli.h"
#include "control/fabric/unit.h"
#include "control/plan/plan.h"
#include "control/tables/lower.h"
#include "offload/wire/types.h"

static const char help[] =
    "usage: banyan explain [TOPO PLAN...] [options]\n"
    "\n"
    "Says what a call would do: over which trees of the table it runs, or how between the hosts, and why; "
    "and "
    "when it would be\n"
    "done, by the optimum of its plan. Sends nothing. The table is that of BANYAN_TABLE, or is made from the "
    "plans, as by\n"
    "banyan tables; other BANYAN_* settings are obeyed as by a job.\n"
    "\n"
    "  -c, --collective LIST  all, or some of allreduce, reduce-scatter, allgather, broadcast, reduce, "
    "barrier (default allreduce)\n"
    "  -s, --size SIZE        of the data in bytes; K, M, G are binary (default 16M)\n"
    "  -o, --op LIST, -d, --dtype LIST, -m, --mode MODE, -r, --root RANK, --counts LIST, --job N\n"
    "                         as for banyan-perf\n"
    "      --table FILE       the table image, in place of BANYAN_TABLE\n"
    "      --host NAME        with plans: whose table (default: that of the first rank)\n"
    "      --optimum LIST     of each collective in GB/s, in place of the plans': "
    "allreduce=40/7,broadcast=10\n"
    "      --alpha US, --beta NS  what a message between hosts takes, and each byte, for a prediction there\n"
    "      --json             one JSON object on stdout\n"
    "      --help\n";

#define PLANS_MAX 16u
/*
 * Arguments of banyan-perf that this command adds: its name, the action, a table, optima, the end.
 */
#define OWN_ARGUMENTS 8

struct explain {
    struct by_topology *topology;
    struct by_plan *plans[PLANS_MAX];
    uint32_t plan_count;
    const char *host;
    char **argv; /* arguments of banyan-perf, with room for all arguments of this command */
    int argc;
    char table[32];
    bool has_optimum; /* an option gave the optimum */
    char optimum[512];
};

static void pass(struct explain *explain, const char *option, const char *value)
{
    explain->argv[explain->argc++] = (char *)(uintptr_t)option;
    if (value != NULL)
        explain->argv[explain->argc++] = (char *)(uintptr_t)value;
}

static int read_plans(struct explain *explain, int count, char **paths)
{
    struct by_problem problem = {0};

    if (count == 0)
        return 0;
    if (count == 1 || (uint32_t)count - 1 > PLANS_MAX)
        return by_cli_fail(BY_EXIT_USAGE, "explain takes a topology and its plans, at most %u, or neither",
                           PLANS_MAX);
    explain->topology = by_cli_topology(paths[0]);
    if (explain->topology == NULL)
        return BY_EXIT_USAGE;
    for (int i = 1; i < count; i++, explain->plan_count++)
        if (by_plan_read(paths[i], explain->topology, &explain->plans[explain->plan_count], &problem) != 0)
            return by_cli_refuse(paths[i], &problem);
    return 0;
}

/*
 * Returns the host whose table is used: the named one, or the first rank of the plans. Returns -1
 * after it printed an error.
 */
static int64_t find_host(const struct explain *explain, const struct by_lowering *lowering)
{
    const struct by_topology *topology = explain->topology;

    for (uint32_t node = 0; node < topology->node_count; node++)
        if (by_lowering_rank(lowering, 1, node) != UINT32_MAX &&
            (explain->host == NULL || strcmp(topology->nodes[node].name, explain->host) == 0))
            return node;
    by_cli_fail(BY_EXIT_USAGE, "--host %s: no rank of the plans has that name",
                explain->host != NULL ? explain->host : "");
    return -1;
}

/* Stores the table in a file without a name, which banyan-perf inherits. */
static int keep_table(struct explain *explain, const uint8_t *bytes, size_t size)
{
    int fd = memfd_create("table", 0);
    size_t done = 0;

    while (fd >= 0 && done < size) {
        ssize_t wrote = write(fd, bytes + done, size - done);

        if (wrote < 0)
            break;
        done += (size_t)wrote;
    }
    if (fd < 0 || done < size)
        return by_cli_fail(BY_EXIT_ENVIRONMENT, "explain: no memory for a table: %s", strerror(errno));
    snprintf(explain->table, sizeof(explain->table), "/proc/self/fd/%d", fd);
    pass(explain, "--table", explain->table);
    return 0;
}

static int make_table(struct explain *explain)
{
    struct by_lower_job job = {
        .job = 1, .plan_count = explain->plan_count, .plans = (const struct by_plan *const *)explain->plans};
    const struct by_lower_options options = {0};
    struct by_lowering *lowering = NULL;
    struct by_problem problem = {0};
    uint8_t *bytes = NULL;
    size_t size;
    int64_t node;
    int status = 0;

    if (by_lower(explain->topology, &job, 1, &options, &lowering, &problem) != 0)
        return by_cli_refuse("explain", &problem);
    node = find_host(explain, lowering);
    if (node < 0)
        status = BY_EXIT_USAGE;
    else if (by_lowering_image(lowering, (uint32_t)node, &bytes, &size, &problem) != 0)
        status = by_cli_refuse("explain", &problem);
    else
        status = keep_table(explain, bytes, size);
    free(bytes);
    by_lowering_free(lowering);
    return status;
}

/* Passes the bounds of the plans in GB/s, unless --optimum was given. */
static int pass_optima(struct explain *explain)
{
    const char *unit = explain->topology->unit;
    size_t used = 0;

    for (uint32_t i = 0; i < explain->plan_count; i++) {
        char fraction[BY_FRACTION_TEXT_BYTES];
        struct by_fraction optimum;

        if (by_unit_gigabytes(unit, explain->plans[i]->optimum, &optimum) != 0)
            return by_cli_fail(BY_EXIT_USAGE,
                               by_unit_has_bytes(unit)
                                   ? "the optimum in GB/s needs more than 63 bits; round the bandwidths in %s"
                                   : "the unit '%s' of the topology counts no bytes; give it one that does",
                               unit);
        used += (size_t)snprintf(explain->optimum + used, sizeof(explain->optimum) - used, "%s%s=%s",
                                 used > 0 ? "," : "", by_collective_name(explain->plans[i]->collective),
                                 by_fraction_text(optimum, fraction));
        if (used >= sizeof(explain->optimum) - 64)
            break;
    }
    pass(explain, "--optimum", explain->optimum);
    return 0;
}

static int read_options(struct explain *explain, int argc, char **argv)
{
    static const struct option options[] = {{"collective", required_argument, NULL, 'c'},
                                            {"size", required_argument, NULL, 's'},
                                            {"op", required_argument, NULL, 'o'},
                                            {"dtype", required_argument, NULL, 'd'},
                                            {"mode", required_argument, NULL, 'm'},
                                            {"root", required_argument, NULL, 'r'},
                                            {"counts", required_argument, NULL, 'C'},
                                            {"job", required_argument, NULL, 'j'},
                                            {"table", required_argument, NULL, 't'},
                                            {"host", required_argument, NULL, 'H'},
                                            {"optimum", required_argument, NULL, 'O'},
                                            {"alpha", required_argument, NULL, 'a'},
                                            {"beta", required_argument, NULL, 'b'},
                                            {"json", no_argument, NULL, 'J'},
                                            {"help", no_argument, NULL, 'h'},
                                            {0}};
    static const struct {
        int letter;
        const char *option;
    } passed[] = {{'c', "-c"},     {'s', "-b"},        {'o', "-o"},       {'d', "-d"},      {'m', "-m"},
                  {'r', "-r"},     {'j', "--job"},     {'C', "--counts"}, {'t', "--table"}, {'a', "--alpha"},
                  {'b', "--beta"}, {'O', "--optimum"}, {'J', "--json"}};
    int option;

    optind = 0;
    while ((option = getopt_long(argc, argv, "c:s:o:d:m:r:h", options, NULL)) != -1) {
        if (option == 'h') {
            fputs(help, stdout);
            return -1;
        }
        if (option == '?')
            return BY_EXIT_USAGE;
        if (option == 'H')
            explain->host = optarg;
        explain->has_optimum |= option == 'O';
        for (size_t i = 0; i < sizeof(passed) / sizeof(passed[0]); i++)
            if (passed[i].letter == option)
                pass(explain, passed[i].option, option == 'J' ? NULL : optarg);
    }
    return read_plans(explain, argc - optind, argv + optind);
}

int by_command_explain(int argc, char **argv)
{
    struct explain explain = {0};
    int status;

    /* An option with its value is at most two arguments, in any notation. */
    explain.argv = by_alloc(2 * (size_t)argc + OWN_ARGUMENTS, sizeof(*explain.argv));
    pass(&explain, "banyan explain", "--explain");
    status = read_options(&explain, argc, argv);
    if (status == 0 && explain.plan_count > 0) {
        status = make_table(&explain);
        if (status == 0 && !explain.has_optimum)
            status = pass_optima(&explain);
    }
    if (status == 0)
        status = by_cli_become("banyan-perf", explain.argv);
    for (uint32_t i = 0; i < explain.plan_count; i++)
        by_plan_free(explain.plans[i]);
    by_topology_free(explain.topology);
    free(explain.argv);
    return status < 0 ? BY_EXIT_DONE : status;
}
