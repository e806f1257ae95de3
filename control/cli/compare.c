/*
 * The command `banyan compare`: the rate of each algorithm on a fabric, compared with the upper
 * bound. Single-threaded.
 */
#include <stdio.h>
#include <string.h>

#include "control/base/alloc.h"
#include "control/base/clock.h"
#include "control/base/fraction.h"
#include "control/cli/baseline.h"
#include "control/cli/cli.h"
#include "control/cli/compare_import.h"
#include "control/cli/crossover.h"
#include "control/cli/progress.h"
#include "control/fabric/unit.h"
#include "control/planner/planner.h"
#include "control/study/bound/pack.h"
#include "offload/base/errors.h"
#include "offload/wire/types.h"

/* Most schedules from files (count). */
#define IMPORTS_MAX 64u
/* Most rows of one table (count): the algorithms, the forest on hosts only, and files. */
#define ROWS_MAX (BY_ALGORITHM_COUNT + 1 + IMPORTS_MAX)
/* Default latency of a hop (nanoseconds), that of `banyan sim`. */
#define LATENCY_NS 500
/* Default time limit of one algorithm for one collective (seconds). */
#define TIME_LIMIT_S 60

struct compare_row {
    enum by_algorithm algorithm;
    bool hosts;       /* a forest whose switches only forward */
    const char *file; /* of an imported schedule, else NULL; then there is no algorithm */
    struct by_sketch_facts facts;
    uint32_t round_count;
    struct by_fraction ratio; /* rate divided by the bound */
    double seconds;
    char refused[400]; /* error message if there is no rate */
};

struct compare_arguments {
    const char *topology;
    const char *root;
    unsigned collective; /* 0: several collectives */
    uint64_t latency_ns; /* of a hop, for the crossover sizes */
    double time_limit_s; /* limit of one algorithm for one collective */
    bool json, progress;
    bool wanted[BY_ALGORITHM_COUNT];
    uint32_t import_count;
    const char *imports[IMPORTS_MAX];
    struct by_cli_imported imported[IMPORTS_MAX];
};

#define AT(member) BY_OPTION_AT(struct compare_arguments, member)

/* All collectives but the last, the barrier, which carries no data. */
_Static_assert(BY_COLLECTIVE_BARRIER == BY_COLLECTIVE_COUNT - 1, "the barrier is the last collective");

static const struct by_option rows[] = {
    {BY_ROW_CHOICE('c', "collective", "COLL", AT(collective), 1, BY_COLLECTIVE_BARRIER - 1,
                   "compare %l (default: the first three)"),
     .word = by_collective_name, .once = true},
    {BY_ROW_TEXT(0, "root", "NODE", AT(root),
                 "broadcast from NODE, or reduce to NODE (default: the first compute node)")},
    {BY_ROW_LIST(0, "algorithms", "LIST", AT(wanted), 1, BY_ALGORITHM_COUNT - 1,
                 "compare these algorithms only, separated by commas (default all)"),
     .word = by_algorithm_name},
    {BY_ROW_TEXT(
         0, "import", "FILE", AT(imports),
         "also rate the schedule in FILE, MSCCL XML or ForestColl's tree XML, after executing it; may "
         "be repeated; without -c its collective is compared"),
     .count = AT(import_count)},
    {BY_ROW_NUMBER(
        0, "latency-ns", "N", AT(latency_ns), 1, 1000000000,
        "latency of a hop in nanoseconds, for the sizes at which algorithms overtake each other, %r "
        "(default 500)")},
    {BY_CLI_TIME_LIMIT(time_limit_s, "leave out algorithms that take longer than S seconds (default 60)")},
    {BY_CLI_PROGRESS(progress)},
    {BY_ROW_FLAG(0, "json", AT(json), "print one JSON object")},
    {BY_ROW_HEADING("Algorithms:")},
#define X(name, text, summary) {BY_ROW_NOTE(text, summary)},
    BY_ALGORITHM_LIST(X)
#undef X

        {0}};

