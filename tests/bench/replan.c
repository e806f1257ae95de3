/*
 * Times re-planning after losses, in one process: bench-replan TOPOLOGY COLLECTIVE LOSS..., where a
 * loss is a link (A,B) or a node. Each line has the least time of RUNS re-plannings, heights and
 * trees beside those of a plan made without the old one, and the verdict of the verifier. Exit 1: a
 * repaired plan is invalid, slower than the one made without the old one, over one and a half times
 * as high, or has over a tenth more trees. Single-threaded.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "control/base/alloc.h"
#include "control/base/fraction.h"
#include "control/fabric/vary.h"
#include "control/planner/replan/replan.h"
#include "control/verify/verify.h"
#include "offload/wire/types.h"

#define RUNS 9

struct bench_replan {
    struct by_topology *whole;
    struct by_plan *old;
    struct by_plan_options options;
};

static void stop(const char *what, const struct by_problem *problem)
{
    fprintf(stderr, "bench-replan: %s: %s\n", what, problem->text);
    exit(2);
}

static void mark(const struct by_topology *topology, const char *name, size_t bytes, bool *lost)
{
    char text[64];
    int64_t node;

    snprintf(text, sizeof(text), "%.*s", (int)bytes, name);
    node = by_topology_find(topology, text);
    if (node < 0) {
        fprintf(stderr, "bench-replan: the topology has no node '%s'\n", text);
        exit(2);
    }
    lost[node] = true;
}

/* The fabric without a link "A,B" or a node. */
static struct by_topology *without(const struct by_topology *whole, const char *loss)
{
    bool *ends = by_alloc(whole->node_count, sizeof(*ends)),
         *links = by_alloc(whole->link_count, sizeof(*links));
    const char *comma = strchr(loss, ',');
    struct by_problem problem = {0};
    struct by_topology *left;

    mark(whole, loss, comma ? (size_t)(comma - loss) : strlen(loss), ends);
    if (comma)
        mark(whole, comma + 1, strlen(comma + 1), ends);
    for (uint32_t i = 0; i < whole->link_count && comma; i++)
        links[i] = ends[whole->links[i].a] && ends[whole->links[i].b];
    if (by_topology_without(whole, links, comma ? NULL : ends, &left, &problem) != 0)
        stop(loss, &problem);
    free(ends);
    free(links);
    return left;
}

static enum by_verdict verdict_of(const struct by_plan *plan, const struct by_topology *topology)
{
    struct by_verify_report report = {0};
    struct by_problem problem = {0};
    char *text = NULL;
    size_t bytes;
    FILE *stream = open_memstream(&text, &bytes);

    if (!stream || by_plan_write(plan, topology, stream) != 0 || fclose(stream) != 0 ||
        by_verify_text(topology, text, bytes, &report, &problem) != 0)
        stop("verify", &problem);
    free(text);
    return report.verdict;
}

static double processor_seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Measures one loss; returns whether the plan keeps its promises. */
static bool measure(const struct bench_replan *bench, const char *loss)
{
    struct by_topology *left = without(bench->whole, loss);
    struct by_replan_report report = {0};
    struct by_plan *plan = NULL, *fresh = NULL;
    struct by_problem problem = {0};
    struct by_heights height, usual;
    double least = 0, busy = 0;
    bool good;

    for (int run = 0; run < RUNS; run++) {
        double start, spent;

        by_plan_free(plan);
        start = processor_seconds();
        if (by_replan(bench->whole, bench->old, left, true, 0, &plan, &report, &problem) != 0)
            stop(loss, &problem);
        spent = processor_seconds() - start;
        least = run == 0 || report.seconds < least ? report.seconds : least;
        busy = run == 0 || spent < busy ? spent : busy;
    }
    if (by_plan_make(left, &bench->options, &fresh, &problem) != 0)
        stop(loss, &problem);
    height = by_plan_heights(plan, left->node_count);
    usual = by_plan_heights(fresh, left->node_count);
    good = verdict_of(plan, left) == (report.optimal ? BY_VERDICT_OPTIMAL : BY_VERDICT_VALID) &&
           2 * height.max <= 3 * usual.max && 10 * plan->tree_count <= 11 * fresh->tree_count;
    printf("  %-22s %8.2f %8.2f %10.1f %9.4f %4u %6.4g %5u %6u %4u %6.4g %6u %s\n", loss, 1e3 * least,
           1e3 * busy, 1e3 * fresh->seconds.total,
           by_fraction_value(plan->achieved) / by_fraction_value(fresh->achieved), height.max, height.mean,
           plan->tree_count, report.trees_kept, usual.max, usual.mean, fresh->tree_count,
           good ? (report.optimal ? "OPTIMAL" : "VALID") : "MISSED");
    by_plan_free(plan);
    by_plan_free(fresh);
    by_topology_free(left);
    return good;
}

int main(int argc, char **argv)
{
    struct bench_replan bench = {.options = {.root = -1, .in_network = true}};
    struct by_problem problem = {0};
    bool good = true;

    for (unsigned c = 1; c < BY_COLLECTIVE_COUNT && argc > 3; c++)
        if (strcmp(by_collective_name(c), argv[2]) == 0)
            bench.options.collective = c;
    if (argc < 4 || bench.options.collective == 0) {
        fprintf(stderr, "usage: bench-replan TOPOLOGY COLLECTIVE LOSS...\n");
        return 2;
    }
    if (by_collective_is_rooted(bench.options.collective))
        bench.options.root = 0;
    if (by_topology_read(argv[1], &bench.whole, &problem) != 0 ||
        by_plan_make(bench.whole, &bench.options, &bench.old, &problem) != 0)
        stop(argv[1], &problem);
    printf("# %-22s %8s %8s %10s %9s %4s %6s %5s %6s %4s %6s %6s\n", "lost", "ms", "cpu ms", "new, ms",
           "rate", "high", "mean", "trees", "kept", "high", "mean", "trees");
    for (int i = 3; i < argc; i++)
        good &= measure(&bench, argv[i]);
    by_plan_free(bench.old);
    by_topology_free(bench.whole);
    return !good;
}
