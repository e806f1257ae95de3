/*
 * The command `banyan export`: writes a plan in foreign formats, and checks such schedules by
 * executing them. An exported schedule is checked before it is written. Single-threaded.
 */
#include "control/study/export/export.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control/base/fraction.h"
#include "control/cli/cli.h"
#include "control/cli/export_moves.h"
#include "control/cli/number.h"
#include "control/fabric/members.h"
#include "control/study/export/check.h"
#include "offload/base/errors.h"
#include "offload/wire/types.h"

/* Default for the largest size of a schedule (bytes): above any size in use with MSCCL. */
#define MAX_BYTES_DEFAULT (INT64_C(1) << 40)
/*
 * Number of multiprocessors of an A100. A GPU with more thread blocks than that cannot run them all
 * at once.
 */
#define BLOCKS_USUAL 108u

struct export_arguments {
    const char *topology;
    const char *plan;
    const char *format; /* NULL: not given */
    bool msccl, hosts;  /* the format is MSCCL's, or the moves of hosts; else ForestColl's */
    const char *output;
    const char *check;
    uint64_t slots;
    uint64_t min_bytes, max_bytes;
    bool json;
};

static const char help[] =
    "usage: banyan export TOPO PLAN|SCHEDULE --format FORMAT [options]\n"
    "       banyan export --check FILE [TOPO]\n\n"
    "Writes a plan as a schedule for other programs. Before it is written it is executed on symbols: every "
    "rank must "
    "end with\n"
    "the right data, each contribution exactly once, and nothing may wait in a circle. --check does that to "
    "any "
    "file.\n\n"
    "      --format FORMAT     msccl: MSCCL XML; forestcoll: ForestColl's tree XML; hosts: what each host "
    "sends "
    "and\n"
    "                          receives, from a schedule of banyan steady for a scatter or gossip\n"
    "  -o, --output FILE       where to write (- for standard output, the default)\n"
    "      --min-bytes BYTES   MSCCL: the sizes that the schedule is for (K, M, G; default 0 and 1024G); "
    "they are "
    "always written,\n"
    "      --max-bytes BYTES   because MSCCL ignores a file without them\n"
    "      --check FILE        execute the schedule in FILE; with TOPO also find its paths there\n"
    "      --slots N           messages that a sender may be ahead of its receiver when checking MSCCL "
    "(default 1)\n"
    "      --json              print the result as one JSON object\n"
    "  -h, --help\n";

static const struct option long_options[] = {{"format", required_argument, NULL, 'f'},
                                             {"output", required_argument, NULL, 'o'},
                                             {"min-bytes", required_argument, NULL, 'm'},
                                             {"max-bytes", required_argument, NULL, 'M'},
                                             {"check", required_argument, NULL, 'c'},
                                             {"slots", required_argument, NULL, 's'},
                                             {"json", no_argument, NULL, 'j'},
                                             {"help", no_argument, NULL, 'h'},
                                             {NULL, 0, NULL, 0}};

static int read_option(int option, struct export_arguments *arguments)
{
    int status = 0;

    switch (option) {
    case 'f':
        arguments->format = optarg;
        arguments->msccl = strcmp(optarg, "msccl") == 0;
        arguments->hosts = strcmp(optarg, "hosts") == 0;
        if (!arguments->msccl && !arguments->hosts && strcmp(optarg, "forestcoll") != 0)
            return by_cli_fail(BY_EXIT_USAGE, "--format is '%s'; it must be msccl, forestcoll or hosts",
                               optarg);
        return -1;
    case 'o':
        arguments->output = optarg;
        return -1;
    case 'm':
        status = by_cli_bytes("--min-bytes", optarg, 0, INT64_MAX, &arguments->min_bytes);
        return status ? status : -1;
    case 'M':
        status = by_cli_bytes("--max-bytes", optarg, 1, INT64_MAX, &arguments->max_bytes);
        return status ? status : -1;
    case 'c':
        arguments->check = optarg;
        return -1;
    case 's':
        status = by_cli_number("--slots", optarg, 1, 64, &arguments->slots);
        return status ? status : -1;
    case 'j':
        arguments->json = true;
        return -1;
    case 'h':
        fputs(help, stdout);
        return BY_EXIT_DONE;
    default:
        return by_cli_fail(BY_EXIT_USAGE, "`banyan export --help` lists the options");
    }
}

