/*
 * Plans of all-to-all, scatter and gather. See exchange.h. The rate is that of a maximum concurrent
 * flow: all messages at once, each link with its own capacity. Such a flow is a steady state
 * without limits of ports, so control/study/steady finds it and control/verify proves it.
 */
#include "control/cli/exchange.h"

#include <stdlib.h>
#include <string.h>

#include "control/base/clock.h"
#include "control/base/fraction.h"
#include "control/cli/check.h"
#include "control/cli/cli.h"
#include "control/cli/progress.h"
#include "control/cli/runs.h"
#include "control/plan/shares.h"
#include "control/study/series/rational.h"
#include "control/study/steady/matrix.h"
#include "control/study/steady/steady.h"
#include "control/verify/series.h"

/* Most links of a bottleneck in text output (count). */
#define LINKS_NAMED 6u

static const char *const names[] = {"all-to-all", "scatter", "gather"};

struct exchange {
    const struct by_exchange_request *request;
    const struct by_topology *topology;
    uint32_t *ranks;
    uint32_t count;
    struct by_fraction *matrix;
    struct by_series *series;
    struct by_series_verdict verdict;
    mpq_t rate, carried; /* see find_rates */
    double planned_s, verified_s;
};

const char *by_plan_collective_name(unsigned collective)
{
    if (collective >= BY_EXCHANGE_ALL_TO_ALL && collective < BY_EXCHANGE_END)
        return names[collective - BY_EXCHANGE_ALL_TO_ALL];
    return by_collective_name(collective);
}

static bool is_rooted(const struct exchange *work)
{
    return work->request->exchange != BY_EXCHANGE_ALL_TO_ALL;
}

/* Reads the sizes of messages that differ. Returns the exit status, or -1. */
static int read_sizes(struct exchange *work)
{
    const struct by_exchange_request *request = work->request;
    struct by_problem problem = {0};
    int64_t *shares = NULL;

    if (request->matrix) {
        struct by_fraction *matrix = NULL;

        if (by_matrix_read(request->matrix, work->topology, work->ranks, work->count, &matrix, &problem) != 0)
            return by_cli_refuse(request->matrix, &problem);
        work->matrix = matrix;
        return -1;
    }
    if (!request->shares)
        return -1;
    if (by_shares_read(request->shares, work->topology, NULL, &shares, &problem) != 0)
        return by_cli_refuse(request->shares, &problem);
    work->matrix = by_alloc(work->count, sizeof(*work->matrix));
    for (uint32_t i = 0; i < work->count; i++)
        work->matrix[i] = (struct by_fraction){shares[work->ranks[i]], 1};
    free(shares);
    return -1;
}

/* Finds the routes. Returns the exit status, or -1. */
static int find_routes(struct exchange *work)
{
    const struct by_exchange_request *request = work->request;
    uint32_t root = (uint32_t)request->root;
    bool scatter = request->exchange == BY_EXCHANGE_SCATTER, gather = request->exchange == BY_EXCHANGE_GATHER;
    struct by_steady_problem problem = {
        .topology = work->topology,
        .operation = work->matrix ? BY_SERIES_EXCHANGE
                     : scatter    ? BY_SERIES_SCATTER
                                  : BY_SERIES_GOSSIP,
        .ports = BY_SERIES_MANY_PORTS,
        .source_count = scatter ? 1 : work->count,
        .sources = scatter ? &root : work->ranks,
        .target_count = gather ? 1 : work->count,
        .targets = gather ? &root : work->ranks,
        .matrix = work->matrix,
        .deadline = request->time_limit_s > 0 ? by_plan_clock() + request->time_limit_s : 0};
    struct by_problem trouble = {0};
    double start = by_plan_clock();
    int error = by_steady_make(&problem, &work->series, &trouble);

    work->planned_s = by_plan_clock() - start;
    if (error)
        return by_cli_refuse_work(request->file, error, &trouble);
    start = by_plan_clock();
    by_series_check(work->series, work->topology, &work->verdict);
    work->verified_s = by_plan_clock() - start;
    if (work->verdict.verdict == BY_VERDICT_INVALID)
        return by_cli_fail(BY_EXIT_ENVIRONMENT, "the planner made a wrong plan, please report it: %s",
                           work->verdict.reason);
    return -1;
}

/*
 * The rate of collectives with messages of one size is, as in MPI's and NCCL's programs, the data
 * of a rank (all-to-all) or of the root over time, the part that does not move included. With a
 * matrix or shares it is the sum of all messages over time. `carried` is that sum in any case.
 */
static void find_rates(struct exchange *work)
{
    const struct by_series *series = work->series;

    for (uint32_t m = 0; m < series->message_count; m++)
        mpq_add(work->carried, work->carried, series->messages[m].size);
    mpq_mul(work->carried, work->carried, series->throughput);
    mpq_set_ui(work->rate, work->count, 1);
    mpq_mul(work->rate, work->rate, series->throughput);
    if (work->matrix)
        mpq_set(work->rate, work->carried);
}

static void print_rate(FILE *out, const char *what, const mpq_t rate, const char *unit)
{
    fprintf(out, "  %-11s %.6g %s", what, mpq_get_d(rate), unit);
    if (mpz_cmp_ui(mpq_denref(rate), 1) != 0)
        gmp_fprintf(out, " (%Qd)", rate);
}

