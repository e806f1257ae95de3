/*
 * The command `banyan steady`: computes the best throughput of a series of scatters, gossips or
 * reductions, and a periodic schedule that reaches it. The schedule is verified, executed and
 * written. Single-threaded.
 */
#include "control/study/steady/steady.h"

#include <stdlib.h>
#include <string.h>

#include "control/base/clock.h"
#include "control/base/fraction.h"
#include "control/cli/cli.h"
#include "control/cli/steady.h"
#include "control/study/series/rational.h"
#include "offload/base/errors.h"

/* Most --size options of a command line (count). */
#define SIZES_MAX 4096u
/* Largest period for --period (units of time). */
#define PERIOD_MAX 1000000000000u

struct steady_arguments {
    const char *topology, *output;
    enum by_series_operation operation;
    const char *sizes[SIZES_MAX];
    uint32_t size_count;
    char *sources, *targets, *order; /* names separated by commas, or NULL */
    enum by_series_ports ports;
    uint64_t period, periods, time_limit;
    enum by_steady_balance balance;
    bool commutative, json;
};

/* The nodes of these names. */
struct steady_request {
    uint32_t *sources, *targets, *holders;
    struct by_steady_size *sizes;
    struct by_steady_problem problem;
};

/* Appends names to a comma-separated list. */
static void append(char **list, const char *names)
{
    size_t before = *list ? strlen(*list) : 0;

    *list = by_realloc(*list, before + strlen(names) + 2, 1);
    snprintf(*list + before, strlen(names) + 2, "%s%s", before ? "," : "", names);
}

static int add_source(void *object, const char *names, struct by_option_why *why)
{
    (void)why;
    append(&((struct steady_arguments *)object)->sources, names);
    return 0;
}

static int add_target(void *object, const char *names, struct by_option_why *why)
{
    (void)why;
    append(&((struct steady_arguments *)object)->targets, names);
    return 0;
}

static int add_holder(void *object, const char *names, struct by_option_why *why)
{
    (void)why;
    append(&((struct steady_arguments *)object)->order, names);
    return 0;
}

static const char *const balance_words[] = {"?", "never", "cheap", "always"};

#define AT(member) BY_OPTION_AT(struct steady_arguments, member)

static const struct by_option rows[] = {
    {BY_ROW_CHOICE(0, "op", "OPERATION", AT(operation), BY_SERIES_SCATTER, BY_SERIES_REDUCE,
                   "scatter: a message from one source to each target; gossip: from each source to each "
                   "target; reduce: one value of each holder, combined, to the target"),
     .word = by_series_operation_name},
    {BY_ROW_CALL(0, "source", "NODE", add_source,
                 "send from NODE; for a gossip several, or all compute nodes (default)")},
    {BY_ROW_CALL(0, "target", "NODE", add_target,
                 "send to NODE; several for scatter and gossip, or all compute nodes (default)")},
    {BY_ROW_CALL(0, "order", "NODE,...", add_holder,
                 "reduce: the holders of the values in the operator's order (default: all compute nodes)")},
    {BY_ROW_FLAG(
        0, "commutative", AT(commutative),
        "reduce: allow values to be combined in any order (more than 8 values: of equal size, combined where values are held, or in no time)")},
    {BY_ROW_CHOICE(0, "balance", "WHEN", AT(balance), BY_BALANCE_NEVER, BY_BALANCE_ALWAYS,
                   "reduce: of the best schedules, choose one that loads the busiest processor least: "
                   "always, never, or where it is cheap (default), in a period that is at most 16 times as "
                   "long"),
     .words = balance_words, .optional = true},
    {BY_ROW_CHOICE(0, "ports", "MODEL", AT(ports), BY_SERIES_ONE_PORT, BY_SERIES_MANY_PORTS,
                   "one: all links of a node share its ports (default); host: only those of compute nodes; "
                   "many: every link works independently"),
     .word = by_series_ports_name},
    {BY_ROW_TEXT(0, "size", "[WHAT=]SIZE", AT(sizes),
                 "the size of messages (default 1); WHAT: a receiver (scatter, gossip), or for reduce K-M, "
                 "the partial results of values K to M; may be repeated"),
     .count = AT(size_count)},
    {BY_ROW_NUMBER(0, "period", "T", AT(period), 1, PERIOD_MAX,
                   "use whole numbers of the same trees or routes that fit into T units of time, %r")},
    {BY_ROW_NUMBER(0, "run", "K", AT(periods), 1, BY_SERIES_PERIODS_MAX,
                   "execute K periods from rest to rest, %r")},
    {BY_ROW_NUMBER(0, "time-limit", "S", AT(time_limit), 1, 86400, "fail after S seconds, %r")},
    {BY_ROW_TEXT('o', "output", "FILE", AT(output), "write the schedule (- for standard output)")},
    {BY_ROW_FLAG(0, "json", AT(json), "print the result as one JSON object")},
    {0}};

