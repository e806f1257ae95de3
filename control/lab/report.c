/*
 * The lab's output: the plans before the run; after it the bytes counted on each cable, compared
 * with the prediction of the tables. The prediction replays what banyan-perf does on every rank:
 * for each result the operations of both halves, its own barriers, and the small allreduces by
 * which ranks agree on times and counts.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "control/base/alloc.h"
#include "control/base/fraction.h"
#include "control/lab/lab.h"
#include "control/tables/traffic.h"
#include "offload/reduce/exact.h"
#include "offload/reduce/reduce.h"
#include "offload/wire/types.h"

/* Bytes of one agreement between ranks, a small allreduce: a 64-bit number. */
#define AGREEMENT_BYTES 8

struct link_bytes {
    struct by_traffic_arc counted, predicted;
    bool known; /* counted */
};

void lab_progress(const struct lab *lab, const char *format, ...)
{
    static bool shown;
    va_list arguments;

    if (lab->options.quiet || !isatty(STDERR_FILENO))
        return;
    if (format == NULL) {
        if (shown)
            fputs("\r\033[K", stderr);
        shown = false;
        return;
    }
    fputs("\r\033[Klab: ", stderr);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fflush(stderr);
    shown = true;
}

void lab_report_plans(const struct lab *lab)
{
    lab_progress(lab, NULL);
    printf("# %s: %u hosts, %u switch%s, %u links, MTU %u; %u tree%s, window %u, payload %u\n",
           lab->topology->name, lab->lowering->map.rank_count,
           lab->topology->node_count - lab->lowering->map.rank_count,
           lab->topology->node_count - lab->lowering->map.rank_count == 1 ? "" : "es",
           lab->topology->link_count, lab->lowering->mtu, lab->lowering->tree_count,
           by_plural(lab->lowering->tree_count), lab->lowering->window, lab->lowering->payload_max);
    for (uint32_t i = 0; i < lab->plan_count; i++) {
        const struct by_plan *plan = lab->plans[i].plan;
        char achieved[BY_FRACTION_TEXT_BYTES], optimum[BY_FRACTION_TEXT_BYTES];
        printf("# plan %-14s %u tree%s, %s of at most %s %s, verified %s\n",
               by_collective_name(plan->collective), plan->tree_count, by_plural(plan->tree_count),
               by_fraction_text(plan->achieved, achieved), by_fraction_text(plan->optimum, optimum),
               lab->topology->unit, lab->plans[i].verdict);
    }
    for (uint32_t i = 0; i < lab->lowering->note_count; i++)
        printf("# note: %s\n", lab->lowering->notes[i]);
    fflush(stdout);
}

/* ---- prediction ---- */

static void add_calls(const struct lab *lab, struct by_traffic_call call, uint64_t times,
                      struct by_traffic_arc *arcs)
{
    uint32_t count = 2 * lab->topology->link_count;
    struct by_traffic_arc *one = by_alloc(count, sizeof(*one));

    if (by_traffic_add(lab->lowering, &call, one) == 0)
        for (uint32_t i = 0; i < count; i++) {
            arcs[i].packets += times * one[i].packets;
            arcs[i].bytes += times * one[i].bytes;
        }
    free(one);
}

/*
 * Adds a collective as endpoints execute it. A sum of floats in mode exact is two calls: one agrees
 * on the scales of blocks, the other sums wide integers.
 */
static void add_collective(const struct lab *lab, struct by_traffic_call call, unsigned op, unsigned dtype,
                           uint64_t count, uint64_t times, struct by_traffic_arc *arcs)
{
    bool reduces = by_collective_reduces(call.collective);
    unsigned wire = reduces ? by_reduction_dtype(lab->options.mode, op, dtype) : dtype;

    call.shard_bytes = count * by_dtype_bytes(wire);
    if (wire != dtype && count > 0) {
        uint64_t shards = call.collective == BY_COLLECTIVE_REDUCE_SCATTER ? lab->lowering->map.rank_count : 1;
        uint64_t blocks = shards * ((count + BY_EXACT_BLOCK - 1) / BY_EXACT_BLOCK);

        add_calls(lab,
                  (struct by_traffic_call){.job = call.job,
                                           .collective = BY_COLLECTIVE_ALLREDUCE,
                                           .shard_bytes = blocks * BY_EXACT_SCALE_BYTES},
                  times, arcs);
    }
    add_calls(lab, call, times, arcs);
}