static const struct by_options command_line = {
    .program = "banyan compare",
    .usage = "banyan compare TOPO [options]",
    .about =
        "Prints the rates that banyan's forests and published algorithms reach on the fabric in TOPO, as "
        "exact rates beside the bound that the planner proves: what no schedule (for allreduce on some "
        "fabrics: no trees) can exceed. Rates are algorithm bandwidths: total data size over time.",
    .rows = rows,
    .least = 1,
    .most = 1,
    .operands = "a topology file"};

static int read_arguments(int argc, char **argv, struct compare_arguments *arguments)
{
    int status;

    *arguments = (struct compare_arguments){.time_limit_s = TIME_LIMIT_S, .latency_ns = LATENCY_NS};
    memset(arguments->wanted, true, sizeof(arguments->wanted));
    status = by_options_read(&command_line, arguments, &argc, argv);
    arguments->topology = argv[1];
    return status;
}

/* ---- the rows ---- */

static void finish_row(struct compare_row *row, struct by_fraction optimum, double start)
{
    row->seconds = by_plan_clock() - start;
    if (!row->refused[0] && by_fraction_divide(row->facts.achieved, optimum, &row->ratio) != 0)
        snprintf(row->refused, sizeof(row->refused), "its ratio to the bound needs more than 63 bits");
}

/*
 * Fills in the row of a forest. A forest that the time limit interrupted is not optimal, so it has
 * no figures.
 */
static void describe_forest(const struct by_plan *plan, uint32_t node_count, struct compare_row *row,
                            struct by_problem *problem)
{
    if (plan->hurried)
        snprintf(problem->text, sizeof(problem->text),
                 "it did not finish within its time limit; raise --time-limit");
    else
        by_sketch_describe(plan, node_count, &row->facts);
}

static void fill_row(const struct by_topology *topology, const struct compare_arguments *arguments,
                     const struct by_plan *reference, int64_t root, struct by_stage *stage,
                     struct compare_row *row)
{
    double start = by_plan_clock();
    struct by_problem problem = {0};

    if (row->algorithm == BY_ALGORITHM_FOREST && row->hosts) {
        struct by_plan_options options = {.collective = reference->collective,
                                          .root = root,
                                          .time_limit_s = arguments->time_limit_s,
                                          .stage = stage,
                                          .programs = by_program_pack};
        struct by_plan *plan = NULL;

        if (by_plan_make(topology, &options, &plan, &problem) == 0)
            describe_forest(plan, topology->node_count, row, &problem);
        by_plan_free(plan);
    } else if (row->algorithm == BY_ALGORITHM_FOREST) {
        describe_forest(reference, topology->node_count, row, &problem);
    } else {
        struct by_baseline_options options = {.algorithm = row->algorithm,
                                              .collective = reference->collective,
                                              .root = root,
                                              .time_limit_s = arguments->time_limit_s,
                                              .stage = stage,
                                              .programs = by_program_pack};
        struct by_baseline result;

        if (by_baseline_make(topology, &options, reference, &result, &problem) == 0) {
            row->facts = result.facts;
            row->round_count = result.round_count;
        }
        by_baseline_free(&result);
    }
    snprintf(row->refused, sizeof(row->refused), "%s", problem.text);
    finish_row(row, reference->optimum, start);
    if (row->algorithm == BY_ALGORITHM_FOREST && !row->hosts)
        row->seconds = reference->seconds.total;
}

/* ---- printing ---- */

static void print_row(const struct compare_row *row, const char *unit)
{
    char name[40], steps[40], text[BY_FRACTION_TEXT_BYTES];

    snprintf(name, sizeof(name), "%s%s", row->file ? row->file : by_algorithm_name(row->algorithm),
             row->hosts ? " (hosts)" : "");
    if (row->refused[0]) {
        printf("  %-15s %10s %s\n", name, "-", row->refused);
        return;
    }
    if (row->round_count > 0)
        snprintf(steps, sizeof(steps), "%u rounds", row->round_count);
    else
        snprintf(steps, sizeof(steps), "%u trees", row->facts.tree_count);
    printf("  %-15s %10.6g %-6s %7.5f  %-22s %12s  height %-5u %8.3g ms\n", name,
           by_fraction_value(row->facts.achieved), unit, by_fraction_value(row->ratio),
           by_fraction_text(row->ratio, text), steps, row->facts.height_max, 1e3 * row->seconds);
}

