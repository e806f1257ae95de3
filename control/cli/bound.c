/*
 * The command `banyan bound`: upper bounds for the rate of any schedule, for each collective, and
 * the rates of trees. A rate counts only after its trees are verified. Single-threaded.
 */
#include "control/study/bound/bound.h"

#include <errno.h>
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

#define AT(member) BY_OPTION_AT(struct bound_arguments, member)

static const struct by_option rows[] = {
    {BY_ROW_TEXT('o', "output", "PLAN", AT(output),
                 "write the trees of the Reduce-Broadcast rate, an allreduce without working switches, as a "
                 "plan file")},
    {BY_ROW_FLAG(0, "all-roots", AT(options.all_roots),
                 "make the trees of every root of broadcast and reduce (default: up to 16 compute nodes)")},
    {BY_CLI_TIME_LIMIT(options.time_limit_s, "after S seconds, fail with exit status 3")},
    {BY_CLI_PROGRESS(progress)},
    {BY_ROW_FLAG(0, "json", AT(json), "print the result as one JSON object")},
    {0}};

static const struct by_options command_line = {
    .program = "banyan bound",
    .usage = "banyan bound TOPO [options]",
    .about =
        "Prints for each collective the rate that no schedule on the fabric in TOPO (topology JSON, - for "
        "standard input) can exceed, the rate that banyan's trees reach, and what switches must be able "
        "to do for it. Rates are algorithm bandwidths: total data size over time. All are exact "
        "fractions, with the cut, partition or prices that prove them.",
    .rows = rows,
    .least = 1,
    .most = 1,
    .operands = "a topology file"};

/* Parses the arguments. Returns -1 to continue, else the exit status. */
static int read_arguments(int argc, char **argv, struct bound_arguments *arguments)
{
    int status = by_options_read(&command_line, arguments, &argc, argv);

    if (status >= 0)
        return status;
    arguments->topology = argv[1];
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
        return by_cli_fail(BY_EXIT_NO, "no trees to write: %s", bound->unreached);
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
