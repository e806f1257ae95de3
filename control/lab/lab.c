/*
 * The command `banyan lab`: a fabric of any topology file on this machine, in network namespaces
 * with real switches, or in one process. Everything that it creates is removed again after an
 * error, Ctrl-C, the failure of a child, or exit(). After SIGKILL, `lab down` or the next run
 * removes it with the help of the state file. Single-threaded.
 */
#include "control/lab/lab.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "control/base/alloc.h"
#include "control/cli/ranks.h"
#include "control/fabric/members.h"
#include "control/plan/shares.h"

volatile int lab_stopping;

/*
 * The current lab, for the atexit handler, which has no arguments. Children end by _exit or exec
 * and never run the handler.
 */
static struct lab *current;

static void on_signal(int number)
{
    lab_stopping = number;
}

static void catch_signals(void)
{
    struct sigaction action = {.sa_handler = on_signal};

    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGHUP, &action, NULL);
    signal(SIGPIPE, SIG_IGN);
}

static void at_exit(void)
{
    if (current != NULL)
        lab_run_undo(current);
    current = NULL;
}

static void free_lab(struct lab *lab)
{
    for (uint32_t i = 0; lab->topology != NULL && i < lab->topology->node_count; i++) {
        if (lab->before != NULL)
            free(lab->before[i]);
        if (lab->after != NULL)
            free(lab->after[i]);
    }
    free(lab->before);
    free(lab->after);
    for (uint32_t i = 0; i < LAB_JOBS_MAX; i++)
        json_decref(lab->reports[i]);
    free(lab->processes);
    free(lab->ns);
    free(lab->shares);
    free(lab->counts);
    lab_plan_free(lab);
    lab_series_free(lab);
    by_topology_free(lab->topology);
}

/* Checks that every --switch names a switch of the fabric and an existing program. */
static int check_programs(const struct lab *lab)
{
    const struct lab_options *options = &lab->options;

    for (uint32_t i = 0; i < options->program_count; i++) {
        const char *equals = strchr(options->program[i], '=');
        char name[BY_NAME_MAX + 1];
        int64_t node;

        snprintf(name, sizeof(name), "%.*s", (int)(equals - options->program[i]), options->program[i]);
        node = by_topology_find(lab->topology, name);
        if (node < 0 || !by_site_is_switch(lab->topology, (uint32_t)node))
            return by_cli_fail(BY_EXIT_USAGE, "--switch %s: no switch with that name in %s",
                               options->program[i], options->topology);
        if (options->in_process)
            return by_cli_fail(BY_EXIT_USAGE, "--switch requires switches that are processes: leave out "
                                              "--in-process");
        if (access(equals + 1, X_OK) != 0)
            return by_cli_fail(BY_EXIT_USAGE, "--switch %s: %s", options->program[i], strerror(errno));
    }
    return 0;
}

/*
 * Checks that no link joins two hosts: only a switch can serve shared memory, so a host cannot
 * share it with another host.
 */
static int check_shm(const struct lab *lab)
{
    for (uint32_t i = 0; i < lab->topology->link_count; i++) {
        uint32_t a = lab->topology->links[i].a, b = lab->topology->links[i].b;

        if (lab->topology->nodes[a].compute && lab->topology->nodes[b].compute)
            return by_cli_fail(
                BY_EXIT_USAGE,
                "--transport shm: %s and %s are joined without a switch; hosts share memory only with "
                "switches",
                lab_name(lab, a), lab_name(lab, b));
    }
    return 0;
}

