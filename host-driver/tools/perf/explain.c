/*
 * banyan-perf --explain, which `banyan explain` runs: queries the path of each operation
 * (banyan_context_query), with the code that decides at a post. The caller supplies the optimum of
 * the plan. The prediction adds the overhead of packets, or uses the rounds between hosts.
 */
#include "host-driver/tools/perf/explain.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host-driver/fallback/team.h"
#include "host-driver/fallback/work.h"
#include "host-driver/tools/perf/report.h"
#include "host-driver/tools/perf/world.h"
#include "offload/wire/types.h"

/* Overhead of a packet: Ethernet, IPv4, UDP and banyan's headers, and on the cable preamble,
 * checksum and gap (bytes). */
#define HEADER_BYTES (82u + 24u)

struct explaining {
    const struct perf_options *options;
    struct banyan_context *context;
    uint64_t *counts;
    unsigned said; /* number of operations so far */
};

static const char *setting_value(const char *wanted, const char **origin)
{
    const char *name, *value;

    for (uint32_t i = 0; banyan_setting(i, &name, NULL, NULL, &value, origin) == BANYAN_OK; i++)
        if (strcmp(name, wanted) == 0)
            return value;
    *origin = "";
    return "";
}

/* Sizes the operation for `bytes` in total, as main.c does. Returns its exact bytes. */
static uint64_t size_query(const struct explaining *e, uint64_t bytes, struct banyan_query *query)
{
    const uint64_t *offsets = by_collective_is_sharded(query->collective) ? e->options->offsets : NULL;
    uint64_t unit = banyan_dtype_size(query->dtype);

    if (query->collective == BANYAN_BARRIER)
        return 0;
    if (by_collective_is_sharded(query->collective))
        unit *= offsets != NULL ? offsets[query->rank_count] : query->rank_count;
    query->count = bytes / unit;
    for (uint32_t rank = 0; offsets != NULL && rank < query->rank_count; rank++)
        e->counts[rank] = (offsets[rank + 1] - offsets[rank]) * query->count;
    query->counts = offsets != NULL ? e->counts : NULL;
    return query->count * unit;
}

/* Returns the predicted microseconds between hosts, from --alpha and --beta; 0: unknown. */
static double between_hosts_us(const struct explaining *e, const struct banyan_query *query, uint64_t *rounds)
{
    struct by_call call = {.collective = (uint8_t)query->collective,
                           .op = (uint8_t)query->op,
                           .dtype = (uint8_t)query->dtype,
                           .count = query->count};
    const char *origin, *way = setting_value("BANYAN_FALLBACK", &origin);
    struct by_team team;

    *rounds = 0;
    if (e->options->alpha_us <= 0 || e->options->beta_ns <= 0 ||
        by_team_plan(&team, query->rank, query->rank_count,
                     strcmp(way, "ring") == 0  ? BY_WAY_RING
                     : strcmp(way, "rhd") == 0 ? BY_WAY_CUBE
                                               : BY_WAY_CIRCULANT) != 0)
        return 0;
    if (query->collective == BANYAN_BARRIER)
        call.dtype = BY_DTYPE_U8;
    /* with unequal shares only the total matters */
    if (query->counts != NULL)
        call.count = e->options->offsets[query->rank_count] * query->count / query->rank_count;
    team.latency_ns = (uint64_t)(e->options->alpha_us * 1e3 + 0.5);
    team.gap_ps = (uint64_t)(e->options->beta_ns * 1e3 + 0.5);
    return (double)by_work_predict_ns(&team, &call, rounds) / 1e3;
}

struct forecast {
    double optimum_us, predicted_us; /* 0: unknown */
    uint64_t rounds;
};