static const struct by_options command_line = {
    .program = "banyan steady",
    .usage = "banyan steady TOPO --op scatter|gossip|reduce [options]",
    .about =
        "Computes the best throughput of a long series of operations on the fabric in TOPO (topology "
        "JSON, - for standard input), where a node sends one message and receives one at a time, and a "
        "periodic schedule that reaches it. A link takes 1/bandwidth for a message of size 1, a node its "
        "task_time for one reduction.",
    .rows = rows,
    .least = 1,
    .most = 1,
    .operands = "a topology file"};

/* Refuses options that the operation does not use. */
static int check_options(const struct steady_arguments *arguments)
{
    bool reduce = arguments->operation == BY_SERIES_REDUCE;
    const char *idle = reduce && arguments->sources        ? "--source"
                       : !reduce && arguments->order       ? "--order"
                       : !reduce && arguments->commutative ? "--commutative"
                       : !reduce && arguments->balance     ? "--balance"
                                                           : NULL;

    if (idle)
        return by_cli_fail(BY_EXIT_USAGE, "%s has no meaning for a %s; remove it", idle,
                           by_series_operation_name(arguments->operation));
    if (arguments->operation == BY_SERIES_SCATTER && !arguments->sources)
        return by_cli_fail(BY_EXIT_USAGE, "a scatter requires a --source");
    if (reduce && !arguments->targets)
        return by_cli_fail(BY_EXIT_USAGE, "a reduce requires a --target, where its results go");
    if (arguments->json && arguments->output && strcmp(arguments->output, "-") == 0)
        return by_cli_fail(
            BY_EXIT_USAGE,
            "standard output cannot hold both the result (--json) and the schedule (-o -); name a file");
    return -1;
}

static int read_arguments(int argc, char **argv, struct steady_arguments *arguments)
{
    int status;

    *arguments = (struct steady_arguments){.ports = BY_SERIES_ONE_PORT};
    status = by_options_read(&command_line, arguments, &argc, argv);
    if (status >= 0)
        return status;
    arguments->topology = argv[1];
    if (!arguments->operation)
        return by_cli_fail(BY_EXIT_USAGE, "name the operation with --op: scatter, gossip or reduce");
    return check_options(arguments);
}

/*
 * Finds the nodes of a list of names; without a list, all compute nodes. Returns the exit status or
 * -1.
 */
static int read_nodes(const struct by_topology *topology, const char *file, const char *option,
                      const char *list, uint32_t **nodes, uint32_t *count)
{
    char *copy = by_copy_text(list ? list : ""), *rest = copy, *name;
    uint32_t room = 0;
    int status = -1;

    *nodes = NULL;
    *count = 0;
    for (uint32_t i = 0; i < topology->node_count && !list; i++)
        if (topology->nodes[i].compute) {
            BY_GROW(*nodes, *count, room);
            (*nodes)[(*count)++] = i;
        }
    while (status < 0 && (name = strsep(&rest, ",")) != NULL) {
        int64_t node = by_topology_find(topology, name);

        if (!list || *name == 0)
            continue;
        if (node < 0) {
            status = by_cli_fail(BY_EXIT_USAGE, "%s: %s has no node '%.60s'", option, file, name);
            break;
        }
        BY_GROW(*nodes, *count, room);
        (*nodes)[(*count)++] = (uint32_t)node;
    }
    free(copy);
    return status;
}

