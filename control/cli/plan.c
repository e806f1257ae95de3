/*
 * The command `banyan plan`: computes the best trees for a collective on a fabric, prints the
 * result, and writes the plan file. Single-threaded.
 */
#include "control/plan/plan.h"
#include "control/planner/planner.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control/base/alloc.h"
#include "control/base/clock.h"
#include "control/base/fraction.h"
#include "control/cli/baseline.h"
#include "control/cli/check.h"
#include "control/cli/cli.h"
#include "control/cli/exchange.h"
#include "control/cli/plan_allreduce.h"
#include "control/cli/plan_protect.h"
#include "control/cli/plan_whatif.h"
#include "control/cli/progress.h"
#include "control/cli/ranks.h"
#include "control/cli/replan.h"
#include "control/cli/runs.h"
#include "control/fabric/members.h"
#include "control/plan/shares.h"
#include "control/study/bound/pack.h"
#include "offload/wire/types.h"

/* Most names of a bottleneck's nodes in text output (count). */
#define CUT_NAMES_MAX 6u

struct plan_arguments {
    const char *topology;
    const char *output;
    const char *root;
    const char *what_if;
    const char *ranks, *shares, *matrix;
    bool json, progress;
    enum by_algorithm algorithm;
    struct by_cli_from from;
    struct by_cli_protect protect;
    struct by_plan_options options;
    bool *member;   /* from --ranks; used as options.member */
    int64_t *parts; /* from --shares; used as options.shares */
};

static int read_fixed_k(void *object, const char *text, struct by_option_why *why)
{
    struct by_plan_options *options = &((struct plan_arguments *)object)->options;
    char *end;

    if (strncmp(text, "auto:", 5) == 0) {
        if (by_fraction_parse_part(text + 5, &options->loss) == 0 && options->loss.num > 0 &&
            options->loss.num < options->loss.den)
            return 0;
        return by_option_refuse(why, "after auto: give the part of the rate that may be lost, above 0 and "
                                     "below 1, such as 1%% or 0.01");
    }
    errno = 0;
    options->fixed_k = strtoll(text, &end, 10);
    if (errno || text[0] < '0' || text[0] > '9' || *end || options->fixed_k < 1)
        return by_option_refuse(why, "it must be a positive integer, or auto:1%%");
    return 0;
}

static int read_loss(void *object, const char *text, struct by_option_why *why)
{
    struct by_plan_options *options = &((struct plan_arguments *)object)->options;

    options->latency_aware = true;
    options->loss_max = (struct by_fraction){1, 10};
    if (text && (by_fraction_parse_part(text, &options->loss_max) != 0 ||
                 options->loss_max.num >= options->loss_max.den))
        return by_option_refuse(why, "it must be the part of the rate that lower trees may cost, below 1: "
                                     "10%%, 0.1 or 1/10");
    return 0;
}

static int read_protect(void *object, const char *text, struct by_option_why *why)
{
    return by_cli_protect_read(&((struct plan_arguments *)object)->protect, text, why);
}

static int read_protect_part(void *object, const char *text, struct by_option_why *why)
{
    return by_cli_protect_read_part(&((struct plan_arguments *)object)->protect, text, why);
}

static const char *const in_network_words[] = {"none", "auto"};

#define AT(member) BY_OPTION_AT(struct plan_arguments, member)

