/*
 * The planner's campaign: random balanced fabrics, each planned for every collective, with and
 * without branching switches. The optimum must equal the result of trying every cut, and the
 * verifier must prove every plan OPTIMAL. For allreduce the campaign collects the ratio to the
 * bound. --dump and --lp write the fabrics and the planner's claims for the oracles of
 * tests/oracle, which are independent programs. A failure prints its seed and a command that
 * replays it, and writes the fabric. `make planner-check` runs all of this. Single-threaded.
 */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "control/base/fraction.h"
#include "control/plan/plan.h"
#include "control/plan/shares.h"
#include "control/planner/planner.h"
#include "control/study/bound/pack.h"
#include "control/tables/runs.h"
#include "control/verify/verify.h"
#include "offload/base/prng.h"
#include "offload/wire/types.h"
#include "tests/unit/control/campaign/cuts.h"
#include "tests/unit/control/campaign/fabric.h"
#include "tests/unit/control/campaign/program.h"
#include "tests/unit/control/campaign/ratio.h"

/* A fabric that takes longer counts as hung (seconds). */
#define FABRIC_SECONDS 60u
/* Failures shown before the campaign gives up (count). */
#define FAILURES_MAX 10u

struct campaign {
    uint64_t count, first;
    struct fabric_sizes sizes;
    bool exhaustive, allreduce;
    FILE *dump;             /* fabrics and claims for the flow oracle, or NULL */
    const char *programs;   /* folder for linear programs, or NULL */
    uint32_t program_nodes; /* size of the largest fabric that gets a program */
    const char *out;        /* folder for the fabrics of failures */
    uint64_t *at;           /* the current seed, shared with the process that watches */
    uint64_t plans, failures;
    struct ratio_table ratios;
};

/* The current fabric. */
static struct {
    const struct by_topology *topology;
    int64_t *shares; /* by node: the shares of unequal shards */
    uint64_t seed;
    struct fabric_sizes sizes;
    struct cuts cuts;
    uint32_t root;
    const char *out; /* folder for the fabrics of failures */
    bool failed;
} now;

static void replay_text(char *text, size_t bytes)
{
    bool usual = now.sizes.nodes_min == 3 && now.sizes.nodes_max == 9;

    if (usual)
        snprintf(text, bytes, "make planner-check N=1 SEED=%llu", (unsigned long long)now.seed);
    else
        snprintf(text, bytes, "build/release/tools/plan-campaign --count 1 --seed %llu --nodes %u..%u",
                 (unsigned long long)now.seed, now.sizes.nodes_min, now.sizes.nodes_max);
}

static void save(void)
{
    char path[400];
    FILE *file;

    snprintf(path, sizeof(path), "%s/campaign-%llu.json", now.out, (unsigned long long)now.seed);
    file = fopen(path, "we");
    if (!file || by_topology_write(now.topology, file) != 0 || fclose(file) != 0)
        printf("       the fabric could not be written to %s: %s\n", path, strerror(errno));
    else
        printf("       fabric: %s\n", path);
}

