/*
 * Every plan runs: plans of random fabrics of mixed capabilities for each collective. The verifier
 * must accept each plan, and each must fit tables. --out FOLDER writes fabric and plans for
 * tests/oracle/runs.sh, which simulates them. Ends with a table of gaps by family. Single-threaded.
 */
#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control/base/fraction.h"
#include "control/plan/plan.h"
#include "control/planner/planner.h"
#include "control/study/bound/pack.h"
#include "control/tables/runs.h"
#include "control/verify/verify.h"
#include "offload/wire/types.h"
#include "tests/unit/control/campaign/mixed.h"

#define FAILURES_MAX 10u

static struct {
    uint64_t count, first, plans, failures, refused, stated;
    const char *out;
} campaign = {.count = 400, .first = 1};

/* Allreduces of one family, by their part of the bound. */
static struct {
    uint64_t plans, reached, within1, within3, pairs;
    double least;
} gaps[MIXED_COUNT];

static void fail(uint64_t seed, unsigned collective, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void fail(uint64_t seed, unsigned collective, const char *format, ...)
{
    va_list arguments;

    printf("FAIL   seed %llu, %s: ", (unsigned long long)seed, by_collective_name(collective));
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    printf("\n       replay: build/release/tools/run-campaign --count 1 --seed %llu\n",
           (unsigned long long)seed);
    campaign.failures++;
}

static void write_file(const char *kind, uint64_t seed, const char *text, size_t bytes)
{
    char path[400];
    FILE *file;

    snprintf(path, sizeof(path), "%s/%llu.%s", campaign.out, (unsigned long long)seed, kind);
    file = fopen(path, "we");
    if (!file || fwrite(text, 1, bytes, file) != bytes || fclose(file) != 0) {
        perror(path);
        exit(3);
    }
}

static void write_topology(const struct by_topology *topology, uint64_t seed)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *stream = open_memstream(&text, &bytes);

    if (!stream || by_topology_write(topology, stream) != 0 || fclose(stream) != 0)
        abort();
    write_file("json", seed, text, bytes);
    free(text);
}

static void note_gap(const struct by_plan *plan, uint64_t seed)
{
    double ratio = by_fraction_value(plan->achieved) / by_fraction_value(plan->optimum);
    unsigned family = (unsigned)(seed % MIXED_COUNT);

    gaps[family].plans++;
    gaps[family].reached += by_fraction_compare(plan->achieved, plan->optimum) == 0;
    gaps[family].within1 += ratio >= 0.99;
    gaps[family].within3 += ratio >= 0.97;
    if (gaps[family].plans == 1 || ratio < gaps[family].least)
        gaps[family].least = ratio;
    for (uint32_t i = 0; i < plan->tree_count; i++)
        if (plan->trees[i].use == BY_TREE_UP) {
            gaps[family].pairs++;
            break;
        }
}

/* Plans one collective, verifies the plan's file and compiles it. */
static void check_plan(const struct by_topology *topology, uint64_t seed, unsigned collective)
{
    struct by_plan_options options = {.collective = collective,
                                      .root = by_collective_is_rooted(collective) ? 0 : -1,
                                      .in_network = true,
                                      .programs = by_program_pack};
    bool oneway = seed % MIXED_COUNT == MIXED_ONEWAY;
    struct by_verify_report report;
    struct by_problem problem = {0};
    struct by_plan *plan = NULL;
    struct by_runs runs;
    char *text = NULL;
    size_t bytes = 0;
    FILE *stream;

    if (by_plan_make(topology, &options, &plan, &problem) != 0) {
        if (oneway)
            campaign.refused++; /* the fabric is not balanced, or has no way back; the text names it */
        else
            fail(seed, collective, "no plan: %s", problem.text);
        return;
    }
    campaign.plans++;
    stream = open_memstream(&text, &bytes);
    if (!stream || by_plan_write(plan, topology, stream) != 0 || fclose(stream) != 0)
        abort();
    by_runs_find(topology, plan, &runs);
    if (by_verify_text(topology, text, bytes, &report, &problem) != 0)
        fail(seed, collective, "the verifier cannot read the plan: %s", problem.text);
    else if (report.verdict == BY_VERDICT_INVALID)
        fail(seed, collective, "INVALID: %s", report.reason);
    else if (!runs.runs && oneway &&
             (strstr(runs.problem.text, "one-way") || strstr(runs.problem.text, "path back")))
        campaign.stated++; /* replies have no way back; `plan` and `verify` print this */
    else if (!runs.runs)
        fail(seed, collective, "does not run on tables: %s", runs.problem.text);
    else if (runs.part.num < runs.part.den)
        fail(seed, collective, "tables reach %lld/%lld of the rate on parallel cables",
             (long long)runs.part.num, (long long)runs.part.den);
    if (collective == BY_COLLECTIVE_ALLREDUCE)
        note_gap(plan, seed);
    if (campaign.out && runs.runs) {
        write_file(by_collective_name(collective), seed, text, bytes);
        printf("plan %llu %s %s %.17g\n", (unsigned long long)seed,
               mixed_name((enum mixed_family)(seed % MIXED_COUNT)), by_collective_name(collective),
               by_fraction_value(plan->achieved));
    }
    free(text);
    by_plan_free(plan);
}