/* Parses one --size option. */
static int read_size(const struct by_topology *topology, const struct steady_arguments *arguments,
                     const char *text, uint32_t values, struct by_steady_size *size)
{
    const char *equals = strrchr(text, '='), *number = equals ? equals + 1 : text;
    bool reduce = arguments->operation == BY_SERIES_REDUCE;
    char what[64], extra;

    *size = (struct by_steady_size){.first = BY_SERIES_NONE};
    if (by_fraction_parse(number, strlen(number), &size->size) != 0 || size->size.num == 0)
        return by_cli_fail(
            BY_EXIT_USAGE,
            "--size %.80s: the size must be a positive integer, decimal or fraction such as 3, "
            "2.5 or 5/3",
            text);
    if (!equals)
        return -1;
    snprintf(what, sizeof(what), "%.*s", (int)(equals - text), text);
    if (reduce) {
        if (sscanf(what, "%u-%u%c", &size->first, &size->last, &extra) != 2 || size->first > size->last ||
            size->last >= values)
            return by_cli_fail(BY_EXIT_USAGE,
                               "--size %.80s: name partial results as K-M, with values numbered from 0 to %u",
                               text, values - 1);
    } else {
        int64_t node = by_topology_find(topology, what);

        if (node < 0)
            return by_cli_fail(BY_EXIT_USAGE, "--size %.80s: %s has no node '%.60s'", text,
                               arguments->topology, what);
        size->first = size->last = (uint32_t)node;
    }
    return -1;
}

static int read_request(const struct by_topology *topology, const struct steady_arguments *arguments,
                        struct steady_request *request)
{
    struct by_steady_problem *problem = &request->problem;
    const char *file = arguments->topology;
    bool reduce = arguments->operation == BY_SERIES_REDUCE;
    int status = -1;

    *problem = (struct by_steady_problem){
        .topology = topology,
        .operation = arguments->operation,
        .ports = arguments->ports,
        .commutative = arguments->commutative,
        .balance = arguments->balance ? arguments->balance : BY_BALANCE_CHEAP,
        .size_count = arguments->size_count,
        .deadline = arguments->time_limit ? by_plan_clock() + (double)arguments->time_limit : 0};
    if (!reduce)
        status = read_nodes(topology, file, "--source", arguments->sources, &request->sources,
                            &problem->source_count);
    if (status < 0)
        status = read_nodes(topology, file, "--target", arguments->targets, &request->targets,
                            &problem->target_count);
    if (status < 0 && reduce)
        status = read_nodes(topology, file, "--order", arguments->order, &request->holders,
                            &problem->holder_count);
    request->sizes = by_alloc(arguments->size_count, sizeof(*request->sizes));
    for (uint32_t i = 0; i < arguments->size_count && status < 0; i++)
        status =
            read_size(topology, arguments, arguments->sizes[i], problem->holder_count, &request->sizes[i]);
    problem->sources = request->sources;
    problem->targets = request->targets;
    problem->holders = request->holders;
    problem->sizes = request->sizes;
    return status;
}

static int write_file(const struct by_series *series, const struct by_topology *topology, const char *path)
{
    struct by_output output;

    if (!by_cli_create(&output, path))
        return BY_EXIT_ENVIRONMENT;
    return by_cli_finish(&output, by_series_write(series, topology, output.stream) == 0);
}

/* Computes the best schedule; with --period, in that period instead of the least one. */
static int make(const struct steady_arguments *arguments, const struct by_steady_problem *problem,
                struct by_series **series, mpq_t loss, struct by_problem *trouble)
{
    struct by_series *best;
    mpz_t period;
    int error = by_steady_make(problem, series, trouble);

    if (error || !arguments->period)
        return error;
    best = *series;
    mpz_init_set_ui(period, arguments->period);
    error = by_steady_fix(best, problem->topology, period, series, loss, trouble);
    mpz_clear(period);
    by_series_free(best);
    return error;
}