static const struct by_option rows[] = {
    {BY_ROW_CHOICE('c', "collective", "COLL", AT(options.collective), 1, BY_EXCHANGE_END - 1, "plan %l"),
     .word = by_plan_collective_name, .once = true},
    {BY_ROW_TEXT('o', "output", "PLAN", AT(output), "write the plan file (- for standard output)")},
    {BY_ROW_TEXT(0, "root", "NODE", AT(root), "broadcast or scatter from NODE, or reduce or gather to NODE")},
    {BY_ROW_CALL(0, "fixed-k", "K", read_fixed_k,
                 "make the best plan with K trees for each root; auto:1%: the smallest K that loses at most "
                 "1 % of the rate")},
    {BY_ROW_NUMBER(0, "trees-max", "N", AT(options.trees_max), 1, 1000000,
                   "make the best plan that is found with at most N trees for each root; for allreduce in "
                   "all")},
    {BY_ROW_TEXT(0, "ranks", "LIST", AT(ranks), "use these compute nodes only: A,B,C or @FILE")},
    {BY_ROW_TEXT(0, "shares", "FILE", AT(shares),
                 "use shards of unequal size, from JSON: {\"NODE\": SHARE, ...} or an array by rank")},
    {BY_ROW_TEXT(0, "matrix", "FILE", AT(matrix),
                 "all-to-all: what each rank has for each other one, from JSON: an array of rows by "
                 "sender, of numbers by receiver")},
    {BY_ROW_FLAG(0, "classes", AT(options.classes),
                 "plan alike parts of the fabric once, and write trees for one root of each class; above "
                 "16384 nodes the default for collectives without a root")},
    {BY_ROW_CHOICE(0, "in-network", "MODE", AT(options.in_network), 0, 1,
                   "auto: use switches that can multicast or aggregate (default); none: switches only "
                   "forward"),
     .words = in_network_words},
    {BY_ROW_CHOICE(0, "algorithm", "NAME", AT(algorithm), 1, BY_ALGORITHM_COUNT - 1,
                   "plan with %l (default forest; the others are for comparison)"),
     .word = by_algorithm_name},
    {BY_ROW_TEXT(0, "from", "PLAN", AT(from.plan),
                 "plan again after a change: trees of PLAN that still work are kept")},
    {BY_ROW_TEXT(0, "fail-link", "A,B", AT(from.links),
                 "with --from: TOPO is the fabric of that plan, and this link has failed; may be repeated"),
     .count = AT(from.link_count)},
    {BY_ROW_TEXT(0, "fail-node", "NODE", AT(from.nodes),
                 "with --from: this node has failed; may be repeated"),
     .count = AT(from.node_count)},
    {BY_ROW_TEXT(0, "write-topology", "FILE", AT(from.write), "write the fabric without the failed parts")},
    {BY_ROW_CALL(0, "protect", "WHAT", read_protect,
                 "plan for failures: print what remains after any single link, switch or link,switch fails, "
                 "and what backup trees cost")},
    {BY_ROW_CALL(
        0, "protect-part", "PART", read_protect_part,
        "with --protect: make backup trees only where less than PART of the optimum remains (default "
        "1)")},
    {BY_ROW_TEXT(0, "backups", "DIR", AT(protect.folder),
                 "with --protect: write the fabric and the plan after each failure to DIR")},
    {BY_ROW_FLAG(0, "ordered", AT(options.ordered),
                 "make every partial sum cover contiguous ranks, for operators that do not commute")},
    {BY_ROW_CALL(0, "latency-aware", "LOSS", read_loss,
                 "make lower trees, for up to LOSS (default 10%) of the rate, and print the trade"),
     .optional = true},
    {BY_ROW_TEXT(0, "what-if", "WHAT", AT(what_if),
                 "print what a capability is worth: SWITCH, a class of switches, or all, with "
                 "=multicast,aggregate or one of them")},
    {BY_CLI_TIME_LIMIT(options.time_limit_s,
                       "after S seconds, end with the best plan so far; SIGINT and SIGTERM do the same")},
    {BY_CLI_PROGRESS(progress)},
    {BY_ROW_FLAG(0, "json", AT(json), "print the result as one JSON object")},
    {0}};

static const struct by_options command_line = {
    .program = "banyan plan",
    .usage = "banyan plan TOPO -c COLL [options]",
    .about = "Computes trees that carry a collective over the fabric in TOPO (topology JSON, - for standard "
             "input) as fast as its links allow, with the cut that proves the bound. Rates are algorithm "
             "bandwidths: total data size over time.",
    .rows = rows,
    .least = 1,
    .most = 1,
    .operands = "a topology file"};

static bool has_routes(const struct plan_arguments *arguments)
{
    return arguments->options.collective >= BY_EXCHANGE_ALL_TO_ALL;
}

static bool is_protected(const struct plan_arguments *arguments)
{
    return arguments->protect.request.links || arguments->protect.request.switches;
}