static void fail(struct campaign *campaign, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void fail(struct campaign *campaign, const char *format, ...)
{
    va_list arguments;
    char replay[160];

    printf("FAIL   seed %llu: ", (unsigned long long)now.seed);
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    replay_text(replay, sizeof(replay));
    printf("\n       replay: %s\n", replay);
    if (!now.failed) {
        save();
        campaign->failures++;
    }
    now.failed = true;
}

/* Makes a plan and lets the verifier check its file. Returns NULL after a failure. The verdict goes
 * to `report`. */
static struct by_plan *plan(struct campaign *campaign, unsigned collective, int64_t root,
                            const int64_t *shares, int64_t trees_max, bool in_network,
                            struct by_verify_report *report)
{
    struct by_plan_options options = {.collective = collective,
                                      .root = root,
                                      .shares = shares,
                                      .trees_max = trees_max,
                                      .in_network = in_network,
                                      .programs = by_program_pack};
    const char *name = by_collective_name(collective), *mode = in_network ? "auto" : "none";
    struct by_problem problem = {0};
    struct by_plan *made = NULL;
    char *text = NULL;
    size_t bytes = 0;
    struct by_runs runs;
    FILE *stream;

    campaign->plans++;
    if (by_plan_make(now.topology, &options, &made, &problem) != 0) {
        fail(campaign, "%s, in the network %s: no plan: %s", name, mode, problem.text);
        return NULL;
    }
    stream = open_memstream(&text, &bytes);
    if (!stream || by_plan_write(made, now.topology, stream) != 0 || fclose(stream) != 0)
        abort();
    if (by_verify_text(now.topology, text, bytes, report, &problem) != 0)
        fail(campaign, "%s, in the network %s: the verifier cannot read the plan: %s", name, mode,
             problem.text);
    else if (report->verdict == BY_VERDICT_INVALID)
        fail(campaign, "%s, in the network %s: INVALID: %s", name, mode, report->reason);
    free(text);
    by_runs_find(now.topology, made, &runs);
    if (runs.part.num < runs.part.den)
        fail(campaign, "%s, in the network %s: tables reach %lld/%lld of the rate on parallel cables", name,
             mode, (long long)runs.part.num, (long long)runs.part.den);
    if (now.failed) {
        by_plan_free(made);
        return NULL;
    }
    return made;
}

static void claim(const struct campaign *campaign, const char *what, uint32_t root, struct by_fraction value)
{
    if (campaign->dump)
        fprintf(campaign->dump, "claim %s %u %lld %lld\n", what, root, (long long)value.num,
                (long long)value.den);
}

/* Checks one collective whose optimum is always reached. `value` is inv_x, or the rate, according
 * to the cuts. */
static void check_exact(struct campaign *campaign, unsigned collective, int64_t root, const int64_t *shares,
                        bool in_network, struct cut_value value, bool inverse)
{
    struct by_verify_report report;
    struct by_plan *made = plan(campaign, collective, root, shares, 0, in_network, &report);
    const char *name = by_collective_name(collective), *mode = in_network ? "auto" : "none";
    struct by_fraction found;

    if (!made)
        return;
    found = inverse ? made->inv_x : made->optimum;
    if (campaign->exhaustive && !cut_equals(value, found))
        fail(campaign, "%s, in the network %s: the optimum is %lld/%lld, trying every cut gives %.12g", name,
             mode, (long long)found.num, (long long)found.den, (double)value.num / (double)value.den);
    else if (report.verdict != BY_VERDICT_OPTIMAL)
        fail(campaign, "%s, in the network %s: VALID, %s/%s of what the cut allows, not OPTIMAL", name, mode,
             report.ratio.num, report.ratio.den);
    else if (by_fraction_compare(made->optimum, made->achieved) != 0)
        fail(campaign, "%s, in the network %s: the verifier says OPTIMAL, the planner does not", name, mode);
    if (in_network && !shares)
        claim(campaign, name, root < 0 ? 0 : (uint32_t)root, found);
    by_plan_free(made);
}

static void check_allreduce(struct campaign *campaign, bool in_network)
{
    struct by_verify_report report;
    struct by_plan *made = plan(campaign, BY_COLLECTIVE_ALLREDUCE, -1, NULL, 0, in_network, &report);
    bool reached;

    if (!made)
        return;
    reached = by_fraction_compare(made->achieved, made->optimum) == 0;
    if (campaign->exhaustive && !cut_allows(now.cuts.allreduce, made->optimum))
        fail(campaign, "allreduce: the bound %lld/%lld is above the least cut", (long long)made->optimum.num,
             (long long)made->optimum.den);
    else if (by_fraction_compare(made->achieved, made->optimum) > 0)
        fail(campaign, "allreduce: the plan is better than its bound");
    else if (reached != (report.verdict == BY_VERDICT_OPTIMAL))
        fail(campaign, "allreduce: the planner and the verifier disagree on whether the plan is optimal");
    if (in_network) {
        ratio_add(&campaign->ratios, campaign_capability(now.topology), made->achieved, made->optimum);
        claim(campaign, "allreduce", 0, made->optimum);
    }
    if (campaign->programs && in_network && now.topology->node_count <= campaign->program_nodes &&
        program_write(now.topology, made->achieved, campaign->programs, now.seed) != 0)
        fail(campaign, "the linear program cannot be written to %s: %s", campaign->programs, strerror(errno));
    by_plan_free(made);
}

/* Draws shares from the seed: some nodes have none, some far more than others. */
static void draw_shares(uint64_t seed)
{
    struct by_prng prng = {seed * 7919 + 17};
    uint32_t n = now.topology->node_count, some = 0;

    now.shares = calloc(n, sizeof(*now.shares));
    if (!now.shares)
        abort();
    for (uint32_t i = 0; i < n; i++) {
        if (!now.topology->nodes[i].compute)
            continue;
        now.shares[i] = by_prng_below(&prng, 4) == 0 ? 0 : 1 + (int64_t)by_prng_below(&prng, 9);
        some = by_prng_below(&prng, 2) ? i : some; /* hosts come first */
    }
    now.shares[some] += by_shares_equal(now.shares, now.topology);
}

/* Shards of unequal size. Each fabric tests one collective with its capabilities and the other
 * without. */
static void check_shares(struct campaign *campaign, bool in_network)
{
    bool scatter = (now.seed % 2 == 0) == in_network;
    struct cut_value value = {0, 1};

    if (campaign->exhaustive)
        value = cuts_shares(now.topology, now.shares, scatter);
    check_exact(campaign, scatter ? BY_COLLECTIVE_REDUCE_SCATTER : BY_COLLECTIVE_ALLGATHER, -1, now.shares,
                in_network, value, true);
}

/* Few trees: each fabric tests one collective; the plan must be right and not better than its
 * bound. */
static void check_few(struct campaign *campaign, bool in_network)
{
    static const unsigned collectives[] = {BY_COLLECTIVE_ALLREDUCE, BY_COLLECTIVE_ALLGATHER,
                                           BY_COLLECTIVE_REDUCE_SCATTER, BY_COLLECTIVE_BROADCAST,
                                           BY_COLLECTIVE_REDUCE};
    unsigned collective = collectives[(now.seed / 4 + in_network) % 5];
    bool rooted = collective == BY_COLLECTIVE_BROADCAST || collective == BY_COLLECTIVE_REDUCE;
    struct by_verify_report report;
    struct by_plan *made;

    if (!campaign->allreduce && collective == BY_COLLECTIVE_ALLREDUCE)
        return;
    made = plan(campaign, collective, rooted ? (int64_t)now.root : -1, NULL, 1 + (int64_t)(now.seed % 4),
                in_network, &report);
    if (made && by_fraction_compare(made->achieved, made->optimum) > 0)
        fail(campaign, "%s on few trees: the plan is better than its bound", by_collective_name(collective));
    by_plan_free(made);
}

static void dump_fabric(FILE *dump)
{
    const struct by_topology *topology = now.topology;

    fprintf(dump, "fabric %s %u %lld\ncompute", topology->name, topology->node_count,
            (long long)topology->scale);
    for (uint32_t i = 0; i < topology->node_count; i++)
        if (topology->nodes[i].compute)
            fprintf(dump, " %u", i);
    fputc('\n', dump);
    for (uint32_t i = 0; i < topology->arc_count; i++)
        fprintf(dump, "arc %u %u %lld\n", topology->arcs[i].from, topology->arcs[i].to,
                (long long)topology->arcs[i].capacity);
}

static void check_fabric(struct campaign *campaign, uint64_t seed)
{
    struct by_topology *topology = campaign_fabric(seed, campaign->sizes);

    now.topology = topology;
    now.seed = *campaign->at = seed;
    now.failed = false;
    now.root = (uint32_t)(seed * 31 % by_topology_compute_count(topology)); /* hosts come first */
    draw_shares(seed);
    if (campaign->exhaustive)
        cuts_find(topology, now.root, &now.cuts);
    if (campaign->dump)
        dump_fabric(campaign->dump);
    alarm(FABRIC_SECONDS);
    for (int in_network = 0; in_network < 2 && !now.failed; in_network++) {
        check_exact(campaign, BY_COLLECTIVE_ALLGATHER, -1, NULL, in_network, now.cuts.inv_x, true);
        check_exact(campaign, BY_COLLECTIVE_REDUCE_SCATTER, -1, NULL, in_network, now.cuts.inv_x, true);
        check_exact(campaign, BY_COLLECTIVE_BROADCAST, now.root, NULL, in_network, now.cuts.broadcast, false);
        check_exact(campaign, BY_COLLECTIVE_REDUCE, now.root, NULL, in_network, now.cuts.reduce, false);
        check_shares(campaign, in_network);
        check_few(campaign, in_network);
        if (campaign->allreduce)
            check_allreduce(campaign, in_network);
    }
    alarm(0);
    if (campaign->dump)
        fputs("end\n", campaign->dump);
    free(now.shares);
    by_topology_free(topology);
}

static void help(FILE *stream)
{
    fputs("usage: plan-campaign [--count N] [--seed S] [--nodes A..B] [--no-allreduce] [--out FOLDER]\n"
          "                     [--dump FILE] [--lp FOLDER] [--lp-nodes N] [--ratio-least PERCENT]\n\n"
          "Plans N random fabrics, those of the seeds S, S + 1, ..., and checks every plan.\n"
          "  --nodes A..B     their nodes (default 3..9); beyond 20 the optimum is left to the oracles\n"
          "  --no-allreduce   the other four collectives only\n"
          "  --out FOLDER     for the fabrics of failures (default .)\n"
          "  --dump FILE      fabrics and claims, for oracle-flow\n"
          "  --lp FOLDER      linear programs of allreduce, for tests/oracle/programs.sh\n"
          "  --lp-nodes N     of fabrics of up to N nodes (default 6)\n"
          "  --ratio-least P  fail when fewer than P percent of the allreduces reach 0.99 of their bound\n",
          stream);
}

static bool read_number(const char *text, uint64_t *number)
{
    char *end;

    errno = 0;
    *number = strtoull(text, &end, 10);
    return errno == 0 && end != text && *end == 0 && *text != '-';
}

/* Returns -1 to continue, else the exit status. */
static int read_options(int argc, char **argv, struct campaign *campaign, uint64_t *ratio_least)
{
    static const struct option options[] = {{"count", required_argument, NULL, 'c'},
                                            {"seed", required_argument, NULL, 's'},
                                            {"nodes", required_argument, NULL, 'n'},
                                            {"no-allreduce", no_argument, NULL, 'a'},
                                            {"out", required_argument, NULL, 'o'},
                                            {"dump", required_argument, NULL, 'd'},
                                            {"lp", required_argument, NULL, 'l'},
                                            {"lp-nodes", required_argument, NULL, 'm'},
                                            {"help", no_argument, NULL, 'h'},
                                            {"ratio-least", required_argument, NULL, 'r'},
                                            {0}};
    uint64_t number = 0;
    int option;

    while ((option = getopt_long(argc, argv, "h", options, NULL)) != -1) {
        bool good = true;

        switch (option) {
        case 'c':
            good = read_number(optarg, &campaign->count);
            break;
        case 's':
            good = read_number(optarg, &campaign->first);
            break;
        case 'r':
            good = read_number(optarg, ratio_least);
            break;
        case 'm':
            good = read_number(optarg, &number);
            campaign->program_nodes = (uint32_t)number;
            break;
        case 'n':
            good = sscanf(optarg, "%u..%u", &campaign->sizes.nodes_min, &campaign->sizes.nodes_max) == 2 &&
                   campaign->sizes.nodes_min >= 3 && campaign->sizes.nodes_min <= campaign->sizes.nodes_max;
            break;
        case 'a':
            campaign->allreduce = false;
            break;
        case 'o':
            now.out = optarg;
            break;
        case 'l':
            campaign->programs = optarg;
            break;
        case 'd':
            campaign->dump = fopen(optarg, "we");
            good = campaign->dump != NULL;
            break;
        case 'h':
            help(stdout);
            return 0;
        default:
            good = false;
        }
        if (!good) {
            help(stderr);
            return 2;
        }
    }
    return -1;
}

/* Runs the campaign and prints its result. Returns the exit status. */
static int run(struct campaign *campaign, uint64_t ratio_least)
{
    uint64_t done = 0;

    for (; done < campaign->count && campaign->failures < FAILURES_MAX; done++)
        check_fabric(campaign, campaign->first + done);
    if (campaign->dump && fclose(campaign->dump) != 0)
        return perror("plan-campaign: the dump cannot be written"), 3;
    printf("campaign: %llu fabrics of %u to %u nodes, seeds %llu to %llu, %llu plans, %llu fabrics with "
           "differences%s\n",
           (unsigned long long)done, campaign->sizes.nodes_min, campaign->sizes.nodes_max,
           (unsigned long long)campaign->first, (unsigned long long)(campaign->first + done - 1),
           (unsigned long long)campaign->plans, (unsigned long long)campaign->failures,
           campaign->exhaustive ? "; every cut tried" : "");
    if (campaign->allreduce)
        ratio_print(&campaign->ratios);
    if (campaign->failures == 0 && !ratio_reaches(&campaign->ratios, ratio_least)) {
        printf("FAIL   fewer than %llu%% of the allreduces reach 0.99 of their bound\n",
               (unsigned long long)ratio_least);
        campaign->failures++;
    }
    printf("%llu passed, %llu failed\n", (unsigned long long)(done - campaign->failures),
           (unsigned long long)campaign->failures);
    fflush(stdout);
    return campaign->failures ? 1 : 0;
}

/* Runs the campaign in another process, so that a crash of the planner, a failed assertion or a
 * hang is also reported with its seed and fabric. */
static int watch(struct campaign *campaign, uint64_t ratio_least)
{
    pid_t child = fork();
    int status = 0;
    char replay[160];

    if (child == 0)
        _exit(run(campaign, ratio_least));
    if (child < 0 || waitpid(child, &status, 0) != child)
        return perror("plan-campaign: no process for the campaign"), 3;
    if (WIFEXITED(status))
        return WEXITSTATUS(status);
    now.seed = *campaign->at;
    now.topology = campaign_fabric(now.seed, campaign->sizes);
    replay_text(replay, sizeof(replay));
    printf("FAIL   seed %llu: %s\n       replay: %s\n", (unsigned long long)now.seed,
           WTERMSIG(status) == SIGALRM ? "no end of its plans within a minute" : "the planner died", replay);
    save();
    printf("%llu passed, 1 failed\n", (unsigned long long)(now.seed - campaign->first));
    return 1;
}

int main(int argc, char **argv)
{
    struct campaign campaign = {
        .count = 2000, .first = 1, .sizes = {3, 9}, .allreduce = true, .program_nodes = 6};
    uint64_t ratio_least = 0;
    int status = read_options(argc, argv, &campaign, &ratio_least);

    if (status >= 0)
        return status;
    setvbuf(stdout, NULL, _IOLBF, 0);
    now.out = now.out ? now.out : ".";
    campaign.exhaustive = campaign.sizes.nodes_max <= CUTS_NODES_MAX;
    now.sizes = campaign.sizes;
    campaign.at = mmap(NULL, sizeof(*campaign.at), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (campaign.at == MAP_FAILED)
        return perror("plan-campaign: no shared memory"), 3;
    return watch(&campaign, ratio_least);
}