/* Checks the options against this fabric and this machine. */
static int check(struct lab *lab)
{
    const struct lab_options *options = &lab->options;
    uint32_t ranks = by_topology_compute_count(lab->topology);
    int64_t node;

    for (uint32_t i = 0; options->in_process && i < lab->topology->node_count; i++)
        if (by_site_runs(lab->topology, i) != BY_SITE_BANYAN)
            return by_cli_fail(
                BY_EXIT_USAGE,
                "--in-process runs banyan at every node, and the site states that '%s' does not "
                "run it: leave out --in-process",
                lab_name(lab, i));
    if (options->root >= ranks)
        return by_cli_fail(BY_EXIT_USAGE, "--root %u: %s has ranks 0 to %u", options->root, options->topology,
                           ranks - 1);
    if (options->counts != NULL && options->count_count != ranks)
        return by_cli_fail(BY_EXIT_USAGE, "--counts %s: %u numbers, but %s has %u ranks", options->counts,
                           options->count_count, options->topology, ranks);
    if (options->kill_node != NULL) {
        node = by_topology_find(lab->topology, options->kill_node);
        if (node < 0 || !by_site_is_switch(lab->topology, (uint32_t)node))
            return by_cli_fail(BY_EXIT_USAGE, "--kill %s: no switch with that name in %s", options->kill_node,
                               options->topology);
        if (options->in_process)
            return by_cli_fail(BY_EXIT_USAGE, "--kill requires switches that are processes: leave out "
                                              "--in-process");
        if (options->kill_file != NULL && access(options->kill_file, F_OK) == 0)
            return by_cli_fail(BY_EXIT_USAGE,
                               "--kill %s@%s: the file exists before the run: remove it, or name another",
                               options->kill_node, options->kill_file);
    }
    if (lab_has_shm(options) && !options->in_process && check_shm(lab) != 0)
        return BY_EXIT_USAGE;
    if (check_programs(lab) != 0)
        return BY_EXIT_USAGE;
    if (!options->in_process && geteuid() != 0)
        return by_cli_fail(BY_EXIT_ENVIRONMENT, "lab: network namespaces need root: use sudo, or "
                                                "--in-process to run in one process without them");
    return lab_process_find(lab);
}

/*
 * Applies --ranks to the fabric: a compute node that is not a rank is removed, or becomes a switch
 * if it must forward.
 */
static int take_ranks(struct lab *lab)
{
    struct by_topology *part = NULL;
    struct by_problem problem = {0};
    uint32_t *whole = NULL;
    bool *member = NULL;
    int status = by_cli_ranks(lab->options.ranks, lab->topology, &member);

    if (status >= 0)
        return status;
    if (member == NULL)
        return 0;
    if (by_members_part(lab->topology, member, &part, &whole, &problem) != 0) {
        status = by_cli_refuse(lab->options.topology, &problem);
    } else {
        by_topology_free(lab->topology);
        lab->topology = part;
        status = 0;
    }
    free(whole);
    free(member);
    return status;
}

/*
 * Reads each rank's parts of allgather and reduce-scatter: --shares for plans, --counts for calls.
 */
static int take_shares(struct lab *lab)
{
    uint32_t n = lab->topology->node_count;
    size_t used = 0, room = (size_t)n * 24 + 1;
    struct by_problem problem = {0};

    if (lab->options.shares != NULL &&
        by_shares_read(lab->options.shares, lab->topology, NULL, &lab->shares, &problem) != 0)
        return by_cli_refuse(lab->options.shares, &problem);
    if (lab->options.counts != NULL) {
        lab->counts = by_alloc(strlen(lab->options.counts) + 1, 1);
        memcpy(lab->counts, lab->options.counts, strlen(lab->options.counts) + 1);
        return 0;
    }
    if (lab->shares == NULL)
        return 0;
    lab->counts = by_alloc(room, 1);
    for (uint32_t i = 0; i < n; i++)
        if (lab->topology->nodes[i].compute)
            used += (size_t)snprintf(lab->counts + used, room - used, "%s%lld", used > 0 ? "," : "",
                                     (long long)lab->shares[i]);
    return 0;
}

static int open_lab(struct lab *lab)
{
    int status;

    lab->topology = by_cli_topology_site(lab->options.topology, lab->options.site);
    if (lab->topology == NULL)
        return BY_EXIT_USAGE;
    /* Over IPv6 packets cross the cables one by one: the driver gso does not support it. */
    if (by_site_book(lab->topology).count > 0 && strcmp(lab->options.driver, "auto") == 0)
        lab->options.cut = true;
    status = take_ranks(lab);
    if (status == 0)
        status = take_shares(lab);
    if (status == 0)
        status = check(lab);
    if (status == 0)
        status = lab_ranks_check(lab);
    if (status != 0)
        return status;
    lab_state_sweep(NULL, false, true);
    current = lab;
    atexit(at_exit);
    status = lab_state_open(lab);
    if (status == 0)
        status = lab->options.series != NULL ? lab_series_read(lab) : lab_plan(lab);
    if (status == 0 && lab->options.series == NULL && !lab->options.json)
        lab_report_plans(lab);
    return status;
}