static struct forecast forecast_of(const struct explaining *e, const struct banyan_query *query,
                                   uint64_t bytes)
{
    double gbps = e->options->optimum[query->collective];
    struct forecast forecast = {.optimum_us = gbps > 0 ? (double)bytes / gbps / 1e3 : 0};

    if (query->path == BANYAN_HOSTS)
        forecast.predicted_us = between_hosts_us(e, query, &forecast.rounds);
    else if (query->path == BANYAN_TREES && query->packet_bytes > 0)
        forecast.predicted_us =
            forecast.optimum_us * (query->packet_bytes + HEADER_BYTES) / query->packet_bytes;
    return forecast;
}

static const char *path_name(banyan_path_t path)
{
    return path == BANYAN_TREES ? "offloaded" : path == BANYAN_HOSTS ? "between hosts" : "fails";
}

static void print_people(const struct explaining *e, const struct banyan_query *query, uint64_t bytes)
{
    struct forecast forecast = forecast_of(e, query, bytes);
    const char *origin, *transport = setting_value("BANYAN_TRANSPORT", &origin);

    if (e->options->transport != NULL)
        transport = e->options->transport;
    printf("%s%s of %" PRIu64 " bytes", by_collective_name(query->collective),
           query->counts != NULL ? "v" : "", bytes);
    if (query->collective != BANYAN_BARRIER)
        printf(" (%s%s%s)", by_collective_reduces(query->collective) ? banyan_op_name(query->op) : "",
               by_collective_reduces(query->collective) ? " of " : "", banyan_dtype_name(query->dtype));
    printf(", rank %u of %u\n  path       %s: %s\n", query->rank, query->rank_count, path_name(query->path),
           query->reason);
    if (query->path == BANYAN_TREES && query->tree_count > 0)
        printf("  trees      %u: %s; %" PRIu64 " packets of at most %u bytes\n", query->tree_count,
               query->trees, query->packet_count, query->packet_bytes);
    if (query->path == BANYAN_TREES)
        printf("  transport  %s%s\n", transport,
               strcmp(transport, "auto") == 0
                   ? ": afxdp, or udp where links are virtual or afxdp does not work"
                   : "");
    if (forecast.optimum_us > 0)
        printf("  optimum    %.1f us: %g GB/s\n", forecast.optimum_us,
               e->options->optimum[query->collective]);
    if (forecast.rounds > 0)
        printf("  predicted  %.1f us: %" PRIu64 " rounds of messages\n", forecast.predicted_us,
               forecast.rounds);
    else if (forecast.predicted_us > 0)
        printf("  predicted  %.1f us, with headers, before round trips\n", forecast.predicted_us);
    else if (query->path == BANYAN_HOSTS)
        printf("  predicted  after the ranks have met and measured; or with --alpha and --beta\n");
    else if (query->path == BANYAN_TREES && query->collective != BANYAN_BARRIER)
        printf("  predicted  unknown: no optimum of the plan is given (--optimum, or banyan explain TOPO "
               "PLAN)\n");
}

static void print_number(const char *name, double value)
{
    if (value > 0)
        printf(", \"%s\": %.3f", name, value);
    else
        printf(", \"%s\": null", name);
}

static void print_json(const struct explaining *e, const struct banyan_query *query, uint64_t bytes)
{
    struct forecast forecast = forecast_of(e, query, bytes);

    printf(
        "%s\n  {\"collective\": \"%s\", \"unequal\": %s, \"bytes\": %" PRIu64
        ", \"dtype\": \"%s\", \"op\": \"%s\", \"root\": %u, \"rank\": %u, \"ranks\": %u, \"path\": \"%s\", "
        "\"reason\": ",
        e->said > 0 ? "," : "", by_collective_name(query->collective),
        query->counts != NULL ? "true" : "false", bytes, banyan_dtype_name(query->dtype),
        by_collective_reduces(query->collective) ? banyan_op_name(query->op) : "none", query->root,
        query->rank, query->rank_count,
        query->path == BANYAN_TREES   ? "trees"
        : query->path == BANYAN_HOSTS ? "hosts"
                                      : "nowhere");
    perf_print_text(stdout, query->reason);
    printf(", \"trees\": %u, \"packets\": %" PRIu64 ", \"packet_bytes\": %u, \"rounds\": %" PRIu64,
           query->tree_count, query->packet_count, query->packet_bytes, forecast.rounds);
    print_number("optimum_us", forecast.optimum_us);
    print_number("predicted_us", forecast.predicted_us);
    printf("}");
}