/*
 * Adds an allgather or reduce-scatter with unequal shares: `parts` of the `count` elements for each
 * rank.
 */
static void add_unequal(const struct lab *lab, struct by_traffic_call call, unsigned op, unsigned dtype,
                        uint64_t count, const json_t *parts, uint64_t times, struct by_traffic_arc *arcs)
{
    unsigned wire = call.collective == BY_COLLECTIVE_REDUCE_SCATTER
                        ? by_reduction_dtype(lab->options.mode, op, dtype)
                        : dtype;
    uint64_t *shards = by_alloc(json_array_size(parts), sizeof(*shards));
    uint64_t sum = 0;

    for (size_t rank = 0; rank < json_array_size(parts); rank++)
        sum += (uint64_t)json_integer_value(json_array_get(parts, rank));
    for (size_t rank = 0; rank < json_array_size(parts) && sum > 0; rank++)
        shards[rank] =
            count / sum * (uint64_t)json_integer_value(json_array_get(parts, rank)) * by_dtype_bytes(wire);
    /*
     * Blocks of scales begin where shards begin, and one unused block precedes each shard
     * (endpoint/exact.c).
     */
    if (wire != dtype && count > 0)
        add_calls(lab,
                  (struct by_traffic_call){.job = call.job,
                                           .collective = BY_COLLECTIVE_ALLREDUCE,
                                           .shard_bytes = (count / BY_EXACT_BLOCK + json_array_size(parts)) *
                                                          BY_EXACT_SCALE_BYTES},
                  times, arcs);
    call.shards = shards;
    add_calls(lab, call, times, arcs);
    free(shards);
}

/* Whether the parts are equal; then the call has equal shares. */
static bool are_equal(const json_t *parts)
{
    for (size_t rank = 1; rank < json_array_size(parts); rank++)
        if (json_integer_value(json_array_get(parts, rank)) != json_integer_value(json_array_get(parts, 0)))
            return false;
    return true;
}

/* Adds one line of banyan-perf's table, as every rank executes it. */
static void predict_result(const struct lab *lab, uint16_t job, const json_t *result,
                           struct by_traffic_arc *arcs)
{
    unsigned collective = by_collective_from_name(json_string_value(json_object_get(result, "collective")));
    unsigned dtype = by_dtype_from_name(json_string_value(json_object_get(result, "dtype")));
    unsigned op = by_op_from_name(json_string_value(json_object_get(result, "op")));
    uint64_t count = (uint64_t)json_integer_value(json_object_get(result, "count"));
    const json_t *parts = json_object_get(result, "parts");
    uint64_t operations =
        2 * ((uint64_t)json_integer_value(json_object_get(result, "operations")) + lab->options.warmup);
    bool barrier = collective == BY_COLLECTIVE_BARRIER,
         checks_bits = collective == BY_COLLECTIVE_ALLREDUCE && count > 0;
    struct by_traffic_call call = {.job = job, .collective = collective, .root = lab->options.root};

    /*
     * In place, every operation changes the data. So the check is one more operation, on fresh
     * data.
     */
    if (json_is_array(parts) && !are_equal(parts))
        add_unequal(lab, call, op, dtype, count, parts, operations + 1, arcs);
    else
        add_collective(lab, call, op, dtype,
                       json_is_array(parts) ? count / lab->lowering->map.rank_count : count,
                       operations + (barrier ? 0 : 1), arcs);
    add_calls(lab, (struct by_traffic_call){.job = job, .collective = BY_COLLECTIVE_BARRIER}, 2, arcs);
    /*
     * Each half agrees on the slowest time, the number of wrong elements and the digest; an
     * allreduce also on the minimum and maximum of the checksums.
     */
    add_calls(lab,
              (struct by_traffic_call){
                  .job = job, .collective = BY_COLLECTIVE_ALLREDUCE, .shard_bytes = AGREEMENT_BYTES},
              checks_bits ? 10 : 6, arcs);
}

static void predict(const struct lab *lab, struct by_traffic_arc *arcs)
{
    for (uint32_t job = 1; job <= lab->options.jobs; job++) {
        const json_t *results = json_object_get(json_array_get(lab->reports[job - 1], 0), "results");
        by_traffic_add_session(lab->lowering, (uint16_t)job, arcs);
        for (size_t i = 0; i < json_array_size(results); i++)
            predict_result(lab, (uint16_t)job, json_array_get(results, i), arcs);
    }
}

