/*
 * Reports a simulated run: time and bandwidth compared with the proved optimum, links, slots,
 * repairs. The comparison with the bound is exact: no run may be faster than the proved bound.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "control/base/alloc.h"
#include "control/base/fraction.h"
#include "control/cli/sim.h"

#define LINKS_SHOWN 8u
/* The latency bound is compared with calls that take less than this many times as long. */
#define LATENCY_PART 20
#define PS           INT64_C(1000000000000)

static uint64_t number(const json_t *object, const char *key)
{
    return (uint64_t)json_integer_value(json_object_get(object, key));
}

/* Returns the payload's time on the link in seconds, to compare links. */
static double payload_time(const struct sim *sim, const struct sim_report_row *row)
{
    return (double)row->payload / (double)sim->topology->arcs[row->arc].capacity;
}

static void read_rows(const struct sim *sim, struct sim_report_verdict *verdict)
{
    const json_t *arcs = json_object_get(sim->result, "arcs");

    verdict->row_count = (uint32_t)json_array_size(arcs);
    if (verdict->row_count > sim->topology->arc_count) /* those behind them carry answers only */
        verdict->row_count = sim->topology->arc_count;
    verdict->rows = by_alloc(verdict->row_count, sizeof(*verdict->rows));
    for (uint32_t i = 0; i < verdict->row_count; i++) {
        const json_t *arc = json_array_get(arcs, i);
        const struct sim_report_row *best = &verdict->rows[verdict->fullest];
        struct sim_report_row *row = &verdict->rows[i];

        *row = (struct sim_report_row){.arc = i,
                                       .packets = number(arc, "packets"),
                                       .payload = number(arc, "payload_bytes"),
                                       .header = number(arc, "header_bytes"),
                                       .busy_ps = number(arc, "busy_ps"),
                                       .queue_high = number(arc, "queue_high"),
                                       .lost = number(arc, "lost"),
                                       .dropped = number(arc, "dropped"),
                                       .marked = number(arc, "marked")};
        if (payload_time(sim, row) > payload_time(sim, best) ||
            (payload_time(sim, row) >= payload_time(sim, best) && row->busy_ps > best->busy_ps))
            verdict->fullest = i;
    }
}

/* Compares the counted bytes of each direction with the prediction of the tables. */
static const char *compare_traffic(const struct sim *sim, const struct sim_report_verdict *verdict)
{
    const struct sim_options *options = &sim->options;
    struct by_traffic_call call = {
        .job = 1, .collective = sim->collective, .root = sim->root, .shard_bytes = sim->count * SIM_ELEMENT};
    struct by_traffic_arc *arcs;
    const char *answer = "equal";

    if (options->loss | options->dup | options->reorder | options->lossy_count || options->buffer > 0 ||
        options->shared > 0 || options->traffic > 0 || verdict->repairs)
        return NULL;
    arcs = by_alloc(2 * (size_t)sim->topology->link_count, sizeof(*arcs));
    if (by_traffic_add(sim->lowering, &call, arcs) != 0)
        answer = NULL;
    for (uint32_t i = 0; i < verdict->row_count && answer != NULL; i++) {
        const struct by_arc *arc = &sim->topology->arcs[verdict->rows[i].arc];
        const struct by_traffic_arc *said =
            &arcs[2 * arc->link + (sim->topology->links[arc->link].a == arc->from ? 0 : 1)];
        uint64_t payload = (said->bytes - said->packets * BY_LOWER_HEADER_BYTES) * sim->choice.batch;

        if (said->packets * sim->choice.batch != verdict->rows[i].packets ||
            payload != verdict->rows[i].payload)
            answer = "differs";
    }
    free(arcs);
    return answer;
}

/*
 * Returns 1 if the bytes needed less time than the bound allows: bytes / time > optimum, in
 * integers.
 */
static int is_impossible(const struct sim *sim, uint64_t time_ps)
{
    const struct by_fraction *optimum = &sim->plan->optimum;
    __int128 left = (__int128)sim->bytes * PS * optimum->den * sim->unit.den;
    __int128 right = (__int128)time_ps * sim->unit.num * optimum->num;

    return left > right;
}