/* Prints the links with a price: a faster plan needs more of their capacity. */
static void print_bottleneck(FILE *out, const struct exchange *work)
{
    const struct by_series *series = work->series;

    fprintf(out, "  bottleneck  %u link%s:", series->price_count, by_plural(series->price_count));
    for (uint32_t p = 0; p < series->price_count && p < LINKS_NAMED; p++)
        fprintf(out, "%s %s-%s", p ? "," : "", work->topology->nodes[series->prices[p].node].name,
                work->topology->nodes[series->prices[p].to].name);
    fputs(series->price_count > LINKS_NAMED ? ", ...\n" : "\n", out);
}

static void print_people(FILE *out, const struct exchange *work)
{
    const struct by_series *series = work->series;
    const struct by_topology *topology = work->topology;
    bool optimal = work->verdict.verdict == BY_VERDICT_OPTIMAL;

    fprintf(out, "%s on %s: %u compute nodes, %u switches\n",
            by_plan_collective_name(work->request->exchange), topology->name, work->count,
            topology->node_count - work->count);
    print_rate(out, optimal ? "achieved" : "at least", work->rate, topology->unit);
    fprintf(out, "%s\n", optimal ? ": optimal, no schedule can be faster" : "");
    fprintf(out, "  which is    %s over time\n",
            work->matrix      ? "the sum of all messages"
            : is_rooted(work) ? "the data of the root, with its own part,"
                              : "the data of one rank, with its own part,");
    print_rate(out, "carries", work->carried, topology->unit);
    fputs(" between all ranks together\n", out);
    fprintf(out, "  proof       prices of links: at these, each message costs at least its cheapest path\n");
    print_bottleneck(out, work);
    gmp_fprintf(out, "  routes      %u for %u messages, of up to %u links\n", series->lane_count,
                series->message_count, by_series_depth(series));
    fprintf(out, "  runs        on tables: no: %s\n", BY_CLI_ROUTES_RUN_NOT);
    fprintf(out, "  planned in  %.3g ms\n", 1e3 * work->planned_s);
    fprintf(out, "  verified    %s, in %.3g ms; memory %.3g MiB\n", by_verdict_name(work->verdict.verdict),
            1e3 * work->verified_s, (double)by_cli_memory() / 1048576);
}

static void print_number(const char *key, const mpq_t value)
{
    printf(" \"%s\": ", key);
    by_series_write_rational(stdout, value);
    printf(", \"%s_float\": %.12g,\n", key, mpq_get_d(value));
}

static void print_json(const struct exchange *work)
{
    const struct by_series *series = work->series;

    printf("{\"collective\": \"%s\", \"compute_nodes\": %u, \"unit\": \"",
           by_plan_collective_name(work->request->exchange), work->count);
    for (const char *c = work->topology->unit; *c; c++)
        printf(*c == '"' || *c == '\\' ? "\\%c" : (unsigned char)*c < ' ' ? "\\u%04x" : "%c", *c);
    printf("\",\n");
    if (is_rooted(work))
        printf(" \"root\": \"%s\",\n", work->topology->nodes[work->request->root].name);
    print_number("achieved", work->rate);
    print_number("carried", work->carried);
    print_number("throughput", series->throughput);
    printf(" \"rate_of\": \"%s\", \"bound_of\": \"schedules\", \"proof\": \"prices\",\n",
           work->matrix      ? "messages"
           : is_rooted(work) ? "root"
                             : "rank");
    printf(" \"message_count\": %u, \"route_count\": %u, \"links\": %u, \"bottleneck\": %u,\n",
           series->message_count, series->lane_count, by_series_depth(series), series->price_count);
    printf(" \"verdict\": \"%s\", \"verify_seconds\": %.6f,\n", by_verdict_name(work->verdict.verdict),
           work->verified_s);
    printf(" \"runs\": {\"tables\": false, \"reason\": \"%s\"},\n", BY_CLI_ROUTES_RUN_NOT);
    printf(" \"peak_memory\": %lld,\n \"seconds\": {\"total\": %.6f}}\n", by_cli_memory(), work->planned_s);
}

static int write_routes(const struct exchange *work)
{
    struct by_output output;

    if (!by_cli_create(&output, work->request->output))
        return BY_EXIT_ENVIRONMENT;
    return by_cli_finish(&output, by_series_write(work->series, work->topology, output.stream) == 0);
}

int by_cli_exchange(const struct by_topology *topology, const struct by_exchange_request *request)
{
    struct exchange work = {.request = request, .topology = topology};
    bool standard = request->output && strcmp(request->output, "-") == 0;
    int status;

    mpq_inits(work.rate, work.carried, NULL);
    work.ranks = by_alloc(topology->node_count, sizeof(*work.ranks));
    for (uint32_t i = 0; i < topology->node_count; i++)
        if (topology->nodes[i].compute)
            work.ranks[work.count++] = i;
    status = read_sizes(&work);
    if (status < 0)
        status = find_routes(&work);
    if (status < 0) {
        find_rates(&work);
        if (request->json)
            print_json(&work);
        else
            print_people(standard ? stderr : stdout, &work);
        status = request->output ? write_routes(&work) : BY_EXIT_DONE;
    }
    mpq_clears(work.rate, work.carried, NULL);
    by_series_free(work.series);
    free(work.matrix);
    free(work.ranks);
    return status;
}
