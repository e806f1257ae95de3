/*
 * The command `banyan topo import`: converts foreign descriptions of a fabric to topology JSON.
 * Single-threaded.
 */
#include "control/fabric/import/import.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "control/base/fraction.h"
#include "control/cli/cli.h"
#include "control/cli/import.h"
#include "control/cli/number.h"
#include "offload/base/errors.h"

struct import_arguments {
    const char *format;
    struct by_import_options options;
};

static const char help[] =
    "usage: banyan topo import --format FORMAT [options] FILE...\n\n"
    "Prints the fabric that files of other programs describe as topology JSON. What a file does not say is "
    "asked for, "
    "not guessed.\n\n"
    "      --format FORMAT   nccl           NCCL_TOPO_DUMP_FILE's XML, a file for each host\n"
    "                        ibnetdiscover  its output, for a whole fabric\n"
    "                        lldp           lldpctl -f json, a file for each node, named NODE.json\n"
    "                        dot            Graphviz\n"
    "      --name NAME       of the topology\n"
    "      --rate RATE       GB/s of links whose file does not say\n"
    "      --capable LIST    the switches that multicast and aggregate (default none)\n"
    "      --switches LIST   nodes that are switches, whatever the file says: names, or classes (a name "
    "without its "
    "number)\n"
    "      --compute LIST    nodes that are compute nodes\n"
    "      --copies N        nccl: N boxes like the one in the file\n"
    "      --rails           nccl: network ports of equal number share a switch, else all ports do\n"
    "      --nvlink RATE     nccl: GB/s of one NVLink each way, instead of the generation's\n"
    "      --cpu RATE        nccl: GB/s between two CPUs (default 20)\n"
    "      --hosts           ibnetdiscover: the adapters of one host are one compute node\n"
    "  -h, --help\n\n"
    "RATE is an integer, a decimal or a fraction such as 25/2.\n";

static const struct option long_options[] = {
    {"format", required_argument, NULL, 'f'},   {"name", required_argument, NULL, 'n'},
    {"rate", required_argument, NULL, 'r'},     {"capable", required_argument, NULL, 'c'},
    {"switches", required_argument, NULL, 's'}, {"compute", required_argument, NULL, 'p'},
    {"copies", required_argument, NULL, 'C'},   {"rails", no_argument, NULL, 'R'},
    {"nvlink", required_argument, NULL, 'v'},   {"cpu", required_argument, NULL, 'u'},
    {"hosts", no_argument, NULL, 'H'},          {"json", no_argument, NULL, 'j'},
    {"help", no_argument, NULL, 'h'},           {NULL, 0, NULL, 0}};

static int read_rate(const char *option, const char *text, struct by_fraction *rate)
{
    if (by_fraction_parse(text, strlen(text), rate) != 0 || rate->num == 0)
        return by_cli_fail(BY_EXIT_USAGE, "%s is '%s'; it must be a positive number such as 25, 12.5 or 25/2",
                           option, text);
    return -1;
}

static int read_option(int option, struct import_arguments *arguments)
{
    struct by_import_options *options = &arguments->options;
    uint64_t number;

    switch (option) {
    case 'f':
        arguments->format = optarg;
        return -1;
    case 'n':
        options->name = optarg;
        return -1;
    case 'r':
        return read_rate("--rate", optarg, &options->rate);
    case 'v':
        return read_rate("--nvlink", optarg, &options->nvlink);
    case 'u':
        return read_rate("--cpu", optarg, &options->cpu);
    case 'c':
        options->capable = optarg;
        return -1;
    case 's':
        options->switches = optarg;
        return -1;
    case 'p':
        options->compute = optarg;
        return -1;
    case 'C':
        if (by_cli_number("--copies", optarg, 1, BY_IMPORT_COPIES_MAX, &number) != 0)
            return BY_EXIT_USAGE;
        options->copies = (uint32_t)number;
        return -1;
    case 'R':
        options->rails = true;
        return -1;
    case 'H':
        options->hosts = true;
        return -1;
    case 'j':
        return -1;
    case 'h':
        fputs(help, stdout);
        return BY_EXIT_DONE;
    default:
        return by_cli_fail(BY_EXIT_USAGE, "`banyan topo import --help` lists the options");
    }
}

int by_cli_import(int argc, char **argv)
{
    struct import_arguments arguments = {.options = {.rate = {0, 1}, .nvlink = {0, 1}, .cpu = {0, 1}}};
    struct by_topology *topology;
    struct by_import_report report;
    struct by_problem problem = {0};
    size_t file = 0;
    int option, status;

    optind = 0;
    while ((option = getopt_long(argc, argv, "h", long_options, NULL)) != -1) {
        status = read_option(option, &arguments);
        if (status >= 0)
            return status;
    }
    if (!arguments.format)
        return by_cli_fail(BY_EXIT_USAGE, "name a format with --format: %s", by_import_formats());
    if (optind == argc)
        return by_cli_fail(BY_EXIT_USAGE, "name a file; `banyan topo import --help` says more");
    if (by_import(arguments.format, (const char *const *)argv + optind, (size_t)(argc - optind),
                  &arguments.options, &topology, &report, &problem, &file) != 0)
        return by_cli_refuse(argv[(size_t)optind + file], &problem);
    if (report.left_out > 0)
        fprintf(stderr,
                "banyan: note: %u nodes that lead nowhere, or take no part, are left out (one is %s)\n",
                report.left_out, report.left_out_name);
    status = by_topology_write(topology, stdout) == 0 ? BY_EXIT_DONE : BY_EXIT_ENVIRONMENT;
    by_topology_free(topology);
    return status;
}