static int run(struct lab *lab)
{
    int status = open_lab(lab), verdict;

    if (status == 0)
        status = lab->options.in_process       ? lab_run_in_process(lab)
                 : lab->options.series != NULL ? lab_run_series(lab)
                                               : lab_run_namespaces(lab);
    if (lab->reports[0] != NULL && !lab_stopping) {
        verdict = lab_report(lab);
        status = status != 0 ? status : verdict;
    } else if (status == 0 && lab->options.command != NULL && !lab_stopping) {
        lab_progress(lab, NULL);
        printf("# %s ended with status 0 on all hosts, %.1f s\n", lab->options.command[0], lab->seconds);
    }
    if (lab_stopping) {
        lab_progress(lab, NULL);
        status = by_cli_fail(BY_EXIT_ENVIRONMENT, "lab: stopped by %s", strsignal(lab_stopping));
    }
    if (lab->options.keep && lab->has_folder && !lab->options.json)
        printf("# %s: %s\n", lab->options.series != NULL ? "moves and logs" : "tables, logs and reports",
               lab->folder);
    lab_run_undo(lab);
    current = NULL;
    return status;
}

/* Explains how to use the running lab. */
static void explain(const struct lab *lab)
{
    printf("# lab %s is up; its tables, sockets and logs are in %s\n", lab->id, lab->folder);
    for (uint32_t i = 0; i < lab->topology->node_count; i++) {
        const char *name = lab->topology->nodes[i].name;
        if (lab->topology->nodes[i].compute && lab->options.controller)
            printf("host   %-12s ip netns exec %s env BANYAN_CONTROLLER=unix:%s/members.sock BANYAN_NODE=%s "
                   "COMMAND\n",
                   name, lab->ns[i], lab->folder, name);
        else if (lab->topology->nodes[i].compute)
            printf("host   %-12s ip netns exec %s env %s%s%sBANYAN_TABLE=%s/%s.table COMMAND\n", name,
                   lab->ns[i], lab_has_shm(&lab->options) ? "BANYAN_TRANSPORT=shm BANYAN_SHM=" : "",
                   lab_has_shm(&lab->options) ? lab->folder : "", lab_has_shm(&lab->options) ? " " : "",
                   lab->folder, name);
        else if (by_site_is_switch(lab->topology, i))
            printf("switch %-12s banyan show unix:%s/%s.sock\n", name, lab->folder, name);
    }
    if (lab->options.controller)
        printf("# banyan job list --controller %s\n", lab->controller);
    printf("# `banyan lab down %s` ends it\n", lab->id);
}

static int up(struct lab *lab)
{
    int status;

    lab->detached = true;
    status = lab->options.in_process
                 ? by_cli_fail(BY_EXIT_USAGE, "lab up builds namespaces: leave out --in-process")
                 : open_lab(lab);
    if (status == 0)
        status = lab_run_fabric(lab);
    if (status == 0 && !lab_stopping)
        status = lab_state_note(lab, "up");
    if (status != 0 || lab_stopping) {
        lab_run_undo(lab);
        current = NULL;
        return status ? status : BY_EXIT_ENVIRONMENT;
    }
    current = NULL;
    lab_progress(lab, NULL);
    explain(lab);
    return 0;
}

static int down(const struct lab_options *options)
{
    if (lab_state_sweep(options->topology, options->all, false) == 0)
        return options->topology ? by_cli_fail(BY_EXIT_NO, "lab: no lab of %s exists", options->topology) : 0;
    return 0;
}

int by_command_lab(int argc, char **argv)
{
    struct lab lab = {0};
    int status = lab_options_read(argc, argv, &lab.options);

    if (status != 0)
        return status < 0 ? BY_EXIT_DONE : status;
    if (strcmp(lab.options.verb, "down") == 0)
        return down(&lab.options);
    catch_signals();
    status = strcmp(lab.options.verb, "run") == 0 ? run(&lab) : up(&lab);
    free_lab(&lab);
    return status;
}