void sim_report_judge(const struct sim *sim, struct sim_report_verdict *verdict)
{
    const struct sim_report_row *fullest;
    double seconds;

    *verdict = (struct sim_report_verdict){.time_ps = number(sim->result, "time_ps")};
    read_rows(sim, verdict);
    verdict->wrong = number(sim->result, "wrong_elements") > 0 || number(sim->result, "missing_chunks") > 0;
    verdict->repairs = number(sim->result, "retransmissions") > 0;
    seconds = (double)verdict->time_ps / (double)PS;
    verdict->algbw = seconds > 0 ? (double)sim->bytes / seconds / by_fraction_value(sim->unit) : 0;
    if (verdict->row_count > 0) {
        fullest = &verdict->rows[verdict->fullest];
        if (fullest->payload + fullest->header > 0)
            verdict->header_share = (double)fullest->header / (double)(fullest->payload + fullest->header);
    }
    if (json_is_null(json_object_get(sim->result, "error")))
        verdict->traffic = compare_traffic(sim, verdict);
    if (sim->plan == NULL || sim->plan->optimum.num == 0 || sim->bytes == 0)
        return;
    verdict->raw = verdict->algbw / by_fraction_value(sim->plan->optimum);
    verdict->net = verdict->raw / (1 - verdict->header_share);
    verdict->impossible =
        json_is_null(json_object_get(sim->result, "error")) && is_impossible(sim, verdict->time_ps);
}

static double used(const struct sim_report_verdict *verdict, const struct sim_report_row *row)
{
    return verdict->time_ps > 0 ? (double)row->busy_ps / (double)verdict->time_ps : 0;
}

/* ---- JSON ---- */

static json_t *json_rows(const struct sim *sim, const struct sim_report_verdict *verdict)
{
    json_t *rows = json_array();

    for (uint32_t i = 0; i < verdict->row_count; i++) {
        const struct sim_report_row *row = &verdict->rows[i];
        const struct by_arc *arc = &sim->topology->arcs[row->arc];

        json_array_append_new(
            rows, json_pack("{s:s, s:s, s:i, s:I, s:I, s:I, s:f, s:I, s:I, s:I, s:I}", "from",
                            sim->topology->nodes[arc->from].name, "to", sim->topology->nodes[arc->to].name,
                            "link", (int)arc->link, "packets", (json_int_t)row->packets, "payload_bytes",
                            (json_int_t)row->payload, "header_bytes", (json_int_t)row->header, "utilisation",
                            used(verdict, row), "queue_high", (json_int_t)row->queue_high, "lost",
                            (json_int_t)row->lost, "dropped", (json_int_t)row->dropped, "marked",
                            (json_int_t)row->marked));
    }
    return rows;
}

static json_t *json_slots(const struct sim *sim)
{
    const json_t *high = json_object_get(sim->result, "slots_high");
    json_t *nodes = json_array();

    for (uint32_t n = 0; n < sim->topology->node_count; n++) {
        uint64_t slots = 0;

        for (uint32_t t = 0; t < sim->lowering->tree_count; t++) {
            const struct by_lowered_tree *tree = &sim->lowering->trees[t];

            if (tree->hop_of[n] != BY_LOWER_NODE_NONE && tree->hops[tree->hop_of[n]].child_count > 0 &&
                !by_lower_joins(tree, &tree->hops[tree->hop_of[n]]))
                slots += tree->window;
        }
        json_array_append_new(nodes, json_pack("{s:s, s:I, s:I}", "name", sim->topology->nodes[n].name,
                                               "slots", (json_int_t)slots, "slots_high",
                                               json_integer_value(json_array_get(high, n))));
    }
    return nodes;
}

static json_t *json_fraction(struct by_fraction value)
{
    char text[BY_FRACTION_JSON_BYTES];

    return json_loads(by_fraction_json(value, text), 0, NULL);
}

