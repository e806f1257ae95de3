/*
 * The command `banyan export`: writes a plan in foreign formats, and checks such schedules by
 * executing them. An exported schedule is checked before it is written. Single-threaded.
 */
#include "control/study/export/export.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control/base/alloc.h"
#include "control/base/fraction.h"
#include "control/cli/cli.h"
#include "control/cli/export_moves.h"
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
    enum { NO_FORMAT, MSCCL, FORESTCOLL, HOSTS, PLAN } format;
    const char *root;
    const char *output;
    const char *check;
    uint32_t slots;
    uint64_t min_bytes, max_bytes;
    bool json;
};

static const char *const formats[] = {"?", "msccl", "forestcoll", "hosts", "plan"};

#define AT(member) BY_OPTION_AT(struct export_arguments, member)

static const struct by_option rows[] = {
    {BY_ROW_CHOICE(0, "format", "FORMAT", AT(format), MSCCL, PLAN,
                   "msccl: MSCCL XML; forestcoll: ForestColl's tree XML; hosts: what each host sends and "
                   "receives, from a schedule of banyan steady for a scatter or gossip; plan: a plan with "
                   "all trees, from a plan by classes"),
     .words = formats},
    {BY_ROW_TEXT(0, "root", "NODE", AT(root), "plan: write the trees of this root only")},
    {BY_ROW_TEXT('o', "output", "FILE", AT(output), "write to FILE (- for standard output, the default)")},
    {BY_ROW_SIZE(0, "min-bytes", "BYTES", AT(min_bytes), 0, INT64_MAX,
                 "MSCCL: the smallest size that the schedule is for (K, M, G; default 0)")},
    {BY_ROW_SIZE(0, "max-bytes", "BYTES", AT(max_bytes), 1, INT64_MAX,
                 "MSCCL: the largest size (default 1024G); both are always written, because MSCCL ignores a "
                 "file without them")},
    {BY_ROW_TEXT(0, "check", "FILE", AT(check),
                 "execute the schedule in FILE; with TOPO also find its paths there")},
    {BY_ROW_NUMBER(0, "slots", "N", AT(slots), 1, 64,
                   "let a sender be N messages ahead of its receiver when checking MSCCL, %r (default 1)")},
    {BY_ROW_FLAG(0, "json", AT(json), "print the result as one JSON object")},
    {0}};

static const struct by_options command_line = {
    .program = "banyan export",
    .usage = "banyan export TOPO PLAN|SCHEDULE --format FORMAT [options]\nbanyan export --check FILE [TOPO]",
    .about =
        "Writes a plan as a schedule for other programs. Before it is written it is executed on symbols: "
        "every rank must end with the right data, each contribution exactly once, without a cyclic wait. "
        "--check executes any file.",
    .rows = rows,
    .most = 2};

static int read_arguments(int argc, char **argv, struct export_arguments *arguments)
{
    int status;

    *arguments = (struct export_arguments){.output = "-", .slots = 1, .max_bytes = MAX_BYTES_DEFAULT};
    status = by_options_read(&command_line, arguments, &argc, argv);
    if (status >= 0)
        return status;
    if (arguments->check ? argc > 2 : argc != 3)
        return by_cli_fail(BY_EXIT_USAGE, "%s; `banyan export --help` lists the options",
                           arguments->check ? "--check accepts at most one topology"
                                            : "name a topology and a plan, or --check a file");
    arguments->topology = argc > 1 ? argv[1] : NULL;
    arguments->plan = argc > 2 ? argv[2] : NULL;
    if (!arguments->check && !arguments->format)
        return by_cli_fail(BY_EXIT_USAGE, "name a format with --format: msccl, forestcoll, hosts or plan");
    if (arguments->root && arguments->format != PLAN)
        return by_cli_fail(BY_EXIT_USAGE, "--root is for --format plan; leave it out");
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
    error = by_check_file(arguments->check, topology, arguments->slots, &report, &problem);
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
    bool msccl = arguments->format == MSCCL;
    struct by_export_options options = {.name = "banyan",
                                        .min_bytes = (int64_t)arguments->min_bytes,
                                        .max_bytes = (int64_t)arguments->max_bytes};
    struct by_check_report report;
    struct by_problem problem = {0};
    char *text = NULL;
    size_t bytes = 0;
    FILE *memory = by_text_open(&text, &bytes);
    int error, status;

    error = (msccl ? by_export_msccl : by_export_forestcoll)(plan, topology, &options, memory, &problem);
    fclose(memory);
    if (error) {
        free(text);
        return by_cli_refuse(arguments->plan, &problem);
    }
    error = by_check_text(text, bytes, topology, arguments->slots, &report, &problem);
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

/* Writes a plan with all trees, or with those of one root. */
static int export_plan(const struct export_arguments *arguments, const struct by_topology *topology)
{
    int64_t root = arguments->root ? by_topology_find(topology, arguments->root) : -1;
    struct by_problem problem = {0};
    struct by_plan *plan = NULL;
    struct by_output output;
    int status, error;

    if (arguments->root && root < 0)
        return by_cli_fail(BY_EXIT_USAGE, "--root is '%s', which is not a node of %s", arguments->root,
                           arguments->topology);
    error = by_plan_read_classes(arguments->plan, topology, &plan, &problem);
    if (!error)
        error = arguments->root ? by_rotations_at_root(plan, topology->node_count, (uint32_t)root, &problem)
                                : by_rotations_expand(plan, &problem);
    if (error)
        status = by_cli_refuse(arguments->plan, &problem);
    else if (!by_cli_create(&output, arguments->output))
        status = BY_EXIT_ENVIRONMENT;
    else
        status = by_cli_finish(&output, by_plan_write(plan, topology, output.stream) == 0);
    by_plan_free(plan);
    return status;
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
    if (arguments.format == HOSTS)
        status = by_cli_export_moves(topology, arguments.plan, arguments.output, arguments.json);
    else if (arguments.format == PLAN)
        status = export_plan(&arguments, topology);
    else if (read_plan(arguments.plan, &topology, &plan, &problem) != 0)
        status = by_cli_refuse(arguments.plan, &problem);
    else if (plan->shares)
        status = by_cli_fail(BY_EXIT_USAGE,
                             "%s: the plan is for shards of unequal size, which neither format supports; "
                             "plan it again without --shares",
                             arguments.plan);
    else
        status = export(&arguments, topology, plan);
    by_plan_free(plan);
    by_topology_free(topology);
    return status;
}