static enum perf_exit explain_one(struct explaining *e, struct banyan_query *query, uint64_t bytes)
{
    bytes = size_query(e, bytes, query);
    if (banyan_context_query(e->context, e->options->job, query) != BANYAN_OK) {
        fprintf(stderr, "%s: %s\n", program_invocation_short_name, banyan_last_error());
        return PERF_USAGE;
    }
    if (e->options->json)
        print_json(e, query, bytes);
    else
        print_people(e, query, bytes);
    e->said++;
    return PERF_RIGHT;
}

/* Explains one collective: each type, each operator if it reduces, and each size. */
static enum perf_exit explain_collective(struct explaining *e, struct banyan_query *query)
{
    const struct perf_options *options = e->options;
    enum perf_exit code = PERF_RIGHT;

    if (query->collective == BANYAN_BARRIER)
        return explain_one(e, query, 0);
    for (unsigned dtype = 1; dtype < BY_DTYPE_COUNT; dtype++)
        for (unsigned op = 1; op < BY_OP_COUNT && options->dtype[dtype]; op++) {
            if (by_collective_reduces(query->collective)
                    ? !options->op[op] || !banyan_supports((banyan_op_t)op, (banyan_dtype_t)dtype)
                    : op > 1)
                continue;
            query->dtype = (banyan_dtype_t)dtype;
            query->op = (banyan_op_t)op;
            for (uint64_t bytes = options->bytes_min; bytes <= options->bytes_max && code == PERF_RIGHT;
                 bytes = perf_next_size(options, bytes))
                code = explain_one(e, query, bytes);
        }
    return code;
}

static enum perf_exit explain_all(struct explaining *e)
{
    struct banyan_query query;
    enum perf_exit code = PERF_RIGHT;

    banyan_query_init(&query);
    query.root = e->options->root;
    query.collective = BANYAN_BARRIER; /* any collective: the query returns the rank count */
    if (banyan_context_query(e->context, e->options->job, &query) != BANYAN_OK) {
        fprintf(stderr, "%s: %s\n", program_invocation_short_name, banyan_last_error());
        return PERF_USAGE;
    }
    if (!perf_options_defined(e->options, BANYAN_FAST))
        return PERF_USAGE;
    if (e->options->offsets != NULL && e->options->share_count != query.rank_count) {
        fprintf(stderr, "%s: --counts has %u numbers; the job has %u ranks\n", program_invocation_short_name,
                e->options->share_count, query.rank_count);
        return PERF_USAGE;
    }
    e->counts = calloc(query.rank_count > 0 ? query.rank_count : 1, sizeof(*e->counts));
    if (e->counts == NULL) {
        fprintf(stderr, "%s: no memory for %u ranks\n", program_invocation_short_name, query.rank_count);
        return PERF_ENVIRONMENT;
    }
    if (e->options->json)
        printf("{\"operations\": [");
    for (unsigned c = 1; c < BY_COLLECTIVE_COUNT && code == PERF_RIGHT; c++) {
        query.collective = (banyan_collective_t)c;
        query.counts = NULL;
        if (e->options->collective[c])
            code = explain_collective(e, &query);
    }
    if (e->options->json)
        printf("]}\n");
    free(e->counts);
    return code;
}

enum perf_exit perf_explain(const struct perf_options *options)
{
    struct explaining e = {.options = options};
    struct banyan_config config;
    enum perf_exit code;

    banyan_config_init(&config);
    config.table = options->table;
    config.transport = options->transport;
    config.mode = options->mode;
    if (banyan_init(&config, &e.context) != BANYAN_OK) {
        fprintf(stderr, "%s: %s\n", program_invocation_short_name, banyan_last_error());
        return PERF_USAGE;
    }
    code = explain_all(&e);
    banyan_finalize(e.context);
    return code;
}