/* Refuses combinations with --protect. */
static int check_protect(const struct plan_arguments *arguments)
{
    const char *idle = arguments->from.plan                          ? "--from"
                       : arguments->algorithm != BY_ALGORITHM_FOREST ? "--algorithm"
                       : arguments->options.latency_aware            ? "--latency-aware"
                       : arguments->what_if                          ? "--what-if"
                                                                     : NULL;

    if (!is_protected(arguments) && (arguments->protect.request.part.num > 0 || arguments->protect.folder))
        return by_cli_fail(BY_EXIT_USAGE,
                           "%s requires --protect, which names the failures: link, switch or "
                           "link,switch",
                           arguments->protect.folder ? "--backups" : "--protect-part");
    if (is_protected(arguments) && idle)
        return by_cli_fail(BY_EXIT_USAGE, "--protect cannot be combined with %s; leave one out", idle);
    return -1;
}

/* Refuses options of trees for collectives with routes, and the other way round. */
static int check_routes(const struct plan_arguments *arguments)
{
    const struct by_plan_options *options = &arguments->options;
    const char *idle = options->fixed_k || options->loss.num         ? "--fixed-k"
                       : options->trees_max                          ? "--trees-max"
                       : arguments->ranks                            ? "--ranks"
                       : arguments->from.plan                        ? "--from"
                       : arguments->algorithm != BY_ALGORITHM_FOREST ? "--algorithm"
                       : options->ordered                            ? "--ordered"
                       : options->latency_aware                      ? "--latency-aware"
                       : arguments->what_if                          ? "--what-if"
                       : is_protected(arguments)                     ? "--protect"
                       : !options->in_network                        ? "--in-network"
                                                                     : NULL;
    bool pairs = options->collective == BY_EXCHANGE_ALL_TO_ALL;
    const char *name = by_plan_collective_name(options->collective);

    if (arguments->matrix && !pairs)
        return by_cli_fail(BY_EXIT_USAGE, "--matrix is for all-to-all; leave it out");
    if (!has_routes(arguments))
        return -1;
    if (idle)
        return by_cli_fail(BY_EXIT_USAGE, "%s is for plans of trees, and %s has routes; leave it out", idle,
                           name);
    if (arguments->shares && pairs)
        return by_cli_fail(BY_EXIT_USAGE, "an all-to-all has a --matrix, not --shares");
    return -1;
}

static int read_arguments(int argc, char **argv, struct plan_arguments *arguments)
{
    int status;

    *arguments =
        (struct plan_arguments){.algorithm = BY_ALGORITHM_FOREST,
                                .options = {.root = -1, .in_network = true, .programs = by_program_pack}};
    status = by_options_read(&command_line, arguments, &argc, argv);
    if (status >= 0)
        return status;
    arguments->topology = argv[1];
    if (!arguments->from.plan && (arguments->from.link_count || arguments->from.node_count))
        return by_cli_fail(BY_EXIT_USAGE, "--fail-link and --fail-node require --from, the plan to start "
                                          "from");
    status = check_routes(arguments);
    if (status < 0)
        status = check_protect(arguments);
    if (status >= 0)
        return status;
    if ((arguments->ranks || arguments->shares) &&
        (arguments->from.plan || arguments->algorithm != BY_ALGORITHM_FOREST))
        return by_cli_fail(BY_EXIT_USAGE, "%s requires the forest, and cannot be combined with --from",
                           arguments->ranks ? "--ranks" : "--shares");
    if (arguments->from.plan && (arguments->options.fixed_k || arguments->options.loss.num ||
                                 arguments->options.trees_max || arguments->root))
        return by_cli_fail(BY_EXIT_USAGE,
                           "--from uses root and k of the previous plan; leave them and --trees-max out");
    if (arguments->options.trees_max && arguments->algorithm != BY_ALGORITHM_FOREST)
        return by_cli_fail(BY_EXIT_USAGE, "--trees-max requires the forest; leave out --algorithm");
    if (arguments->options.collective == 0 && !arguments->from.plan)
        return by_cli_fail(BY_EXIT_USAGE, "name a collective with -c");
    return -1;
}

static int find_root(const struct by_topology *topology, struct plan_arguments *arguments)
{
    unsigned collective = arguments->options.collective;
    bool rooted = by_collective_is_rooted(collective) || collective == BY_EXCHANGE_SCATTER ||
                  collective == BY_EXCHANGE_GATHER;

    if (!arguments->root)
        return rooted ? by_cli_fail(BY_EXIT_USAGE, "%s needs a root; name a compute node with --root",
                                    by_plan_collective_name(collective))
                      : -1;
    if (!rooted)
        return by_cli_fail(BY_EXIT_USAGE, "%s has no root; leave --root out",
                           by_plan_collective_name(collective));
    arguments->options.root = by_topology_find(topology, arguments->root);
    if (arguments->options.root < 0)
        return by_cli_fail(BY_EXIT_USAGE, "--root is '%s', which is not a node of %s", arguments->root,
                           arguments->topology);
    return -1;
}