/* ---- counting ---- */

/* Reads a switch's own counters of one port over the run: transmitted or received bytes. */
static bool from_switch(const struct lab *lab, uint32_t link, uint32_t node, bool sent,
                        struct by_traffic_arc *counted)
{
    uint32_t port = by_address_port(&lab->lowering->map, link, node);
    const by_CountersReply *before = lab->before ? lab->before[node] : NULL,
                           *after = lab->after ? lab->after[node] : NULL;

    if (before == NULL || after == NULL || port >= before->ports_count || port >= after->ports_count)
        return false;
    if (sent) {
        counted->packets = after->ports[port].tx_packets - before->ports[port].tx_packets;
        counted->bytes = after->ports[port].tx_bytes - before->ports[port].tx_bytes;
    } else {
        counted->packets = after->ports[port].rx_packets - before->ports[port].rx_packets;
        counted->bytes = after->ports[port].rx_bytes - before->ports[port].rx_bytes;
    }
    return true;
}

/* Reads what the host's processes sent by one interface, for all jobs together. */
static bool from_host(const struct lab *lab, uint32_t link, uint32_t node, struct by_traffic_arc *counted)
{
    uint32_t rank = lab->lowering->map.rank[node];
    bool found = false;
    char interface[16];

    if (rank == UINT32_MAX)
        return false;
    by_address_interface(&lab->lowering->map, link, node, interface);
    for (uint32_t job = 0; job < lab->options.jobs; job++) {
        const json_t *ports = json_object_get(json_array_get(lab->reports[job], rank), "ports");
        for (size_t i = 0; i < json_array_size(ports); i++) {
            const json_t *port = json_array_get(ports, i);
            const char *name = json_string_value(json_object_get(port, "name"));
            if (name == NULL || strcmp(name, interface) != 0)
                continue;
            counted->packets += (uint64_t)json_integer_value(json_object_get(port, "tx_packets"));
            counted->bytes += (uint64_t)json_integer_value(json_object_get(port, "tx_bytes"));
            found = true;
        }
    }
    return found;
}

/* With --in-process, the in-memory fabric counts the bytes of its cables. */
static bool from_memory(const struct lab *lab, uint32_t link, uint32_t from, struct by_traffic_arc *counted)
{
    const char *name = lab->topology->nodes[from].name;
    bool found = false;
    char interface[16];

    by_address_interface(&lab->lowering->map, link, from, interface);
    for (uint32_t job = 0; job < lab->options.jobs; job++) {
        const json_t *links = json_object_get(json_array_get(lab->reports[job], 0), "links");
        for (size_t i = 0; i < json_array_size(links); i++) {
            const json_t *entry = json_array_get(links, i);
            const char *node = json_string_value(json_object_get(entry, "from"));
            const char *port = json_string_value(json_object_get(entry, "from_port"));
            if (node == NULL || port == NULL || strcmp(node, name) != 0 || strcmp(port, interface) != 0)
                continue;
            counted->packets += (uint64_t)json_integer_value(json_object_get(entry, "packets"));
            counted->bytes += (uint64_t)json_integer_value(json_object_get(entry, "bytes"));
            found = true;
        }
    }
    return found;
}

/* Counts bytes: [2 * link] is from end a to end b, [2 * link + 1] the opposite direction. */
static struct link_bytes *measure(const struct lab *lab)
{
    uint32_t count = 2 * lab->topology->link_count;
    struct link_bytes *links = by_alloc(count, sizeof(*links));
    struct by_traffic_arc *predicted = by_alloc(count, sizeof(*predicted));

    predict(lab, predicted);
    for (uint32_t i = 0; i < count; i++) {
        const struct by_link *cable = &lab->topology->links[i / 2];
        uint32_t from = i % 2 ? cable->b : cable->a, to = i % 2 ? cable->a : cable->b;
        links[i].predicted = predicted[i];
        if (lab->options.in_process)
            links[i].known = from_memory(lab, i / 2, from, &links[i].counted);
        else
            links[i].known = from_switch(lab, i / 2, from, true, &links[i].counted) ||
                             from_switch(lab, i / 2, to, false, &links[i].counted) ||
                             from_host(lab, i / 2, from, &links[i].counted);
    }
    free(predicted);
    return links;
}