/* Whether the optimum allows more operations in the period. */
static bool falls_short(const struct by_series *series)
{
    mpq_t more;
    bool short_of;

    mpq_init(more);
    mpq_set_ui(more, 1, 1);
    mpz_set(mpq_denref(more), series->period);
    mpq_add(more, more, series->throughput);
    short_of = mpq_cmp(more, series->optimum) <= 0;
    mpq_clear(more);
    return short_of;
}

/*
 * Balancing spreads a reduction over more trees, and in a short period their amounts may round down
 * to 0. So, unless balance was requested, the schedule without it is tried too.
 */
static int make_best(const struct steady_arguments *arguments, struct by_steady_problem *problem,
                     struct by_cli_steady *result, struct by_series **series)
{
    struct by_problem trouble = {0};
    struct by_series *other = NULL;
    int error = make(arguments, problem, series, result->loss, &trouble);
    mpq_t loss;

    mpq_init(loss);
    if (arguments->period && problem->operation == BY_SERIES_REDUCE && !arguments->balance &&
        !by_steady_never_balances(problem) && (error == BY_EINVAL || (!error && falls_short(*series)))) {
        problem->balance = BY_BALANCE_NEVER;
        if (make(arguments, problem, &other, loss, &trouble) == 0 &&
            (error || mpq_cmp(other->throughput, (*series)->throughput) > 0)) {
            by_series_free(*series);
            *series = other;
            other = NULL;
            mpq_set(result->loss, loss);
            error = 0;
        }
    }
    by_series_free(other);
    mpq_clear(loss);
    return error ? by_cli_refuse_work(arguments->topology, error, &trouble) : -1;
}

/* Checks, executes, prints and writes the schedule. */
static int finish(const struct steady_arguments *arguments, struct by_cli_steady *result)
{
    struct by_problem trouble = {0};
    bool standard = arguments->output && strcmp(arguments->output, "-") == 0;

    by_series_check(result->series, result->topology, &result->verdict);
    if (result->verdict.verdict == BY_VERDICT_INVALID)
        return by_cli_fail(BY_EXIT_ENVIRONMENT, "the schedule is wrong, please report it: %s",
                           result->verdict.reason);
    result->has_run = arguments->periods > 0;
    if (result->has_run && by_series_run(result->series, result->topology, (uint32_t)arguments->periods,
                                         &result->run, &trouble) != 0)
        return by_cli_fail(BY_EXIT_ENVIRONMENT, "the schedule cannot run, please report it: %s",
                           trouble.text);
    if (arguments->json)
        by_cli_steady_json(result, stdout);
    else
        by_cli_steady_people(result, standard ? stderr : stdout);
    return arguments->output ? write_file(result->series, result->topology, arguments->output) : BY_EXIT_DONE;
}

int by_command_steady(int argc, char **argv)
{
    struct steady_arguments arguments;
    struct by_topology *topology = NULL;
    struct by_series *series = NULL;
    struct steady_request request = {0};
    struct by_cli_steady result = {0};
    int status = read_arguments(argc, argv, &arguments);
    double start = by_plan_clock();

    mpq_init(result.loss);
    by_series_report_init(&result.run);
    if (status < 0) {
        topology = by_cli_topology(arguments.topology);
        status = topology ? read_request(topology, &arguments, &request) : BY_EXIT_USAGE;
    }
    if (status < 0)
        status = make_best(&arguments, &request.problem, &result, &series);
    if (status < 0) {
        result.topology = topology;
        result.series = series;
        result.fixed = arguments.period > 0;
        result.seconds = by_plan_clock() - start;
        status = finish(&arguments, &result);
    }
    mpq_clear(result.loss);
    by_series_report_clear(&result.run);
    by_series_free(series);
    by_topology_free(topology);
    free(request.sources);
    free(request.targets);
    free(request.holders);
    free(request.sizes);
    free(arguments.sources);
    free(arguments.targets);
    free(arguments.order);
    return status;
}