json_t *sim_report_json(const struct sim *sim, const struct sim_report_verdict *verdict)
{
    const struct sim_options *options = &sim->options;
    const struct sim_choice *choice = &sim->choice;
    json_t *object = json_pack(
        "{s:s, s:s, s:i, s:i, s:I, s:s, s:I, s:i, s:i, s:i, s:i, s:f}", "topology", sim->topology->name,
        "collective", by_collective_name(sim->collective), "root", (int)sim->root, "ranks", (int)sim->ranks,
        "bytes", (json_int_t)sim->bytes, "unit", sim->topology->unit, "seed", (json_int_t)options->seed,
        "chunk", (int)choice->chunk, "window", (int)choice->window, "inflight", (int)choice->inflight,
        "batch", (int)choice->batch, "latency_ns", (double)options->latency_ps / 1000);

    json_object_set_new(object, "time_us", json_real((double)verdict->time_ps / 1e6));
    json_object_set_new(object, "algbw", json_real(verdict->algbw));
    json_object_set_new(object, "optimum",
                        sim->plan != NULL ? json_fraction(sim->plan->optimum) : json_null());
    json_object_set_new(object, "planned",
                        sim->plan != NULL ? json_fraction(sim->plan->achieved) : json_null());
    json_object_set_new(object, "bound_ratio", verdict->net > 0 ? json_real(verdict->net) : json_null());
    json_object_set_new(object, "bound_ratio_with_headers",
                        verdict->raw > 0 ? json_real(verdict->raw) : json_null());
    json_object_set_new(object, "latency_bound_us", json_real(choice->latency_bound_ps / 1e6));
    json_object_set_new(object, "header_share", json_real(verdict->header_share));
    json_object_set_new(object, "impossible", json_boolean(verdict->impossible));
    json_object_set_new(object, "predicted_traffic",
                        verdict->traffic != NULL ? json_string(verdict->traffic) : json_null());
    for (const char *const *key =
             (const char *const[]){"checked_elements", "wrong_elements", "missing_chunks", "retransmissions",
                                   "events", "lost", "duplicated", "held", "overflowed", "marked", "error",
                                   "endpoint", "engine", NULL};
         *key != NULL; key++)
        json_object_set(object, *key, json_object_get(sim->result, *key));
    json_object_set_new(object, "links", json_rows(sim, verdict));
    json_object_set_new(object, "nodes", json_slots(sim));
    return object;
}

/* ---- text ---- */

static int by_use(const void *a, const void *b)
{
    const struct sim_report_row *x = a, *y = b;

    if (x->busy_ps != y->busy_ps)
        return x->busy_ps < y->busy_ps ? 1 : -1;
    return x->arc < y->arc ? -1 : x->arc > y->arc;
}

static void print_links(const struct sim *sim, const struct sim_report_verdict *verdict)
{
    struct sim_report_row *rows = by_alloc(verdict->row_count, sizeof(*rows));
    uint64_t queue = 0, dropped = 0;

    for (uint32_t i = 0; i < verdict->row_count; i++) {
        rows[i] = verdict->rows[i];
        dropped += rows[i].dropped;
        if (rows[i].queue_high > queue)
            queue = rows[i].queue_high;
    }
    if (verdict->row_count > 0)
        qsort(rows, verdict->row_count, sizeof(*rows), by_use);
    printf("# the busiest of %u directions of links\n", verdict->row_count);
    printf("%-16s %-16s %7s %14s %12s %12s\n", "from", "to", "used", "payload B", "header B", "queue max B");
    for (uint32_t i = 0; i < verdict->row_count && i < LINKS_SHOWN; i++) {
        const struct by_arc *arc = &sim->topology->arcs[rows[i].arc];

        printf("%-16s %-16s %6.1f%% %14" PRIu64 " %12" PRIu64 " %12" PRIu64 "\n",
               sim->topology->nodes[arc->from].name, sim->topology->nodes[arc->to].name,
               100 * used(verdict, &rows[i]), rows[i].payload, rows[i].header, rows[i].queue_high);
    }
    printf("# longest queue of all ports: %" PRIu64 " B; dropped for lack of space: %" PRIu64 "\n", queue,
           dropped);
    free(rows);
}

static void print_slots(const struct sim *sim)
{
    const json_t *high = json_object_get(sim->result, "slots_high");
    uint32_t best = 0;

    for (uint32_t n = 1; n < sim->topology->node_count; n++)
        if (json_integer_value(json_array_get(high, n)) > json_integer_value(json_array_get(high, best)))
            best = n;
    printf("# most slots in use at a time: %" JSON_INTEGER_FORMAT " at %s\n",
           json_integer_value(json_array_get(high, best)), sim->topology->nodes[best].name);
}

