/* The banyan command: finds the subcommand and runs it. Single-threaded. */
#include <stdio.h>
#include <string.h>

#include "control/cli/cli.h"
#include "offload/linux/output.h"

struct command {
    const char *name;
    by_command_fn *run;
    const char *summary;
};

static const struct command commands[] = {
    {"topo", by_command_topo, "print a preset fabric as topology JSON"},
    {"plan", by_command_plan, "compute the best trees for a collective on a fabric"},
    {"verify", by_command_verify, "check a plan: OPTIMAL, VALID or INVALID"},
    {"bound", by_command_bound, "what no schedule can beat, and what trees reach, with proofs"},
    {"steady", by_command_steady, "the best throughput of series of scatters, gossips or reduces"},
    {"compare", by_command_compare, "what each algorithm reaches on a fabric, beside the bound"},
    {"export", by_command_export, "write a plan for other programs, or check a schedule of theirs"},
    {"tables", by_command_tables, "compile plans into a table image for each node"},
    {"keys", by_command_keys, "make keys for control channels over TLS"},
    {"push", by_command_push, "load table images onto running switches"},
    {"show", by_command_show, "read a table back, from a switch or a file"},
    {"diff", by_command_diff, "compare two tables"},
    {"explain", by_command_explain, "what a job would do for an operation, and why"},
    {"job", by_command_job, "make, end and list the jobs of a running banyand"},
    {"lab", by_command_lab, "run a fabric in network namespaces, or in one process"},
    {"circulant", by_command_circulant, "print the schedules of collectives between hosts alone"},
    {"sim", by_command_sim, "run plans on a simulated fabric, beside their proven optimum"},
    {"plot", by_command_plot, "draw a fabric, its trees and loads"},
    {"top", by_command_top, "jobs, slots, links and who is missing, live"},
    {"doctor", by_command_doctor, "look for what would keep banyan from working, and say the remedy"},
    {"info", by_command_info, "print version, settings and capabilities"},
};

static void usage(FILE *stream)
{
    fputs("usage: banyan COMMAND [options]\n\n", stream);
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
        fprintf(stream, "  %-9s %s\n", commands[i].name, commands[i].summary);
    fputs("\n`banyan COMMAND --help` says more; banyan(1) is the manual.\n", stream);
}

static int run(int argc, char **argv)
{
    if (argc < 2) {
        usage(stderr);
        return BY_EXIT_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        usage(stdout);
        return BY_EXIT_DONE;
    }
    if (strcmp(argv[1], "--version") == 0) {
        puts("banyan " BY_VERSION);
        return BY_EXIT_DONE;
    }
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
        if (strcmp(argv[1], commands[i].name) == 0)
            return commands[i].run(argc - 1, argv + 1);
    fprintf(stderr, "banyan: no command '%s'; `banyan --help` lists them\n", argv[1]);
    return BY_EXIT_USAGE;
}

int main(int argc, char **argv)
{
    return by_output_end(run(argc, argv));
}