static void check_fabric(uint64_t seed)
{
    struct by_topology *topology = mixed_fabric(seed);

    if (campaign.out)
        write_topology(topology, seed);
    check_plan(topology, seed, BY_COLLECTIVE_ALLREDUCE);
    check_plan(topology, seed, BY_COLLECTIVE_REDUCE_SCATTER);
    check_plan(topology, seed, BY_COLLECTIVE_ALLGATHER);
    check_plan(topology, seed, BY_COLLECTIVE_BROADCAST);
    check_plan(topology, seed, BY_COLLECTIVE_REDUCE);
    by_topology_free(topology);
}

static bool read_number(const char *text, uint64_t *number)
{
    char *end;

    errno = 0;
    *number = strtoull(text, &end, 10);
    return errno == 0 && end != text && *end == 0 && *text != '-';
}

static int usage(void)
{
    fputs("usage: run-campaign [--count N] [--seed S] [--out FOLDER]\n\n"
          "Plans N random fabrics of mixed capabilities, those of the seeds S, S + 1, ... (default 1), for\n"
          "every collective; verifies and compiles each plan. --out writes the fabrics and plans.\n",
          stderr);
    return 2;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {{"count", required_argument, NULL, 'c'},
                                            {"seed", required_argument, NULL, 's'},
                                            {"out", required_argument, NULL, 'o'},
                                            {0}};
    uint64_t done = 0;
    int option;

    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (option == 'o')
            campaign.out = optarg;
        else if ((option != 'c' || !read_number(optarg, &campaign.count)) &&
                 (option != 's' || !read_number(optarg, &campaign.first)))
            return usage();
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (; done < campaign.count && campaign.failures < FAILURES_MAX; done++)
        check_fabric(campaign.first + done);
    printf(
        "# allreduce by family: plans, at the bound, within 1%%, within 3%%, least part of the bound, with pairs\n");
    for (unsigned f = 0; f < MIXED_COUNT; f++)
        printf("# %-8s %6llu %6llu %6llu %6llu %8.4f %6llu\n", mixed_name((enum mixed_family)f),
               (unsigned long long)gaps[f].plans, (unsigned long long)gaps[f].reached,
               (unsigned long long)gaps[f].within1, (unsigned long long)gaps[f].within3, gaps[f].least,
               (unsigned long long)gaps[f].pairs);
    printf("# %llu fabrics, %llu plans verified, %llu compiled; on one-way fabrics %llu cannot run, as "
           "stated, and %llu were refused\n",
           (unsigned long long)done, (unsigned long long)campaign.plans,
           (unsigned long long)(campaign.plans - campaign.stated), (unsigned long long)campaign.stated,
           (unsigned long long)campaign.refused);
    printf("%llu passed, %llu failed\n", (unsigned long long)(campaign.plans - campaign.failures),
           (unsigned long long)campaign.failures);
    return campaign.failures > 0;
}