/* Prints "key": "text". */
static void print_json_text(const char *key, const char *text)
{
    printf("\"%s\": \"", key);
    for (const char *c = text; *c; c++)
        printf(*c == '"' || *c == '\\' ? "\\%c" : (unsigned char)*c < ' ' ? "\\u%04x" : "%c", *c);
    printf("\"");
}

static void print_json_row(const struct compare_row *row, bool first)
{
    char text[BY_FRACTION_JSON_BYTES];

    printf("%s\n    {", first ? "" : ",");
    if (row->file)
        print_json_text("file", row->file);
    else
        printf("\"algorithm\": \"%s\"", by_algorithm_name(row->algorithm));
    printf(", \"in_network\": %s, ", row->algorithm == BY_ALGORITHM_FOREST && !row->hosts ? "true" : "false");
    if (row->refused[0]) {
        print_json_text("unsupported", row->refused);
        printf("}");
        return;
    }
    printf("\"algbw\": %s, \"algbw_float\": %.12g, ", by_fraction_json(row->facts.achieved, text),
           by_fraction_value(row->facts.achieved));
    printf("\"ratio\": %s, \"ratio_float\": %.12g, ", by_fraction_json(row->ratio, text),
           by_fraction_value(row->ratio));
    if (row->round_count > 0)
        printf("\"rounds\": %u, \"height\": {\"max\": %u}, ", row->round_count, row->facts.height_max);
    else
        printf("\"trees\": %u, \"height\": {\"max\": %u, \"mean\": %.4g}, ", row->facts.tree_count,
               row->facts.height_max, row->facts.height_mean);
    printf("\"seconds\": %.6f}", row->seconds);
}

static void print_head(const struct by_topology *topology, const struct by_plan *reference, bool json,
                       bool first)
{
    char text[BY_FRACTION_JSON_BYTES];

    if (!json) {
        printf("%s%s%s%s: the bound is %.6g %s (%s), no %s can be faster\n", first ? "" : "\n",
               by_collective_name(reference->collective), reference->root >= 0 ? " at " : "",
               reference->root >= 0 ? topology->nodes[reference->root].name : "",
               by_fraction_value(reference->optimum), topology->unit,
               by_fraction_text(reference->optimum, text), reference->proof ? "trees" : "schedule");
        printf("  %-15s %10s %-6s %7s  %-22s\n", "algorithm", "algbw", "", "ratio", "exactly");
        return;
    }
    printf("%s\n  {\"collective\": \"%s\", \"root\": ", first ? "" : ",",
           by_collective_name(reference->collective));
    if (reference->root >= 0)
        printf("\"%s\"", topology->nodes[reference->root].name);
    else
        printf("null");
    printf(", \"optimum\": %s, \"optimum_float\": %.12g,\n   \"rows\": [",
           by_fraction_json(reference->optimum, text), by_fraction_value(reference->optimum));
}

/* ---- the latency-bandwidth model ---- */

/* The rows with a rate, as lines of the model. */
struct compare_lines {
    uint32_t count;
    struct by_crossover_line lines[ROWS_MAX];
};

/* Hops one after the other: those of each round, or the height of the trees, for an allreduce up
 * and down. */
static void add_line(struct compare_lines *lines, const struct compare_row *row, unsigned collective)
{
    uint64_t times = row->round_count > 0 ? row->round_count : collective == BY_COLLECTIVE_ALLREDUCE ? 2 : 1;

    if (row->refused[0])
        return;
    lines->lines[lines->count++] =
        (struct by_crossover_line){.name = row->file    ? row->file
                                           : row->hosts ? "forest (hosts)"
                                                        : by_algorithm_name(row->algorithm),
                                   .hops = times * row->facts.height_max,
                                   .rate = row->facts.achieved};
}