/* Reads the files of --ranks and --shares. */
static int read_job(const struct by_topology *topology, struct plan_arguments *arguments)
{
    struct by_problem problem = {0};
    int status = by_cli_ranks(arguments->ranks, topology, &arguments->member);

    arguments->options.member = arguments->member;
    if (status >= 0 || !arguments->shares)
        return status;
    if (by_shares_read(arguments->shares, topology, arguments->member, &arguments->parts, &problem) != 0)
        return by_cli_refuse(arguments->shares, &problem);
    arguments->options.shares = arguments->parts;
    return -1;
}

/*
 * The verifier's result on the plan; it shares no code with the planner. Verdict 0: not verified. A
 * plan that fails the check is never printed or written.
 */
struct plan_check {
    struct by_verify_report report;
    double seconds;
    const struct by_cli_from *from; /* --from: the previous plan, and what changed */
    const struct by_cli_protect *protect;
    struct by_replan_report replan;
    struct by_runs runs;
};

/* Verifies the plan in memory. */
static void verify_plan(const struct by_plan *plan, const struct by_topology *topology,
                        struct plan_check *check)
{
    double start = by_plan_clock();

    by_cli_check(plan, topology, &check->report);
    check->seconds = by_plan_clock() - start;
}

static uint32_t compute_in_cut(const struct by_plan *plan, const struct by_topology *topology)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < plan->cut_count; i++)
        count += by_members_have(topology, plan->member, plan->cut[i]);
    return count;
}

/* Prints "key": {fraction}, "key_float": number. */
static void print_fraction(const char *key, struct by_fraction value)
{
    char text[BY_FRACTION_JSON_BYTES];

    printf(" \"%s\": %s, \"%s_float\": %.12g,\n", key, by_fraction_json(value, text), key,
           by_fraction_value(value));
}

static void print_json(const struct by_plan *plan, const struct by_topology *topology,
                       const struct plan_check *check)
{
    struct by_heights heights = by_plan_heights(plan, topology->node_count);
    char text[BY_FRACTION_JSON_BYTES];

    printf("{\"collective\": \"%s\", \"compute_nodes\": %u, \"unit\": \"",
           by_collective_name(plan->collective), plan->compute_count);
    for (const char *c = plan->unit; *c; c++)
        printf(*c == '"' || *c == '\\' ? "\\%c" : (unsigned char)*c < ' ' ? "\\u%04x" : "%c", *c);
    printf("\",\n");
    if (plan->member) {
        printf(" \"ranks\": [");
        for (uint32_t i = 0, count = 0; i < topology->node_count; i++)
            if (plan->member[i])
                printf("%s\"%s\"", count++ ? ", " : "", topology->nodes[i].name);
        printf("],\n");
    }
    print_fraction("optimum", plan->optimum);
    print_fraction("achieved", plan->achieved);
    by_plan_allreduce_json(stdout, plan);
    by_plan_trades_json(stdout, plan);
    if (plan->ordered)
        printf(" \"ordered\": true,\n");
    if (plan->hurried)
        printf(" \"ended_by\": \"%s\",\n", by_plan_late(0) ? "signal" : "time limit");
    if (plan->inv_x.num > 0)
        print_fraction("inv_x", plan->inv_x);
    else
        printf(" \"inv_x\": null,\n");
    if (plan->shares) {
        printf(" \"shares\": ");
        by_shares_write(plan->shares, topology, plan->member, stdout);
        printf(",\n");
    }
    if (plan->trees_max > 0)
        printf(" \"trees_max\": %lld,\n", (long long)plan->trees_max);
    if (plan->rotations)
        printf(" \"images\": %llu,\n", (unsigned long long)by_rotations_images(plan->rotations));
    printf(" \"k\": %lld, \"tree_count\": %u, \"height\": {\"max\": %u, \"mean\": %.4g", (long long)plan->k,
           plan->tree_count, heights.max, heights.mean);
    if (plan->packed.max > 0)
        printf(", \"packed\": {\"max\": %u, \"mean\": %.4g}", plan->packed.max, plan->packed.mean);
    printf("},\n");
    printf(" \"bottleneck\": {\"nodes\": [");
    for (uint32_t i = 0; i < plan->cut_count; i++)
        printf("%s\"%s\"", i ? ", " : "", topology->nodes[plan->cut[i]].name);
    printf("], \"compute_count\": %u, \"exiting\": %s},\n", compute_in_cut(plan, topology),
           by_fraction_json(plan->cut_exiting, text));
    if (check->report.verdict)
        printf(" \"verdict\": \"%s\", \"verify_seconds\": %.6f,\n", by_verdict_name(check->report.verdict),
               check->seconds);
    fputc(' ', stdout);
    by_cli_runs_json(stdout, &check->runs);
    fputs(",\n", stdout);
    by_cli_replan_json(stdout, check->from, &check->replan);
    by_cli_protect_json(stdout, check->protect);
    printf(" \"peak_memory\": %lld,\n", by_cli_memory());
    printf(" \"seconds\": {\"optimum\": %.6f, \"split\": %.6f, \"pack\": %.6f, \"in_network\": %.6f, "
           "\"total\": %.6f}}\n",
           plan->seconds.optimum, plan->seconds.split, plan->seconds.pack, plan->seconds.in_network,
           plan->seconds.total);
}

