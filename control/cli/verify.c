/*
 * The command `banyan verify`: checks a plan with code that is independent of the planner.
 * Single-threaded.
 */
#include "control/verify/verify.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control/base/json.h"
#include "control/cli/check.h"
#include "control/cli/cli.h"
#include "control/verify/series.h"

/* Largest file of a plan or schedule (bytes): many times a plan for 4096 nodes. */
#define FILE_BYTES_MAX ((size_t)4 << 30)

static const char help[] =
    "usage: banyan verify TOPO PLAN [--json]\n\n"
    "Checks a plan, or a schedule of banyan steady, against its topology, in exact arithmetic and "
    "independently of the planner: every "
    "tree, the\n"
    "load of every link, the shares of the roots, and the cut. Prints OPTIMAL, VALID with the ratio to what "
    "the cut\n"
    "allows, or INVALID with the first violation. Exit status: 0, or 1 when the plan is invalid.\n";

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

static void print_json(const struct by_verify_report *report)
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
    printf(", \"bound_of\": \"%s\", \"tree_count\": %u}\n", report->of_trees ? "trees" : "schedules",
           report->tree_count);
}

static void print_people(const struct by_verify_report *report, const char *unit)
{
    if (report->verdict == BY_VERDICT_INVALID)
        printf("INVALID %s\n", report->reason);
    else if (report->verdict == BY_VERDICT_OPTIMAL)
        printf("OPTIMAL %.6g %s with %u tree%s; %s\n", report->achieved.value, unit, report->tree_count,
               by_plural(report->tree_count),
               !report->of_trees    ? "the cut allows no more"
               : report->hosts_only ? "no trees carry more while switches only forward"
                                    : "no trees carry more");
    else
        printf("VALID %s/%s = %.6g: %.6g %s with %u tree%s, %s %.6g\n", report->ratio.num, report->ratio.den,
               report->ratio.value, report->achieved.value, unit, report->tree_count,
               by_plural(report->tree_count), report->of_trees ? "trees carry at most" : "the cut allows",
               report->bound.value);
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
        printf(", \"lane_count\": %u, \"matching_count\": %u}\n", verdict.lane_count, verdict.slot_count);
    } else if (verdict.verdict == BY_VERDICT_INVALID) {
        printf("INVALID %s\n", verdict.reason);
    } else {
        printf("%s throughput %s/%s of at most %s/%s operations in a unit of time, in %u matching%s\n",
               by_verdict_name(verdict.verdict), verdict.throughput.num, verdict.throughput.den,
               verdict.bound.num, verdict.bound.den, verdict.slot_count, by_plural(verdict.slot_count));
    }
    return verdict.verdict == BY_VERDICT_INVALID ? BY_EXIT_NO : BY_EXIT_DONE;
}

static int verify_plan(const struct by_topology *topology, const char *path, const char *text, size_t bytes,
                       bool json)
{
    struct by_verify_report report;
    struct by_problem problem = {0};

    if (by_verify_text(topology, text, bytes, &report, &problem) != 0)
        return by_cli_refuse(path, &problem);
    if (json)
        print_json(&report);
    else
        print_people(&report, topology->unit);
    return report.verdict == BY_VERDICT_INVALID ? BY_EXIT_NO : BY_EXIT_DONE;
}

int by_command_verify(int argc, char **argv)
{
    static const struct option options[] = {
        {"json", no_argument, NULL, 'j'}, {"help", no_argument, NULL, 'h'}, {NULL, 0, NULL, 0}};
    struct by_topology *topology;
    struct by_problem problem = {0};
    bool json = false;
    int option, status;
    size_t bytes;
    char *text;

    optind = 0;
    while ((option = getopt_long(argc, argv, "h", options, NULL)) != -1) {
        if (option == 'h') {
            fputs(help, stdout);
            return BY_EXIT_DONE;
        }
        if (option != 'j')
            return by_cli_fail(BY_EXIT_USAGE, "`banyan verify --help` says more");
        json = true;
    }
    if (optind + 2 != argc)
        return by_cli_fail(BY_EXIT_USAGE, "name a topology and a plan; `banyan verify --help` says more");
    topology = by_cli_topology(argv[optind]);
    if (!topology)
        return BY_EXIT_USAGE;
    if (by_text_read(argv[optind + 1], FILE_BYTES_MAX, &text, &bytes, &problem) != 0) {
        status = by_cli_refuse(argv[optind + 1], &problem);
    } else {
        status = (by_series_suits(text, bytes) ? verify_series : verify_plan)(topology, argv[optind + 1],
                                                                              text, bytes, json);
        free(text);
    }
    by_topology_free(topology);
    return status;
}
