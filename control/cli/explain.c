/*
 * The command `banyan explain`: shows which path a job would use for a call: the trees, the
 * transport, offloaded or by which schedule and why, and the best possible time according to the
 * plan. libbanyan makes this decision, so banyan-perf, a program in the same directory, prints it.
 * This command converts the plans to the table of one host, and their bounds to optima.
 * Single-threaded.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "control/base/fraction.h"
#include "control/cli/cli.h"
#include "control/fabric/unit.h"
#include "control/plan/plan.h"
#include "control/tables/lower.h"
#include "offload/base/limits.h"
#include "offload/wire/types.h"

#define PLANS_MAX 16u
/* What is passed to banyan-perf, each with its value; further arguments that this command adds. */
enum passed { COLLECTIVE, SIZE, OP, DTYPE, MODE, ROOT, COUNTS, JOB, TABLE, OPTIMUM, ALPHA, BETA, PASSED };
#define OWN_ARGUMENTS 4 /* its name, the action, --json, the end */

struct explain {
    struct by_topology *topology;
    struct by_plan *plans[PLANS_MAX];
    uint32_t plan_count;
    const char *host;
    const char *passed[PASSED]; /* NULL: not given */
    bool json;
    char table[32];
    char optimum[512];
};

static int read_plans(struct explain *explain, int count, char **paths)
{
    struct by_problem problem = {0};

    if (count == 0)
        return 0;
    if (count == 1 || (uint32_t)count - 1 > PLANS_MAX)
        return by_cli_fail(BY_EXIT_USAGE, "explain requires a topology and its plans, at most %u, or neither",
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
    explain->passed[TABLE] = explain->table;
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
                                   : "the unit '%s' of the topology does not count bytes; use one that does",
                               unit);
        used += (size_t)snprintf(explain->optimum + used, sizeof(explain->optimum) - used, "%s%s=%s",
                                 used > 0 ? "," : "", by_collective_name(explain->plans[i]->collective),
                                 by_fraction_text(optimum, fraction));
        if (used >= sizeof(explain->optimum) - 64)
            break;
    }
    explain->passed[OPTIMUM] = explain->optimum;
    return 0;
}

#define AT(member) BY_OPTION_AT(struct explain, member)

static const struct by_option rows[] = {
    {BY_ROW_LIST('c', "collective", "LIST", BY_OPTION_NONE, 1, BY_COLLECTIVE_COUNT - 1,
                 "explain all, or some of %l (default allreduce)"),
     .text = AT(passed[COLLECTIVE]), .word = by_collective_name, .once = true},
    {BY_ROW_SIZE('s', "size", "SIZE", BY_OPTION_NONE, 0, UINT64_C(1) << 40,
                 "the size of the data in bytes, %r; K, M, G are binary (default 16M)"),
     .text = AT(passed[SIZE])},
    {BY_ROW_LIST('o', "op", "LIST", BY_OPTION_NONE, 1, BY_OP_COUNT - 1, "all, or some of %l (default sum)"),
     .text = AT(passed[OP]), .word = by_op_name},
    {BY_ROW_LIST('d', "dtype", "LIST", BY_OPTION_NONE, 1, BY_DTYPE_COUNT - 1,
                 "all, or some of %l (default f32)"),
     .text = AT(passed[DTYPE]), .word = by_dtype_name},
    {BY_ROW_CHOICE('m', "mode", "MODE", BY_OPTION_NONE, 1, BY_MODE_COUNT - 1,
                   "the order in which floats are added: %l (BANYAN_MODE)"),
     .text = AT(passed[MODE]), .word = by_mode_name},
    {BY_ROW_NUMBER('r', "root", "RANK", BY_OPTION_NONE, 0, BY_RANKS_MAX,
                   "the root of broadcast and reduce (default 0)"),
     .text = AT(passed[ROOT])},
    {BY_ROW_TEXT(
        0, "counts", "LIST", AT(passed[COUNTS]),
        "shares of unequal size for allgather and reduce-scatter: parts of each rank, such as 3,1,0,2")},
    {BY_ROW_NUMBER(0, "job", "N", BY_OPTION_NONE, 1, BY_JOBS_MAX - 1,
                   "the job of the table, %r (BANYAN_JOB)"),
     .text = AT(passed[JOB])},
    {BY_ROW_TEXT(0, "table", "FILE", AT(passed[TABLE]), "the table image, in place of BANYAN_TABLE")},
    {BY_ROW_TEXT(0, "host", "NAME", AT(host),
                 "with plans: the host whose table is used (default: the first rank)")},
    {BY_ROW_TEXT(
        0, "optimum", "LIST", AT(passed[OPTIMUM]),
        "the optimum of each collective in GB/s, in place of the plans': allreduce=40/7,broadcast=10")},
    {BY_ROW_DECIMAL(0, "alpha", "US", BY_OPTION_NONE, 1000000000,
                    "the time of a message between hosts in microseconds"),
     .text = AT(passed[ALPHA])},
    {BY_ROW_DECIMAL(0, "beta", "NS", BY_OPTION_NONE, 1000000000,
                    "the time of each of its bytes in nanoseconds; both predict the time of a call between "
                    "hosts"),
     .text = AT(passed[BETA])},
    {BY_ROW_FLAG(0, "json", AT(json), "print one JSON object")},
    {0}};

static const struct by_options command_line = {
    .program = "banyan explain",
    .usage = "banyan explain [TOPO PLAN...] [options]",
    .about = "Shows which path a call would take, trees of the table or an algorithm between the hosts, and "
             "why; and its predicted time, from the optimum of its plan. Sends nothing. The table is that of "
             "BANYAN_TABLE, or is made from the plans, as by banyan tables; other BANYAN_* settings apply as "
             "for a job.",
    .rows = rows,
    .most = UINT_MAX};

static int become_perf(const struct explain *explain)
{
    static const char *const names[PASSED] = {
        "-c", "-b", "-o", "-d", "-m", "-r", "--counts", "--job", "--table", "--optimum", "--alpha", "--beta"};
    const char *argv[2 * PASSED + OWN_ARGUMENTS] = {"banyan explain", "--explain"};
    int argc = 2;

    for (unsigned i = 0; i < PASSED; i++)
        if (explain->passed[i] != NULL) {
            argv[argc++] = names[i];
            argv[argc++] = explain->passed[i];
        }
    if (explain->json)
        argv[argc++] = "--json";
    return by_cli_become("banyan-perf", (char *const *)(uintptr_t)argv);
}

int by_command_explain(int argc, char **argv)
{
    struct explain explain = {0};
    int status = by_options_read(&command_line, &explain, &argc, argv);

    if (status >= 0)
        return status;
    status = read_plans(&explain, argc - 1, argv + 1);
    if (status == 0 && explain.plan_count > 0) {
        status = make_table(&explain);
        if (status == 0 && explain.passed[OPTIMUM] == NULL)
            status = pass_optima(&explain);
    }
    if (status == 0)
        status = become_perf(&explain);
    for (uint32_t i = 0; i < explain.plan_count; i++)
        by_plan_free(explain.plans[i]);
    by_topology_free(explain.topology);
    return status;
}