static int read_arguments(int argc, char **argv, struct export_arguments *arguments)
{
    int option, status, rest;

    *arguments = (struct export_arguments){.output = "-", .slots = 1, .max_bytes = MAX_BYTES_DEFAULT};
    optind = 0;
    while ((option = getopt_long(argc, argv, "o:h", long_options, NULL)) != -1) {
        status = read_option(option, arguments);
        if (status >= 0)
            return status;
    }
    rest = argc - optind;
    if (arguments->check ? rest > 1 : rest != 2)
        return by_cli_fail(BY_EXIT_USAGE, "%s; `banyan export --help` says more",
                           arguments->check ? "--check takes one topology at the most"
                                            : "name a topology and a plan, or --check a file");
    arguments->topology = rest > 0 ? argv[optind] : NULL;
    arguments->plan = rest > 1 ? argv[optind + 1] : NULL;
    if (!arguments->check && !arguments->format)
        return by_cli_fail(BY_EXIT_USAGE, "name a format with --format: msccl, forestcoll or hosts");
    if (arguments->max_bytes < arguments->min_bytes)
        return by_cli_fail(BY_EXIT_USAGE, "--max-bytes is below --min-bytes: no size would fit");
    return -1;
}

static void print_report(FILE *stream, const struct by_check_report *report, const char *file,
                         const struct by_topology *topology)
{
    char text[BY_FRACTION_TEXT_BYTES];

    fprintf(stream, "RIGHT %s: %s %s of %u ranks, %llu chunks, %llu %s in %u %s", file, report->format,
            by_collective_name(report->collective), report->rank_count,
            (unsigned long long)report->chunk_count, (unsigned long long)report->step_count,
            report->blocks_max ? "steps" : "sends", report->unit_count,
            report->blocks_max ? "thread blocks" : "trees");
    if (report->blocks_max)
        fprintf(stream, " (at most %u on a GPU), %s", report->blocks_max,
                report->in_place && report->out_of_place ? "in place and out of place"
                : report->in_place                       ? "in place"
                                                         : "out of place");
    if (report->has_rate && topology)
        fprintf(stream, ", %.6g %s (%s)", by_fraction_value(report->rate), topology->unit,
                by_fraction_text(report->rate, text));
    fputc('\n', stream);
}

static void print_json(const struct by_check_report *report)
{
    char text[BY_FRACTION_JSON_BYTES];

    printf("{\"verdict\": \"RIGHT\", \"format\": \"%s\", \"collective\": \"%s\", \"ranks\": %u, \"chunks\": "
           "%llu, ",
           report->format, by_collective_name(report->collective), report->rank_count,
           (unsigned long long)report->chunk_count);
    printf("\"%s\": %llu, \"%s\": %u", report->blocks_max ? "steps" : "sends",
           (unsigned long long)report->step_count, report->blocks_max ? "thread_blocks" : "trees",
           report->unit_count);
    if (report->blocks_max)
        printf(", \"thread_blocks_max\": %u, \"in_place\": %s, \"out_of_place\": %s", report->blocks_max,
               report->in_place ? "true" : "false", report->out_of_place ? "true" : "false");
    if (report->has_rate)
        printf(", \"algbw\": %s, \"algbw_float\": %.12g", by_fraction_json(report->rate, text),
               by_fraction_value(report->rate));
    printf("}\n");
}

/* Prints the verdict on a wrong schedule. */
static int print_wrong(const struct export_arguments *arguments, const struct by_problem *problem)
{
    if (arguments->json) {
        printf("{\"verdict\": \"WRONG\", \"line\": %d, \"reason\": \"", problem->line);
        for (const char *c = problem->text; *c; c++)
            printf(*c == '"' || *c == '\\' ? "\\%c" : (unsigned char)*c < ' ' ? "\\u%04x" : "%c", *c);
        printf("\"}\n");
    } else if (problem->line > 0) {
        printf("WRONG %s:%d: %s\n", arguments->check, problem->line, problem->text);
    } else {
        printf("WRONG %s: %s\n", arguments->check, problem->text);
    }
    return BY_EXIT_NO;
}

static int check(const struct export_arguments *arguments)
{
    struct by_topology *topology = NULL;
    struct by_check_report report;
    struct by_problem problem = {0};
    int error, status = BY_EXIT_DONE;

    if (arguments->topology) {
        topology = by_cli_topology(arguments->topology);
        if (!topology)
            return BY_EXIT_USAGE;
    }
    error = by_check_file(arguments->check, topology, (uint32_t)arguments->slots, &report, &problem);
    if (error == BY_EINVAL)
        status = print_wrong(arguments, &problem);
    else if (error)
        status = by_cli_refuse(arguments->check, &problem);
    else if (arguments->json)
        print_json(&report);
    else
        print_report(stdout, &report, arguments->check, topology);
    by_topology_free(topology);
    return status;
}

