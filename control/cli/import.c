/*
 * The command `banyan topo import`: converts foreign descriptions of a fabric to topology JSON.
 * Single-threaded.
 */
#include "control/fabric/import/import.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "control/base/fraction.h"
#include "control/cli/cli.h"
#include "control/cli/import.h"
#include "offload/base/errors.h"

struct import_arguments {
    const char *format;
    struct by_import_options options;
    bool json;
};

static int read_rate(const char *text, struct by_fraction *rate, struct by_option_why *why)
{
    if (by_fraction_parse(text, strlen(text), rate) == 0 && rate->num > 0)
        return 0;
    return by_option_refuse(why, "it must be a positive number such as 25, 12.5 or 25/2");
}

static int read_link_rate(void *object, const char *text, struct by_option_why *why)
{
    return read_rate(text, &((struct import_arguments *)object)->options.rate, why);
}

static int read_nvlink(void *object, const char *text, struct by_option_why *why)
{
    return read_rate(text, &((struct import_arguments *)object)->options.nvlink, why);
}

static int read_cpu(void *object, const char *text, struct by_option_why *why)
{
    return read_rate(text, &((struct import_arguments *)object)->options.cpu, why);
}

#define AT(member) BY_OPTION_AT(struct import_arguments, member)

static const struct by_option rows[] = {
    {BY_ROW_TEXT(0, "format", "FORMAT", AT(format), "the format of the files, one of those below")},
    {BY_ROW_TEXT(0, "name", "NAME", AT(options.name), "name the topology NAME")},
    {BY_ROW_CALL(0, "rate", "RATE", read_link_rate, "set the rate of links whose file states none, in GB/s")},
    {BY_ROW_TEXT(0, "capable", "LIST", AT(options.capable),
                 "let these switches multicast and aggregate (default none)")},
    {BY_ROW_TEXT(0, "switches", "LIST", AT(options.switches),
                 "make these nodes switches, whatever the file states: names, or classes (a name without its "
                 "number)")},
    {BY_ROW_TEXT(0, "compute", "LIST", AT(options.compute), "make these nodes compute nodes")},
    {BY_ROW_NUMBER(0, "copies", "N", AT(options.copies), 1, BY_IMPORT_COPIES_MAX,
                   "nccl: make N boxes like the one in the file, %r")},
    {BY_ROW_FLAG(0, "rails", AT(options.rails),
                 "nccl: network ports with the same number share a switch; without it all ports share one")},
    {BY_ROW_CALL(0, "nvlink", "RATE", read_nvlink,
                 "nccl: set the rate of one NVLink in each direction, in GB/s, instead of the generation's")},
    {BY_ROW_CALL(0, "cpu", "RATE", read_cpu, "nccl: set the rate between two CPUs, in GB/s (default 20)")},
    {BY_ROW_FLAG(0, "hosts", AT(options.hosts),
                 "ibnetdiscover: make the adapters of one host one compute node")},
    {BY_ROW_FLAG(0, "json", AT(json), "print JSON, as without this option")},
    {BY_ROW_HEADING("Formats:")},
    {BY_ROW_NOTE("nccl", "NCCL_TOPO_DUMP_FILE's XML, a file for each host")},
    {BY_ROW_NOTE("ibnetdiscover", "the output of ibnetdiscover, for a whole fabric")},
    {BY_ROW_NOTE("lldp", "the output of lldpctl -f json, a file for each node, named NODE.json")},
    {BY_ROW_NOTE("dot", "Graphviz")},
    {0}};

static const struct by_options command_line = {
    .program = "banyan topo import",
    .usage = "banyan topo import --format FORMAT [options] FILE...",
    .about = "Prints the fabric that files of other programs describe as topology JSON. What a file does not "
             "state must be given by an option.",
    .epilog = "RATE is an integer, a decimal or a fraction such as 25/2.",
    .rows = rows,
    .least = 1,
    .most = UINT_MAX,
    .operands = "a file"};

int by_cli_import(int argc, char **argv)
{
    struct import_arguments arguments = {.options = {.rate = {0, 1}, .nvlink = {0, 1}, .cpu = {0, 1}}};
    struct by_topology *topology;
    struct by_import_report report;
    struct by_problem problem = {0};
    size_t file = 0;
    int status = by_options_read(&command_line, &arguments, &argc, argv);

    if (status >= 0)
        return status;
    if (!arguments.format)
        return by_cli_fail(BY_EXIT_USAGE, "name a format with --format: %s", by_import_formats());
    if (by_import(arguments.format, (const char *const *)argv + 1, (size_t)argc - 1, &arguments.options,
                  &topology, &report, &problem, &file) != 0)
        return by_cli_refuse(argv[1 + file], &problem);
    if (report.left_out > 0)
        fprintf(stderr,
                "banyan: note: %u nodes that lead nowhere, or do not participate, are left out (one is %s)\n",
                report.left_out, report.left_out_name);
    status = by_topology_write(topology, stdout) == 0 ? BY_EXIT_DONE : BY_EXIT_ENVIRONMENT;
    by_topology_free(topology);
    return status;
}