static void print_rate(FILE *stream, const char *what, struct by_fraction rate, const char *unit)
{
    char text[BY_FRACTION_TEXT_BYTES];

    if (rate.den == 1)
        fprintf(stream, "  %-11s %s %s", what, by_fraction_text(rate, text), unit);
    else
        fprintf(stream, "  %-11s %.6g %s (%s)", what, by_fraction_value(rate), unit,
                by_fraction_text(rate, text));
}

/*
 * Prints the bottleneck. The nodes named are those of the side with fewer compute nodes; data leave
 * one side and enter the other.
 */
static void print_cut(FILE *stream, const struct by_plan *plan, const struct by_topology *topology)
{
    uint32_t inside = compute_in_cut(plan, topology);
    bool enter = 2 * inside > plan->compute_count;
    bool *in_cut = by_alloc(topology->node_count, sizeof(*in_cut));
    uint32_t count = 0;
    char text[BY_FRACTION_TEXT_BYTES];

    for (uint32_t i = 0; i < plan->cut_count; i++)
        in_cut[plan->cut[i]] = true;
    fprintf(stream, "  bottleneck  %s %s %s {", by_fraction_text(plan->cut_exiting, text), plan->unit,
            enter ? "enter" : "leave");
    for (uint32_t node = 0; node < topology->node_count; node++) {
        if (in_cut[node] == enter || by_members_idle(topology, plan->member, node))
            continue;
        if (count < CUT_NAMES_MAX)
            fprintf(stream, "%s%s", count ? ", " : "", topology->nodes[node].name);
        count++;
    }
    if (count > CUT_NAMES_MAX)
        fprintf(stream, ", ... %u nodes", count);
    fprintf(stream, "} with %u of %u compute nodes\n", enter ? plan->compute_count - inside : inside,
            plan->compute_count);
    free(in_cut);
}

/*
 * Prints unequal shards: the number of parts, the largest shards, and the data that must cross the
 * bottleneck.
 */
static void print_shares(FILE *stream, const struct by_plan *plan, const struct by_topology *topology)
{
    uint32_t most = 0, having = 0;
    int64_t sum, inside;

    if (!plan->shares)
        return;
    for (uint32_t i = 0; i < topology->node_count; i++) {
        most = plan->shares[i] > plan->shares[most] ? i : most;
        having += plan->shares[i] > 0;
    }
    sum = by_shares_sum(plan->shares, topology->node_count);
    inside = by_shares_of(plan->shares, plan->cut, plan->cut_count);
    fprintf(stream,
            "  shares      %lld parts at %u compute nodes, most (%lld) at %s; %lld cross the bottleneck\n",
            (long long)sum, having, (long long)plan->shares[most], topology->nodes[most].name,
            (long long)(plan->collective == BY_COLLECTIVE_ALLGATHER ? inside : sum - inside));
}