/* ---- output ---- */

static double ratio_of(const struct link_bytes *link)
{
    return link->predicted.bytes ? (double)link->counted.bytes / (double)link->predicted.bytes : 0;
}

static void print_links(const struct lab *lab, const struct link_bytes *links)
{
    double least = 0, most = 0;

    printf("# link: bytes counted%s and bytes that the plan predicts, in both directions\n",
           lab->options.in_process ? "" : " by the nodes");
    printf("#%31s  %14s %14s %7s  %14s %14s %7s\n", "", "->", "predicted", "ratio", "<-", "predicted",
           "ratio");
    for (uint32_t i = 0; i < lab->topology->link_count; i++) {
        char name[100];
        snprintf(name, sizeof(name), "%.47s - %.47s", lab->topology->nodes[lab->topology->links[i].a].name,
                 lab->topology->nodes[lab->topology->links[i].b].name);
        printf(" %-31s", name);
        for (uint32_t way = 0; way < 2; way++) {
            const struct link_bytes *link = &links[2 * i + way];
            double ratio = ratio_of(link);
            char counted[24] = "-", text[16] = "-";
            if (link->known)
                snprintf(counted, sizeof(counted), "%" PRIu64, link->counted.bytes);
            if (link->known && link->predicted.bytes > 0) {
                snprintf(text, sizeof(text), "%.4f", ratio);
                least = least == 0 || ratio < least ? ratio : least;
                most = ratio > most ? ratio : most;
            }
            printf("  %14s %14" PRIu64 " %7s", counted, link->predicted.bytes, text);
        }
        putchar('\n');
    }
    if (most > 0)
        printf("# counted / predicted: %.4f to %.4f%s%s\n", least, most,
               most > 1.0 ? " (above 1: sent again)" : "",
               least < 0.999 ? " (below 1: credits that shared frames)" : "");
}

static json_t *link_json(const struct link_bytes *link)
{
    return json_pack(
        "{s:o, s:o, s:I, s:I, s:o}", "counted",
        link->known ? json_integer((json_int_t)link->counted.bytes) : json_null(), "counted_packets",
        link->known ? json_integer((json_int_t)link->counted.packets) : json_null(), "predicted",
        (json_int_t)link->predicted.bytes, "predicted_packets", (json_int_t)link->predicted.packets, "ratio",
        link->known && link->predicted.bytes ? json_real(ratio_of(link)) : json_null());
}

static json_t *links_json(const struct lab *lab, const struct link_bytes *links)
{
    json_t *array = json_array();

    for (uint32_t i = 0; i < lab->topology->link_count; i++)
        json_array_append_new(array, json_pack("{s:s, s:s, s:o, s:o}", "a",
                                               lab->topology->nodes[lab->topology->links[i].a].name, "b",
                                               lab->topology->nodes[lab->topology->links[i].b].name, "ab",
                                               link_json(&links[2 * i]), "ba", link_json(&links[2 * i + 1])));
    return array;
}

static json_t *plans_json(const struct lab *lab)
{
    json_t *array = json_array();

    for (uint32_t i = 0; i < lab->plan_count; i++) {
        const struct by_plan *plan = lab->plans[i].plan;
        char achieved[BY_FRACTION_JSON_BYTES], optimum[BY_FRACTION_JSON_BYTES];
        json_array_append_new(array,
                              json_pack("{s:s, s:o, s:f, s:o, s:f, s:s, s:i}", "collective",
                                        by_collective_name(plan->collective), "optimum",
                                        json_loads(by_fraction_json(plan->optimum, optimum), 0, NULL),
                                        "optimum_float", by_fraction_value(plan->optimum), "achieved",
                                        json_loads(by_fraction_json(plan->achieved, achieved), 0, NULL),
                                        "achieved_float", by_fraction_value(plan->achieved), "verdict",
                                        lab->plans[i].verdict, "trees", (int)plan->tree_count));
    }
    return array;
}

/*
 * What each switch's engine counted during the run, with the names of `banyan show --counters`;
 * zeros are omitted.
 */