static void print_crossovers(const struct compare_lines *lines, const struct by_topology *topology,
                             const struct compare_arguments *arguments)
{
    struct by_crossover found[ROWS_MAX];
    int count = by_unit_has_bytes(topology->unit) ? by_crossovers(lines->lines, lines->count, found) : 0;
    double bytes[ROWS_MAX];

    for (int i = 0; i < count; i++) {
        struct by_fraction rate;

        if (by_unit_bytes(topology->unit, found[i].from, &rate) != 0)
            count = BY_ERANGE;
        else
            bytes[i] = by_fraction_value(rate) * (double)arguments->latency_ns / 1e9;
    }
    if (arguments->json)
        printf(", \"latency_ns\": %llu, \"fastest\": [", (unsigned long long)arguments->latency_ns);
    else if (count > 0)
        printf("  fastest at %llu ns a hop:", (unsigned long long)arguments->latency_ns);
    for (int i = 0; i < count; i++) {
        const char *name = lines->lines[found[i].line].name;

        if (arguments->json)
            printf("%s{\"algorithm\": \"%s\", \"from_bytes\": %.12g}", i ? ", " : "", name, bytes[i]);
        else if (i == 0)
            printf(" %s", name);
        else
            printf("; from %.4g %s %s", bytes[i] / (bytes[i] < 1e6 ? 1e3 : 1e6), bytes[i] < 1e6 ? "kB" : "MB",
                   name);
    }
    if (arguments->json)
        printf("]");
    else if (count > 0)
        printf("\n");
    else if (count < 0)
        printf("  the sizes at which algorithms overtake each other need more than 63 bits\n");
}

static void print_any_row(const struct by_topology *topology, const struct compare_arguments *arguments,
                          const struct compare_row *row, bool first)
{
    if (arguments->json)
        print_json_row(row, first);
    else
        print_row(row, topology->unit);
    fflush(stdout);
}

/* The rows of the imported schedules for the collective. */
static void print_imports(const struct by_topology *topology, const struct compare_arguments *arguments,
                          const struct by_plan *reference, bool first, struct compare_lines *lines)
{
    for (uint32_t i = 0; i < arguments->import_count; i++) {
        const struct by_cli_imported *imported = &arguments->imported[i];
        struct compare_row row = {.file = by_cli_imported_name(imported),
                                  .round_count = imported->depth,
                                  .facts = {.achieved = imported->rate, .height_max = imported->path_hops}};

        if (imported->collective != reference->collective)
            continue;
        finish_row(&row, reference->optimum, by_plan_clock());
        print_any_row(topology, arguments, &row, first);
        add_line(lines, &row, reference->collective);
        first = false;
    }
}

static int compare_one(const struct by_topology *topology, const struct compare_arguments *arguments,
                       unsigned collective, int64_t root, bool first)
{
    bool rooted = by_collective_is_rooted(collective);
    struct by_plan_options options = {.collective = collective,
                                      .root = rooted ? root : -1,
                                      .in_network = true,
                                      .programs = by_program_pack};
    struct by_cli_progress progress;
    struct by_plan *reference;
    struct by_problem problem = {0};
    struct compare_lines lines = {0};
    bool capable = by_topology_capable(topology), first_row = true;
    int error;

    by_cli_progress_start(&progress, by_collective_name(collective), arguments->progress);
    options.stage = &progress.stage;
    /* The table requires the bound. */
    options.time_limit_s = arguments->time_limit_s > TIME_LIMIT_S ? arguments->time_limit_s : TIME_LIMIT_S;
    error = by_plan_make(topology, &options, &reference, &problem);
    by_cli_progress_stop(&progress);
    if (error)
        return by_cli_refuse_work(arguments->topology, error, &problem);
    print_head(topology, reference, arguments->json, first);
    for (unsigned i = 0; i < 2u * BY_ALGORITHM_COUNT; i++) {
        struct compare_row row = {.algorithm = (enum by_algorithm)(i / 2), .hosts = i % 2 == 1};

        if (row.algorithm == BY_ALGORITHM_NONE || !arguments->wanted[row.algorithm] ||
            (row.hosts && (row.algorithm != BY_ALGORITHM_FOREST || !capable)))
            continue;
        by_cli_progress_start(&progress, by_collective_name(collective), arguments->progress);
        fill_row(topology, arguments, reference, options.root, &progress.stage, &row);
        by_cli_progress_stop(&progress);
        print_any_row(topology, arguments, &row, first_row);
        add_line(&lines, &row, collective);
        first_row = false;
    }
    print_imports(topology, arguments, reference, first_row, &lines);
    if (arguments->json)
        printf("]");
    print_crossovers(&lines, topology, arguments);
    if (arguments->json)
        printf("}");
    by_plan_free(reference);
    return BY_EXIT_DONE;
}