/* Prints that the search was ended, and what the plan proves nevertheless. */
static void print_hurried(FILE *stream, const struct by_plan *plan)
{
    if (!plan->hurried)
        return;
    fprintf(stream,
            "  ended by    %s, with the best plan so far: ", by_plan_late(0) ? "a signal" : "the time limit");
    if (by_fraction_compare(plan->achieved, plan->optimum) == 0)
        fputs("nothing better exists\n", stream);
    else
        fprintf(stream, "%s at most %.4g times as fast\n", plan->proof ? "other trees are" : "others are",
                by_fraction_value(plan->optimum) / by_fraction_value(plan->achieved));
}

static void print_people(FILE *stream, const struct by_plan *plan, const struct by_topology *topology,
                         const struct plan_check *check)
{
    struct by_heights heights = by_plan_heights(plan, topology->node_count);
    bool optimal = by_fraction_compare(plan->achieved, plan->optimum) == 0;
    uint32_t computes = by_topology_compute_count(topology);
    struct by_fraction ratio;
    char text[BY_FRACTION_TEXT_BYTES];

    fprintf(stream, "%s on %s: %u", by_collective_name(plan->collective), plan->topology_name,
            plan->compute_count);
    if (plan->member)
        fprintf(stream, " of %u", computes);
    fprintf(stream, " compute nodes, %u switches\n", topology->node_count - computes);
    print_rate(stream, "bound", plan->optimum, plan->unit);
    fprintf(stream, ", %s\n", by_plan_bound_words(plan));
    print_rate(stream, "achieved", plan->achieved, plan->unit);
    fprintf(stream, ", %.4g %% of it",
            100 * by_fraction_value(plan->achieved) / by_fraction_value(plan->optimum));
    if (!optimal && by_fraction_divide(plan->achieved, plan->optimum, &ratio) == 0)
        fprintf(stream, " (%s)\n", by_fraction_text(ratio, text));
    else
        fputs(optimal ? ": optimal\n" : "\n", stream);
    print_hurried(stream, plan);
    by_plan_trades_people(stream, plan);
    if (plan->ordered)
        fputs("  ordered     every partial sum covers contiguous ranks\n", stream);
    by_plan_allreduce_people(stream, plan);
    if (plan->inv_x.num > 0)
        fprintf(stream, "  1/x*        %s\n", by_fraction_text(plan->inv_x, text));
    print_shares(stream, plan, topology);
    fprintf(stream, "  trees       %u", plan->tree_count);
    if (plan->rotations)
        fprintf(stream, " class%s of %llu", plan->tree_count == 1 ? "" : "es",
                (unsigned long long)by_rotations_images(plan->rotations));
    if (plan->k > 0)
        fprintf(stream, ", k = %lld%s", (long long)plan->k, plan->shares ? " for each part" : "");
    if (plan->trees_max > 0)
        fprintf(stream, "; at most %lld %s", (long long)plan->trees_max,
                by_collective_way(plan->collective) == BY_DATA_BOTH ? "in all" : "for each root");
    fprintf(stream, "; height %u, mean %.3g hops", heights.max, heights.mean);
    if (plan->packed.max > heights.max || plan->packed.mean > heights.mean + 0.005)
        fprintf(stream, " (as packed %u, %.3g)", plan->packed.max, plan->packed.mean);
    fputs("\n  runs        on tables: ", stream);
    by_cli_runs_people(stream, &check->runs);
    fputc('\n', stream);
    by_cli_replan_people(stream, check->from, &check->replan);
    by_cli_protect_people(stream, check->protect, &check->runs);
    print_cut(stream, plan, topology);
    fprintf(stream,
            "  planned in  %.3g ms (optimum %.3g, switches %.3g, packing %.3g, in the network %.3g)\n",
            1e3 * plan->seconds.total, 1e3 * plan->seconds.optimum, 1e3 * plan->seconds.split,
            1e3 * plan->seconds.pack, 1e3 * plan->seconds.in_network);
    if (check->report.verdict)
        fprintf(stream, "  verified    %s, in %.3g ms; memory %.3g MiB\n",
                by_verdict_name(check->report.verdict), 1e3 * check->seconds,
                (double)by_cli_memory() / 1048576);
}

static int write_plan(const struct by_plan *plan, const struct by_topology *topology, const char *path)
{
    struct by_output output;

    if (!by_cli_create(&output, path))
        return BY_EXIT_ENVIRONMENT;
    return by_cli_finish(&output, by_plan_write(plan, topology, output.stream) == 0);
}