static json_t *switches_json(const struct lab *lab)
{
    json_t *object = json_object();

    for (uint32_t node = 0; node < lab->topology->node_count && lab->before != NULL && lab->after != NULL;
         node++) {
        const by_CountersReply *before = lab->before[node], *after = lab->after[node];
        json_t *counters;
        if (before == NULL || after == NULL)
            continue;
        counters = json_object();
        for (pb_size_t i = 0; i < after->engine_count && i < before->engine_count; i++)
            if (after->engine[i].value != before->engine[i].value)
                json_object_set_new(
                    counters, after->engine[i].name,
                    json_integer((json_int_t)(after->engine[i].value - before->engine[i].value)));
        json_object_set_new(object, lab->topology->nodes[node].name, counters);
    }
    return object;
}

/* Prints what switches dropped, to help find the reason of a failure. */
static void print_drops(const struct lab *lab)
{
    json_t *switches = switches_json(lab), *counters, *value;
    const char *name, *counter;

    json_object_foreach(switches, name, counters)
    {
        bool any = false;
        json_object_foreach(counters, counter, value)
        {
            if (strncmp(counter, "drop_", 5) != 0 && strcmp(counter, "poison") != 0 &&
                strncmp(counter, "alarm", 5) != 0)
                continue;
            printf("%s%s %" JSON_INTEGER_FORMAT, any ? ", " : "# switch dropped: ", counter,
                   json_integer_value(value));
            any = true;
        }
        if (any)
            printf(" (%s)\n", name);
    }
    json_decref(switches);
}

/*
 * Returns the number of wrong elements of all jobs, as rank 0 of each job counted them for all
 * ranks; -1 if a job has no results.
 */
static int64_t count_wrong(const struct lab *lab)
{
    int64_t wrong = 0;

    for (uint32_t job = 0; job < lab->options.jobs; job++) {
        const json_t *report = json_array_get(lab->reports[job], 0);
        if (!json_is_integer(json_object_get(report, "wrong")) ||
            json_array_size(json_object_get(report, "results")) == 0)
            return -1;
        wrong += json_integer_value(json_object_get(report, "wrong"));
    }
    return wrong;
}

static json_t *everything(const struct lab *lab, const struct link_bytes *links, int64_t wrong)
{
    json_t *jobs = json_array();

    for (uint32_t job = 0; job < lab->options.jobs; job++) {
        json_t *report = json_array_get(lab->reports[job], 0), *results = json_object_get(report, "results");
        json_array_append_new(jobs, json_pack("{s:i, s:O, s:O}", "job", (int)job + 1, "results",
                                              results ? results : json_null(), "ranks", lab->reports[job]));
    }
    return json_pack("{s:s, s:s, s:i, s:b, s:f, s:f, s:f, s:o, s:o, s:o, s:o, s:o, s:o}", "topology",
                     lab->topology->name, "file", lab->options.topology, "mtu", (int)lab->lowering->mtu,
                     "in_process", lab->options.in_process, "seconds", lab->seconds, "switch_seconds",
                     lab->switch_seconds, "kernel_seconds", lab->kernel_seconds, "plans", plans_json(lab),
                     "jobs", jobs, "links", links_json(lab, links), "switches", switches_json(lab), "wrong",
                     wrong < 0 ? json_null() : json_integer(wrong), "error",
                     lab->error[0] ? json_string(lab->error) : json_null());
}

int lab_report(struct lab *lab)
{
    struct link_bytes *links = measure(lab);
    int64_t wrong = count_wrong(lab);
    int status = wrong > 0 ? BY_EXIT_NO : wrong < 0 || lab->error[0] ? BY_EXIT_ENVIRONMENT : BY_EXIT_DONE;
    json_t *object;

    lab_progress(lab, NULL);
    if (!lab->options.json && lab->error[0] == 0) {
        print_links(lab, links);
        if (wrong >= 0)
            printf("# %" PRId64 " wrong elements%s, %.1f s\n", wrong,
                   lab->options.jobs > 1 ? " over all jobs" : "", lab->seconds);
        else
            printf("# no results\n");
    }
    if (!lab->options.json && lab->error[0] != 0)
        print_drops(lab);
    if (lab->options.json || lab->options.report != NULL) {
        object = everything(lab, links, wrong);
        if (lab->options.json) {
            json_dumpf(object, stdout, JSON_INDENT(1));
            putchar('\n');
        }
        if (lab->options.report != NULL && json_dump_file(object, lab->options.report, JSON_INDENT(1)) != 0)
            status = by_cli_fail(BY_EXIT_ENVIRONMENT, "%s: cannot write the report", lab->options.report);
        json_decref(object);
    }
    free(links);
    return status;
}