static int write_file(const struct export_arguments *arguments, const char *text, size_t bytes)
{
    struct by_output output;

    if (!by_cli_create(&output, arguments->output))
        return BY_EXIT_ENVIRONMENT;
    return by_cli_finish(&output, fwrite(text, 1, bytes, output.stream) == bytes);
}

/* Exports into memory, executes the result, and writes it if it is correct. */
static int export(const struct export_arguments *arguments, const struct by_topology *topology,
                  const struct by_plan *plan)
{
    bool msccl = arguments->msccl;
    struct by_export_options options = {.name = "banyan",
                                        .min_bytes = (int64_t)arguments->min_bytes,
                                        .max_bytes = (int64_t)arguments->max_bytes};
    struct by_check_report report;
    struct by_problem problem = {0};
    char *text = NULL;
    size_t bytes = 0;
    FILE *memory = open_memstream(&text, &bytes);
    int error, status;

    if (!memory)
        return by_cli_fail(BY_EXIT_ENVIRONMENT, "out of memory");
    error = (msccl ? by_export_msccl : by_export_forestcoll)(plan, topology, &options, memory, &problem);
    fclose(memory);
    if (error) {
        free(text);
        return by_cli_refuse(arguments->plan, &problem);
    }
    error = by_check_text(text, bytes, topology, (uint32_t)arguments->slots, &report, &problem);
    if (error)
        status = by_cli_fail(BY_EXIT_NO, "the schedule is wrong and was not written: line %d: %s",
                             problem.line, problem.text);
    else
        status = write_file(arguments, text, bytes);
    free(text);
    if (status != BY_EXIT_DONE)
        return status;
    if (arguments->json && strcmp(arguments->output, "-") != 0)
        print_json(&report);
    else
        print_report(strcmp(arguments->output, "-") == 0 ? stderr : stdout, &report, arguments->output,
                     topology);
    if (msccl && report.blocks_max > BLOCKS_USUAL)
        fprintf(stderr,
                "banyan: note: a GPU needs %u thread blocks; an A100 runs %u at a time, and MSCCL needs all "
                "of them at "
                "once: plan with a smaller k (--fixed-k)\n",
                report.blocks_max, BLOCKS_USUAL);
    return BY_EXIT_DONE;
}

/*
 * A plan for some of the compute nodes is exported with the fabric of these nodes; its ranks are
 * numbered from 0.
 */
static int read_plan(const char *path, struct by_topology **topology, struct by_plan **plan,
                     struct by_problem *problem)
{
    struct by_topology *part = NULL;
    uint32_t *whole = NULL;
    int error = by_plan_read(path, *topology, plan, problem);

    if (error || !(*plan)->member)
        return error;
    error = by_members_part(*topology, (*plan)->member, &part, &whole, problem);
    free(whole);
    by_plan_free(*plan);
    *plan = NULL;
    if (error)
        return error;
    by_topology_free(*topology);
    *topology = part;
    return by_plan_read(path, part, plan, problem);
}

int by_command_export(int argc, char **argv)
{
    struct export_arguments arguments;
    struct by_topology *topology;
    struct by_plan *plan = NULL;
    struct by_problem problem = {0};
    int status = read_arguments(argc, argv, &arguments);

    if (status >= 0)
        return status;
    if (arguments.check) {
        status = by_cli_check_moves(arguments.check, arguments.json);
        return status >= 0 ? status : check(&arguments);
    }
    topology = by_cli_topology(arguments.topology);
    if (!topology)
        return BY_EXIT_USAGE;
    if (arguments.hosts)
        status = by_cli_export_moves(topology, arguments.plan, arguments.output, arguments.json);
    else if (read_plan(arguments.plan, &topology, &plan, &problem) != 0)
        status = by_cli_refuse(arguments.plan, &problem);
    else if (plan->shares)
        status = by_cli_fail(BY_EXIT_USAGE,
                             "%s: the plan is for shards of unequal size, for which neither format has a "
                             "place; plan it again without --shares",
                             arguments.plan);
    else
        status = export(&arguments, topology, plan);
    by_plan_free(plan);
    by_topology_free(topology);
    return status;
}
