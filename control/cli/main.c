/* The banyan command: finds the subcommand and runs it. Single-threaded. */
#include <limits.h>
#include <string.h>

#include "control/base/alloc.h"
#include "control/cli/cli.h"
#include "offload/linux/output.h"

struct command {
    const char *name;
    by_command_fn *run;
    const char *summary;
};

static const struct command commands[] = {
    {"topo", by_command_topo, "print a preset fabric as topology JSON"},
    {"discover", by_command_discover, "find the nodes, cables and names of a site from its machines"},
    {"plan", by_command_plan, "compute the best trees for a collective on a fabric"},
    {"verify", by_command_verify, "check a plan: OPTIMAL, VALID or INVALID"},
    {"bound", by_command_bound, "print the bound of every schedule, and what trees reach, with proofs"},
    {"steady", by_command_steady, "compute the best throughput of series of scatters, gossips or reduces"},
    {"compare", by_command_compare, "compare algorithms on a fabric with each other and the bound"},
    {"export", by_command_export, "write a plan for other programs, or check a schedule of theirs"},
    {"tables", by_command_tables, "compile plans into a table image for each node"},
    {"keys", by_command_keys, "make keys for control channels over TLS"},
    {"push", by_command_push, "load table images onto running switches"},
    {"show", by_command_show, "read a table back, from a switch or a file"},
    {"diff", by_command_diff, "compare two tables"},
    {"explain", by_command_explain, "show how a job would run an operation, and why"},
    {"job", by_command_job, "make, end and list the jobs of a running banyand"},
    {"lab", by_command_lab, "run a fabric in network namespaces, or in one process"},
    {"circulant", by_command_circulant, "print the schedules of collectives between hosts without switches"},
    {"sim", by_command_sim, "run plans on a simulated fabric, and compare with their proven optimum"},
    {"plot", by_command_plot, "draw a fabric, its trees and loads"},
    {"top", by_command_top, "show jobs, slots, links and missing hosts, live"},
    {"doctor", by_command_doctor, "check for problems that keep banyan from working, and print the remedies"},
    {"info", by_command_info, "print version, settings and capabilities"},
};

#define COMMANDS (sizeof(commands) / sizeof(commands[0]))

static int no_command(const char *name)
{
    struct by_option_guess guess = {.typed = name};

    for (size_t i = 0; i < COMMANDS; i++)
        by_option_guess_add(&guess, commands[i].name);
    return by_cli_fail(BY_EXIT_USAGE, "no command '%s'; %s%s%s`banyan --help` lists them", name,
                       guess.best ? "did you mean " : "", guess.best ? guess.best : "",
                       guess.best ? "? " : "");
}

static int run(int argc, char **argv)
{
    struct by_option rows[COMMANDS + 2] = {{BY_ROW_HEADING("Commands:")}};
    const struct by_options command_line = {
        .program = "banyan",
        .usage = "banyan COMMAND [options]",
        .epilog = "`banyan COMMAND --help` lists the options of a command; banyan(1) is the manual.",
        .version = "banyan " BY_VERSION,
        .rows = rows,
        .least = 1,
        .most = UINT_MAX,
        .operands = "a command",
        .stops = true};
    int status;

    for (size_t i = 0; i < COMMANDS; i++)
        rows[i + 1] = (struct by_option){BY_ROW_NOTE(commands[i].name, commands[i].summary)};
    status = by_options_read(&command_line, NULL, &argc, argv);
    if (status >= 0)
        return status;
    for (size_t i = 0; i < COMMANDS; i++)
        if (strcmp(argv[1], commands[i].name) == 0)
            return commands[i].run(argc - 1, argv + 1);
    return no_command(argv[1]);
}

int main(int argc, char **argv)
{
    by_alloc_libraries();
    return by_output_end(run(argc, argv));
}
