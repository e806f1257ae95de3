/*
 * The command `banyan verify`: checks a plan with code that is independent of the planner.
 * Single-threaded.
 */
#include "control/verify/verify.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control/base/json.h"
#include "control/cli/check.h"
#include "control/cli/cli.h"
#include "control/cli/runs.h"
#include "control/plan/plan.h"
#include "control/verify/series.h"

/* Largest file of a plan or schedule (bytes): many times a plan for 4096 nodes. */
#define FILE_BYTES_MAX ((size_t)4 << 30)

struct verify_arguments {
    bool json;
};

static const struct by_option rows[] = {
    {BY_ROW_FLAG(0, "json", BY_OPTION_AT(struct verify_arguments, json), "print one JSON object")}, {0}};

static const struct by_options command_line = {
    .program = "banyan verify",
    .usage = "banyan verify TOPO PLAN|SCHEDULE [options]",
    .about =
        "Checks a plan, or a schedule of banyan steady, against its topology, in exact arithmetic and "
        "independently of the planner: every tree, the load of every link, the shares of the roots, and "
        "the cut. Prints OPTIMAL, VALID with the ratio to what the cut allows, or INVALID with the first "
        "violation.",
    .epilog = "Exit status: 0, or 1 when the plan is invalid.",
    .rows = rows,
    .least = 2,
    .most = 2,
    .operands = "a topology and a plan"};

/*
 * Prints decimal digits as JSON. Numbers of 16 or more digits, which can exceed 2^53, are quoted.
 */
static void print_digits(const char *digits)
{
    const char *quote = strlen(digits) > 15 ? "\"" : "";

    printf("%s%s%s", quote, digits, quote);
}

static void print_number(const char *key, const struct by_verify_number *number)
{
    printf(", \"%s\": {\"num\": ", key);
    print_digits(number->num);
    printf(", \"den\": ");
    print_digits(number->den);
    printf("}, \"%s_float\": %.12g", key, number->value);
}

static void print_reason(const char *reason)
{
    printf(", \"reason\": \"");
    for (const char *c = reason; *c; c++)
        printf(*c == '"' || *c == '\\' ? "\\%c" : (unsigned char)*c < ' ' ? "\\u%04x" : "%c", *c);
    printf("\"}\n");
}

static void print_json(const struct by_verify_report *report, const struct by_runs *runs)
{
    printf("{\"verdict\": \"%s\"", by_verdict_name(report->verdict));
    if (report->verdict == BY_VERDICT_INVALID) {
        print_reason(report->reason);
        return;
    }
    print_number("achieved", &report->achieved);
    print_number("bound", &report->bound);
    print_number("ratio", &report->ratio);
    if (report->hosts_only)
        printf(", \"in_network\": \"none\"");
    if (report->images > 1)
        printf(", \"images\": %llu", (unsigned long long)report->images);
    printf(", \"bound_of\": \"%s\", \"tree_count\": %u, ", report->of_trees ? "trees" : "schedules",
           report->tree_count);
    by_cli_runs_json(stdout, runs);
    puts("}");
}

static void print_people(const struct by_verify_report *report, const struct by_runs *runs, const char *unit)
{
    char trees[80];

    snprintf(trees, sizeof(trees), "%u tree%s", report->tree_count, by_plural(report->tree_count));
    if (report->images > 1)
        snprintf(trees, sizeof(trees), "%u class%s of %llu trees", report->tree_count,
                 report->tree_count == 1 ? "" : "es", (unsigned long long)report->images);
    if (report->verdict == BY_VERDICT_INVALID)
        printf("INVALID %s\n", report->reason);
    else if (report->verdict == BY_VERDICT_OPTIMAL)
        printf("OPTIMAL %.6g %s with %s; %s\n", report->achieved.value, unit, trees,
               !report->of_trees    ? "the cut allows no more"
               : report->hosts_only ? "no trees carry more while switches only forward"
                                    : "no trees carry more");
    else
        printf("VALID %s/%s = %.6g: %.6g %s with %s, %s %.6g\n", report->ratio.num, report->ratio.den,
               report->ratio.value, report->achieved.value, unit, trees,
               report->of_trees ? "trees carry at most" : "the cut allows", report->bound.value);
    if (report->verdict == BY_VERDICT_INVALID)
        return;
    fputs("runs on tables: ", stdout);
    by_cli_runs_people(stdout, runs);
    putchar('\n');
}