/* Plans routes of all-to-all, scatter and gather. */
static int plan_routes(const struct plan_arguments *arguments, const struct by_topology *topology)
{
    struct by_exchange_request request = {.exchange = (enum by_exchange)arguments->options.collective,
                                          .file = arguments->topology,
                                          .root = arguments->options.root,
                                          .matrix = arguments->matrix,
                                          .shares = arguments->shares,
                                          .output = arguments->output,
                                          .json = arguments->json,
                                          .time_limit_s = arguments->options.time_limit_s};

    return by_cli_exchange(topology, &request);
}

/*
 * Plans without a previous plan and verifies the result, under a progress bar. Returns -1 to
 * continue.
 */
static int make_plan(struct plan_arguments *arguments, const struct by_topology *topology,
                     struct by_plan **plan, struct plan_check *check)
{
    struct by_cli_progress progress;
    struct by_problem problem = {0};
    bool forest = arguments->algorithm == BY_ALGORITHM_FOREST;
    int error = 0, status = -1;

    by_cli_progress_start(&progress, by_collective_name(arguments->options.collective), arguments->progress);
    arguments->options.stage = &progress.stage;
    if (!*plan)
        error = by_plan_make(topology, &arguments->options, plan, &problem);
    if (!error && forest) {
        by_stage_begin(&progress.stage, "verifying", 0);
        verify_plan(*plan, topology, check);
        if (check->report.verdict != BY_VERDICT_INVALID)
            status = by_cli_protect(&arguments->protect, arguments->topology, topology, &arguments->options,
                                    *plan);
    }
    by_cli_progress_stop(&progress);
    if (error)
        status = by_cli_refuse_work(arguments->topology, error, &problem);
    else if (forest && check->report.verdict == BY_VERDICT_INVALID)
        status = by_cli_fail(BY_EXIT_ENVIRONMENT, "the planner made a wrong plan, please report it: %s",
                             check->report.reason);
    arguments->options.stage = NULL;
    return status;
}

int by_command_plan(int argc, char **argv)
{
    struct plan_arguments arguments;
    struct by_topology *topology;
    struct by_plan *plan = NULL;
    struct plan_check check = {.from = &arguments.from, .protect = &arguments.protect};
    int status = read_arguments(argc, argv, &arguments);

    if (status >= 0)
        return status;
    if (arguments.json && arguments.output && strcmp(arguments.output, "-") == 0)
        return by_cli_fail(
            BY_EXIT_USAGE,
            "standard output cannot hold both the result (--json) and the plan (-o -); name a file");
    topology = by_cli_topology(arguments.topology);
    if (!topology)
        return BY_EXIT_USAGE;
    by_cli_end_by_signal();
    status = arguments.from.plan
                 ? by_cli_replan(&arguments.from, arguments.topology, arguments.options.collective,
                                 arguments.options.in_network, arguments.options.time_limit_s, &topology,
                                 &plan, &check.replan)
                 : find_root(topology, &arguments);
    if (status < 0 && has_routes(&arguments))
        status = plan_routes(&arguments, topology);
    if (status < 0)
        status = read_job(topology, &arguments);
    if (status < 0 && arguments.what_if)
        status = by_cli_what_if(topology, arguments.topology, &arguments.options, arguments.what_if,
                                arguments.json);
    if (status < 0)
        status = make_plan(&arguments, topology, &plan, &check);
    if (status < 0 && arguments.algorithm != BY_ALGORITHM_FOREST)
        status =
            by_cli_baseline(topology, arguments.topology, arguments.algorithm, arguments.options.time_limit_s,
                            arguments.progress, arguments.output, arguments.json, &plan);
    if (status < 0) {
        by_runs_find(topology, plan, &check.runs);
        if (arguments.json)
            print_json(plan, topology, &check);
        else
            print_people(arguments.output && strcmp(arguments.output, "-") == 0 ? stderr : stdout, plan,
                         topology, &check);
        status = arguments.output ? write_plan(plan, topology, arguments.output) : BY_EXIT_DONE;
    }
    by_cli_protect_end(&arguments.protect);
    by_plan_free(plan);
    by_topology_free(topology);
    free(arguments.member);
    free(arguments.parts);
    return status;
}