static bool is_imported(const struct compare_arguments *arguments, unsigned collective)
{
    for (uint32_t i = 0; i < arguments->import_count; i++)
        if (arguments->imported[i].collective == collective)
            return true;
    return false;
}

/* Reads all files before anything is printed. Returns -1 to continue. */
static int read_imports(const struct by_topology *topology, struct compare_arguments *arguments)
{
    int status = -1;

    for (uint32_t i = 0; i < arguments->import_count && status < 0; i++) {
        status = by_cli_imported_read(topology, arguments->topology, arguments->imports[i],
                                      &arguments->imported[i]);
        if (status < 0 && arguments->collective && arguments->imported[i].collective != arguments->collective)
            status = by_cli_fail(BY_EXIT_USAGE, "%s is for %s, not for %s; leave -c out",
                                 arguments->imports[i], by_collective_name(arguments->imported[i].collective),
                                 by_collective_name(arguments->collective));
    }
    return status;
}

static int compare(const struct by_topology *topology, const struct compare_arguments *arguments)
{
    static const unsigned usual[] = {BY_COLLECTIVE_ALLGATHER, BY_COLLECTIVE_REDUCE_SCATTER,
                                     BY_COLLECTIVE_ALLREDUCE};
    int64_t root = 0;
    int status = BY_EXIT_DONE;
    bool first = true;

    while (!topology->nodes[root].compute)
        root++;
    if (arguments->root) {
        root = by_topology_find(topology, arguments->root);
        if (root < 0 || !topology->nodes[root].compute)
            return by_cli_fail(BY_EXIT_USAGE, "--root is '%s', which is not a compute node of %s",
                               arguments->root, arguments->topology);
    }
    if (arguments->json) {
        printf("{");
        print_json_text("topology", topology->name);
        printf(", \"compute_nodes\": %u, ", by_topology_compute_count(topology));
        print_json_text("unit", topology->unit);
        printf(", \"collectives\": [");
    } else {
        printf("%s: %u compute nodes, %u switches\n", topology->name, by_topology_compute_count(topology),
               topology->node_count - by_topology_compute_count(topology));
    }
    if (arguments->collective)
        status = compare_one(topology, arguments, arguments->collective, root, true);
    for (size_t i = 0; i < sizeof(usual) / sizeof(usual[0]) && !arguments->collective && !status; i++)
        if (arguments->import_count == 0 || is_imported(arguments, usual[i])) {
            status = compare_one(topology, arguments, usual[i], root, first);
            first = false;
        }
    if (arguments->json && !status)
        printf("], \"peak_memory\": %lld}\n", by_cli_memory());
    else if (!status)
        printf("\nmemory %.3g MiB\n", (double)by_cli_memory() / 1048576);
    return status;
}

int by_command_compare(int argc, char **argv)
{
    struct compare_arguments arguments;
    struct by_topology *topology;
    int status = read_arguments(argc, argv, &arguments);

    if (status >= 0)
        return status;
    topology = by_cli_topology(arguments.topology);
    if (!topology)
        return BY_EXIT_USAGE;
    status = read_imports(topology, &arguments);
    if (status < 0)
        status = compare(topology, &arguments);
    by_topology_free(topology);
    return status;
}