/* Verifies a periodic schedule of `banyan steady`. */
static int verify_series(const struct by_topology *topology, const char *path, const char *text, size_t bytes,
                         bool json)
{
    struct by_series *series;
    struct by_series_verdict verdict;
    struct by_problem problem = {0};

    if (by_series_parse(text, bytes, topology, &series, &problem) != 0)
        return by_cli_refuse(path, &problem);
    by_series_check(series, topology, &verdict);
    by_series_free(series);
    if (json) {
        printf("{\"verdict\": \"%s\"", by_verdict_name(verdict.verdict));
        if (verdict.verdict == BY_VERDICT_INVALID) {
            print_reason(verdict.reason);
            return BY_EXIT_NO;
        }
        print_number("throughput", &verdict.throughput);
        print_number("bound", &verdict.bound);
        print_number("ratio", &verdict.ratio);
        printf(", \"lane_count\": %u, \"matching_count\": %u,\n \"runs\": {\"tables\": false, \"reason\": "
               "\"%s\"}}\n",
               verdict.lane_count, verdict.slot_count, BY_CLI_ROUTES_RUN_NOT);
    } else if (verdict.verdict == BY_VERDICT_INVALID) {
        printf("INVALID %s\n", verdict.reason);
    } else {
        printf("%s throughput %s/%s of at most %s/%s operations in a unit of time, in %u matching%s\n",
               by_verdict_name(verdict.verdict), verdict.throughput.num, verdict.throughput.den,
               verdict.bound.num, verdict.bound.den, verdict.slot_count, by_plural(verdict.slot_count));
        printf("runs on tables: no: %s\n", BY_CLI_ROUTES_RUN_NOT);
    }
    return verdict.verdict == BY_VERDICT_INVALID ? BY_EXIT_NO : BY_EXIT_DONE;
}

/* Compiles the plan. This reads the file once more, because the verifier keeps no data structure
 * that it shares with the planner. */
static void find_runs(const struct by_topology *topology, const char *text, size_t bytes,
                      struct by_runs *runs)
{
    struct by_plan *plan = NULL;

    if (by_plan_parse_classes(text, bytes, topology, &plan, &runs->problem) == 0)
        by_runs_find(topology, plan, runs);
    by_plan_free(plan);
}

static int verify_plan(const struct by_topology *topology, const char *path, const char *text, size_t bytes,
                       bool json)
{
    struct by_verify_report report;
    struct by_runs runs = {0};
    struct by_problem problem = {0};

    if (by_verify_text(topology, text, bytes, &report, &problem) != 0)
        return by_cli_refuse(path, &problem);
    if (report.verdict != BY_VERDICT_INVALID)
        find_runs(topology, text, bytes, &runs);
    if (json)
        print_json(&report, &runs);
    else
        print_people(&report, &runs, topology->unit);
    return report.verdict == BY_VERDICT_INVALID ? BY_EXIT_NO : BY_EXIT_DONE;
}

int by_command_verify(int argc, char **argv)
{
    struct verify_arguments arguments = {0};
    struct by_topology *topology;
    struct by_problem problem = {0};
    int status = by_options_read(&command_line, &arguments, &argc, argv);
    size_t bytes;
    char *text;

    if (status >= 0)
        return status;
    topology = by_cli_topology(argv[1]);
    if (!topology)
        return BY_EXIT_USAGE;
    if (by_text_read(argv[2], FILE_BYTES_MAX, &text, &bytes, &problem) != 0) {
        status = by_cli_refuse(argv[2], &problem);
    } else {
        status = (by_series_suits(text, bytes) ? verify_series : verify_plan)(topology, argv[2], text, bytes,
                                                                              arguments.json);
        free(text);
    }
    by_topology_free(topology);
    return status;
}