void sim_report_call(const struct sim *sim)
{
    const struct sim_choice *choice = &sim->choice;

    printf("# %s of %" PRIu64 " bytes over %u ranks of %s, seed %" PRIu64 "\n",
           by_collective_name(sim->collective), sim->bytes, sim->ranks, sim->topology->name,
           sim->options.seed);
    printf("# %u trees, %u hops high; chunk %u B%s, window %u%s, %u%s in flight,\n"
           "# %u frame%s a simulated packet\n",
           sim->lowering->tree_count, choice->height, choice->chunk,
           sim->options.chunk ? "" : " (recommended)", choice->window,
           sim->options.window ? "" : " (recommended)", choice->inflight,
           sim->options.inflight ? "" : " (recommended)", choice->batch, by_plural(choice->batch));
    if (sim->options.traffic > 0)
        printf("# other packets take %.3g of every link\n", (double)sim->options.traffic / 4294967296.0);
}

static void print_text(const struct sim *sim, const struct sim_report_verdict *verdict)
{
    const struct sim_choice *choice = &sim->choice;
    char optimum[BY_FRACTION_TEXT_BYTES];

    sim_report_call(sim);
    printf("time %.3f us, algbw %.3f %s", (double)verdict->time_ps / 1e6, verdict->algbw,
           sim->topology->unit);
    if (verdict->raw > 0)
        printf(", %.2f%% of the optimum %s (%.2f%% with headers, which are %.2f%% of the fullest link)",
               100 * verdict->net, by_fraction_text(sim->plan->optimum, optimum), 100 * verdict->raw,
               100 * verdict->header_share);
    printf("\nlatency bound %.3f us", choice->latency_bound_ps / 1e6);
    if (choice->latency_bound_ps * LATENCY_PART > (double)verdict->time_ps)
        printf(", the longest way of a first chunk without queues; this call took %.2f times as long",
               (double)verdict->time_ps / choice->latency_bound_ps);
    printf("\nchecked %" PRIu64 " elements, %" PRIu64 " wrong, %" PRIu64 " chunks missing; %" PRIu64
           " retransmissions, %" PRIu64 " events\n",
           number(sim->result, "checked_elements"), number(sim->result, "wrong_elements"),
           number(sim->result, "missing_chunks"), number(sim->result, "retransmissions"),
           number(sim->result, "events"));
    if (verdict->traffic != NULL)
        printf("# bytes on every link compared with those that the tables predict: %s\n", verdict->traffic);
    print_links(sim, verdict);
    print_slots(sim);
}

int sim_report_give(const struct sim *sim, const json_t *object)
{
    if (sim->options.json) {
        json_dumpf(object, stdout, JSON_INDENT(1));
        putchar('\n');
    }
    if (sim->options.report != NULL && json_dump_file(object, sim->options.report, JSON_INDENT(1)) != 0)
        return by_cli_fail(BY_EXIT_ENVIRONMENT, "%s: cannot write the report: %s", sim->options.report,
                           strerror(errno));
    return 0;
}

int sim_report_status(const struct sim *sim, const struct sim_report_verdict *verdict)
{
    const char *error = json_string_value(json_object_get(sim->result, "error"));

    if (error != NULL)
        return by_cli_fail(BY_EXIT_ENVIRONMENT, "sim: %s", error);
    if (verdict->wrong)
        return by_cli_fail(BY_EXIT_NO, "sim: wrong results: %" PRIu64 " elements, first at rank %d",
                           number(sim->result, "wrong_elements"),
                           (int)json_integer_value(json_object_get(sim->result, "first_wrong_rank")));
    if (verdict->impossible)
        return by_cli_fail(BY_EXIT_NO,
                           "sim: faster than the plan's proven optimum: the plan's claim or this simulator "
                           "is wrong; see banyan verify");
    if (verdict->traffic != NULL && strcmp(verdict->traffic, "equal") != 0)
        return by_cli_fail(BY_EXIT_NO, "sim: the bytes on links differ from those that the tables predict");
    return 0;
}

int sim_report(const struct sim *sim)
{
    struct sim_report_verdict verdict;
    json_t *object;
    int status;

    sim_report_judge(sim, &verdict);
    object = sim_report_json(sim, &verdict);
    if (!sim->options.json && json_is_null(json_object_get(sim->result, "error")))
        print_text(sim, &verdict);
    status = sim_report_give(sim, object);
    if (status == 0)
        status = sim_report_status(sim, &verdict);
    json_decref(object);
    free(verdict.rows);
    return status;
}
