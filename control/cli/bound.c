/*
 * The command `banyan bound`: upper bounds for the rate of any schedule, for each collective, and
 * the rates of trees. A rate counts only after its trees are verified. Single-threaded.
 */
#include "control/study/bound/bound.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "control/cli/bound_print.h"
#include "control/cli/check.h"
#include "control/cli/cli.h"
#include "control/cli/progress.h"
#include "control/fabric/build.h"
#include "offload/base/errors.h"

struct bound_arguments {
    const char *topology, *output;
    bool json, progress;
    struct by_bound_options options;
};

static const char help[] =
    "usage: banyan bound TOPO [options]\n\n"
    "Says for each collective what no schedule on the fabric in TOPO (topology JSON, - for standard input) "
    "can "
    "beat, what\n"
    "banyan's trees reach, and what switches must be able to do for it. Rates are algorithm bandwidths: "
    "total "
    "data size\n"
    "over time; all are exact fractions, with the cut, partition or prices that prove them.\n\n"
    "  -o, --output PLAN   write the trees of the Reduce-Broadcast rate, an allreduce without working "
    "switches, as a plan\n"
    "                      file\n"
    "      --all-roots     make the trees of every root of broadcast and reduce (default up to 16 compute "
    "nodes)\n"
    "      --time-limit S  past S seconds, an error with exit status 3\n"
    "      --progress      tell of progress also where standard error is no terminal\n"
    "      --json          print the result as one JSON object\n"
    "  -h, --help\n";

/* Parses the arguments. Returns -1 to continue, else the exit status. */
static int read_arguments(int argc, char **argv, struct bound_arguments *arguments)
{
    static const struct option options[] = {{"output", required_argument, NULL, 'o'},
                                            {"all-roots", no_argument, NULL, 'a'},
                                            {"time-limit", required_argument, NULL, 't'},
                                            {"progress", no_argument, NULL, 'p'},
                                            {"json", no_argument, NULL, 'j'},
                                            {"help", no_argument, NULL, 'h'},
                                            {NULL, 0, NULL, 0}};
    int option, status;

    optind = 0;
    while ((option = getopt_long(argc, argv, "o:h", options, NULL)) != -1)
        switch (option) {
        case 'o':
            arguments->output = optarg;
            break;
        case 'a':
            arguments->options.all_roots = true;
            break;
        case 't':
            status = by_cli_time_limit(optarg, &arguments->options.time_limit_s);
            if (status >= 0)
                return status;
            break;
        case 'p':
            arguments->progress = true;
            break;
        case 'j':
            arguments->json = true;
            break;
        case 'h':
            fputs(help, stdout);
            return BY_EXIT_DONE;
        default:
            return by_cli_fail(BY_EXIT_USAGE, "`banyan bound --help` lists the options");
        }
    if (optind + 1 != argc)
        return by_cli_fail(BY_EXIT_USAGE, "%s; `banyan bound --help` says more",
                           optind == argc ? "name a topology file" : "name one topology file only");
    arguments->topology = argv[optind];
    if (arguments->output && strcmp(arguments->output, "-") == 0)
        return by_cli_fail(BY_EXIT_USAGE, "standard output holds the bounds; name a file for the plan");
    return -1;
}

/* Checks a plan with the verifier. The rate of a plan that fails does not count. */
static int check_plan(const struct by_plan *plan, const struct by_topology *topology,
                      struct by_problem *problem)
{
    struct by_verify_report report;

    by_cli_check(plan, topology, &report);
    if (report.verdict != BY_VERDICT_INVALID)
        return 0;
    return by_problem_set(problem, BY_ESTATE, (struct by_place){0, 0},
                          "the planner made a wrong plan, please report it: %.200s", report.reason);
}

/*
 * Writes the trees of the rate. If switches can do more than forward, the proof that trees carry no
 * more does not hold for the fabric, but the cut does.
 */
static int write_plan(struct by_bound *bound, const struct by_topology *topology, const char *path)
{
    struct by_plan *plan = bound->allreduce.rate.plan;
    struct by_output output;

    if (plan->tree_count == 0)
        return by_cli_fail(BY_EXIT_NO, "there are no trees to write: %s", bound->unreached);
    if (bound->capable_count > 0) {
        by_certificate_free(plan->proof);
        plan->proof = NULL;
        plan->optimum = plan->cut_exiting;
    }
    if (!by_cli_create(&output, path))
        return BY_EXIT_ENVIRONMENT;
    return by_cli_finish(&output, by_plan_write(plan, topology, output.stream) == 0);
}

int by_command_bound(int argc, char **argv)
{
    struct bound_arguments arguments = {.options = {.check = check_plan}};
    struct by_cli_progress progress;
    struct by_topology *topology;
    struct by_problem problem = {0};
    struct by_bound *bound;
    int status = read_arguments(argc, argv, &arguments), error;

    if (status >= 0)
        return status;
    topology = by_cli_topology(arguments.topology);
    if (!topology)
        return BY_EXIT_USAGE;
    by_cli_progress_start(&progress, "bound", arguments.progress);
    arguments.options.stage = &progress.stage;
    error = by_bound_make(topology, &arguments.options, &bound, &problem);
    by_cli_progress_stop(&progress);
    if (error == BY_ESTATE)
        status = by_cli_fail(BY_EXIT_ENVIRONMENT, "%s: %s", arguments.topology, problem.text);
    else if (error)
        status = by_cli_refuse_work(arguments.topology, error, &problem);
    if (!error) {
        if (arguments.json)
            by_bound_print_json(bound, topology);
        else
            by_bound_print_people(bound, topology);
        status = arguments.output ? write_plan(bound, topology, arguments.output) : BY_EXIT_DONE;
        by_bound_free(bound);
    }
    by_topology_free(topology);
    return status;
}
