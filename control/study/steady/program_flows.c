/*
 * Scatters and gossips: the programs SSSP and SSPA2A of LMR sections 3.1 and 3.5. See program.h.
 *
 * In LMR each kind of message has its own variable on every link. Here the messages of one sender
 * are a single flow, in units of data. This is equivalent: ports are limited by the amount of data
 * only, and a flow that delivers the right amount to every receiver can be split into routes. So a
 * scatter has one variable for each link, a gossip one for each link and sender.
 *
 * The same holds for the messages of one receiver. Where there are fewer receivers than senders, as
 * in a gather, the program is that of the fabric with all links turned round, and the solution is
 * turned back.
 */
#include "control/study/series/rational.h"
#include "control/study/steady/program.h"
#include "offload/base/assert.h"
#include "offload/base/errors.h"

static const struct by_place nowhere = {0, 0};

struct flows {
    const struct by_steady_problem *problem;
    const struct by_platform *platform; /* turned round: a view with exchanged ends of links */
    bool turned;
    uint32_t root_count, end_count; /* senders and receivers; turned round: receivers and senders */
    const uint32_t *roots, *ends;
    struct by_lp *lp;
    struct by_resources resources;
    uint32_t throughput; /* column */
    uint32_t *column;    /* by root and link; BY_SERIES_NONE for links into the root */
};

/* The size of the message between a root and an end; false if there is none. */
static bool message_size(const struct flows *flows, uint32_t root, uint32_t end, mpq_t size)
{
    const struct by_steady_problem *problem = flows->problem;
    uint32_t source = flows->turned ? end : root, target = flows->turned ? root : end;

    if (problem->sources[source] == problem->targets[target])
        return false;
    if (problem->matrix)
        by_rational_set(size, problem->matrix[(size_t)source * problem->target_count + target]);
    else
        by_steady_message_size(problem, problem->targets[target], problem->targets[target], size);
    return mpq_sgn(size) > 0;
}

static int check_reach(const struct flows *flows, uint32_t root, struct by_problem *trouble)
{
    const struct by_links *links = flows->platform->links;
    const struct by_topology *topology = flows->problem->topology;
    bool *reached = by_alloc(topology->node_count, sizeof(*reached)), more = true;
    const char *names[2];
    int error = 0;
    mpq_t size;

    mpq_init(size);
    reached[flows->roots[root]] = true;
    while (more) {
        more = false;
        for (uint32_t i = 0; i < links->count; i++)
            if (reached[links->from[i]] && !reached[links->to[i]])
                more = reached[links->to[i]] = true;
    }
    for (uint32_t i = 0; i < flows->end_count && !error; i++) {
        if (reached[flows->ends[i]] || !message_size(flows, root, i, size))
            continue;
        names[flows->turned] = topology->nodes[flows->roots[root]].name;
        names[!flows->turned] = topology->nodes[flows->ends[i]].name;
        error = by_problem_set(trouble, BY_EINVAL, nowhere,
                               "no links lead from '%s' to '%s': the throughput is 0", names[0], names[1]);
    }
    mpq_clear(size);
    free(reached);
    return error;
}

/* Adds conservation rows: what arrives at a node leaves it, except for the data addressed to it. A
 * root without messages has no variables. */
static void add_root(struct flows *flows, uint32_t root)
{
    const struct by_links *links = flows->platform->links;
    uint32_t n = flows->problem->topology->node_count, at = flows->roots[root];
    uint32_t *column = flows->column + (size_t)root * links->count, *row = by_alloc(n, sizeof(*row));
    bool any = false;
    mpq_t size, one;

    mpq_inits(size, one, NULL);
    mpq_set_ui(one, 1, 1);
    for (uint32_t i = 0; i < flows->end_count; i++)
        any = message_size(flows, root, i, size) || any;
    for (uint32_t i = 0; i < n && any; i++)
        if (i != at)
            row[i] = by_lp_row(flows->lp, BY_LP_EQUAL, 0, 1);
    for (uint32_t i = 0; i < flows->end_count; i++) {
        if (!message_size(flows, root, i, size))
            continue;
        mpq_neg(size, size);
        by_lp_add_q(flows->lp, row[flows->ends[i]], flows->throughput, size);
    }
    for (uint32_t l = 0; l < links->count; l++) {
        column[l] = BY_SERIES_NONE;
        if (links->to[l] == at || !any)
            continue;
        column[l] = by_lp_column(flows->lp, 0, 1);
        by_resources_charge(&flows->resources, flows->platform, flows->lp, l, column[l], one);
        by_lp_add(flows->lp, row[links->to[l]], column[l], 1, 1);
        if (links->from[l] != at)
            by_lp_add(flows->lp, row[links->from[l]], column[l], -1, 1);
    }
    mpq_clears(size, one, NULL);
    free(row);
}

/* Returns the link into `node` with the largest remaining flow. */
static uint32_t widest_into(const struct by_links *links, mpq_t *flow, uint32_t node)
{
    uint32_t best = BY_SERIES_NONE;

    for (uint32_t l = 0; l < links->count; l++)
        if (links->to[l] == node && mpq_sgn(flow[l]) > 0 &&
            (best == BY_SERIES_NONE || mpq_cmp(flow[l], flow[best]) > 0))
            best = l;
    return best;
}

/*
 * Takes the routes of one message out of the flow until `left` (data per unit of time) is carried.
 * Every route empties a link or is the receiver's last one, so each source has at most links +
 * receivers routes.
 */
static void take_routes(const struct flows *flows, uint32_t root, uint32_t target, uint32_t message,
                        mpq_t *flow, const mpq_t size, mpq_t left, struct by_lanes *lanes)
{
    const struct by_links *links = flows->platform->links;
    uint32_t *path = by_alloc(flows->problem->topology->node_count, sizeof(*path));
    mpq_t amount;

    mpq_init(amount);
    while (mpq_sgn(left) > 0) {
        struct by_steady_lane *lane = by_lanes_add(lanes);
        uint32_t length = 0;

        mpq_set(amount, left);
        for (uint32_t node = target; node != root; node = links->from[path[length - 1]]) {
            path[length] = widest_into(links, flow, node);
            BY_ASSERT(path[length] != BY_SERIES_NONE);
            if (mpq_cmp(flow[path[length]], amount) < 0)
                mpq_set(amount, flow[path[length]]);
            length++;
        }
        while (length-- > 0) {
            mpq_sub(flow[path[length]], flow[path[length]], amount);
            by_lane_push(lane, (struct by_series_task){.message = message,
                                                       .node = links->from[path[length]],
                                                       .to = links->to[path[length]]});
        }
        mpq_sub(left, left, amount);
        mpq_div(lane->weight, amount, size);
    }
    mpq_clear(amount);
    free(path);
}

static void take_root(const struct flows *flows, uint32_t root, struct by_series *series,
                      uint32_t *message_room, struct by_lanes *lanes)
{
    const struct by_links *links = flows->platform->links;
    const uint32_t *column = flows->column + (size_t)root * links->count;
    mpq_t *flow = by_rationals_new(links->count), left, size;

    mpq_inits(left, size, NULL);
    for (uint32_t l = 0; l < links->count; l++)
        if (column[l] != BY_SERIES_NONE)
            by_lp_primal(flows->lp, column[l], flow[l]);
    by_flow_straighten(links, flows->problem->topology->node_count, flow);
    for (uint32_t i = 0; i < flows->end_count; i++) {
        struct by_series_message *message;

        if (!message_size(flows, root, i, size))
            continue;
        BY_GROW(series->messages, series->message_count, *message_room);
        message = &series->messages[series->message_count++];
        *message = (struct by_series_message){.from = flows->roots[root], .to = flows->ends[i]};
        mpq_init(message->size);
        mpq_set(message->size, size);
        mpq_mul(left, series->throughput, size);
        take_routes(flows, flows->roots[root], flows->ends[i], series->message_count - 1, flow, size, left,
                    lanes);
    }
    mpq_clears(left, size, NULL);
    by_rationals_free(flow, links->count);
}

static void exchange_nodes(uint32_t *left, uint32_t *right)
{
    uint32_t kept = *left;

    *left = *right;
    *right = kept;
}

/* Turns a solution of the fabric with turned links back: routes begin at their ends. */
static void turn_back(struct by_series *series, struct by_lanes *lanes)
{
    for (uint32_t m = 0; m < series->message_count; m++)
        exchange_nodes(&series->messages[m].from, &series->messages[m].to);
    for (uint32_t i = 0; i < lanes->count; i++) {
        struct by_steady_lane *lane = &lanes->list[i];

        for (uint32_t t = 0; t < lane->task_count / 2; t++) {
            struct by_series_task kept = lane->tasks[t];

            lane->tasks[t] = lane->tasks[lane->task_count - 1 - t];
            lane->tasks[lane->task_count - 1 - t] = kept;
        }
        for (uint32_t t = 0; t < lane->task_count; t++)
            exchange_nodes(&lane->tasks[t].node, &lane->tasks[t].to);
    }
    for (uint32_t p = 0; p < series->price_count; p++) {
        struct by_series_price *price = &series->prices[p];

        if (price->resource == BY_SERIES_LINK)
            exchange_nodes(&price->node, &price->to);
        else if (price->resource != BY_SERIES_COMPUTES)
            price->resource = price->resource == BY_SERIES_SENDS ? BY_SERIES_RECEIVES : BY_SERIES_SENDS;
    }
}

/* Solves the program on the platform of `flows`. */
static int solve(struct flows *flows, struct by_series *series, struct by_lanes *lanes,
                 struct by_problem *trouble)
{
    struct by_lp_options options = {.deadline = flows->problem->deadline};
    uint32_t message_room = 0;
    int error;

    flows->lp = by_lp_new();
    flows->column =
        by_alloc((size_t)flows->root_count * flows->platform->links->count, sizeof(*flows->column));
    by_resources_make(&flows->resources, flows->platform, flows->lp);
    flows->throughput = by_lp_column(flows->lp, 1, 1);
    for (uint32_t r = 0; r < flows->root_count; r++)
        add_root(flows, r);
    error = by_lp_solve(flows->lp, &options, trouble);
    if (!error) {
        by_lp_value(flows->lp, series->throughput);
        by_program_prices(&flows->resources, flows->lp, series);
        for (uint32_t r = 0; r < flows->root_count; r++)
            take_root(flows, r, series, &message_room, lanes);
        if (flows->turned)
            turn_back(series, lanes);
    }
    by_resources_free(&flows->resources);
    by_lp_free(flows->lp);
    free(flows->column);
    return error;
}

int by_program_flows(const struct by_steady_problem *problem, const struct by_platform *platform,
                     struct by_series *series, struct by_lanes *lanes, struct by_problem *trouble)
{
    struct flows flows = {.problem = problem, .turned = problem->target_count < problem->source_count};
    struct by_platform view = *platform;
    struct by_links links = *platform->links;
    uint64_t variables;
    int error = 0;

    flows.roots = flows.turned ? problem->targets : problem->sources;
    flows.root_count = flows.turned ? problem->target_count : problem->source_count;
    flows.ends = flows.turned ? problem->sources : problem->targets;
    flows.end_count = flows.turned ? problem->source_count : problem->target_count;
    if (flows.turned) {
        links.from = platform->links->to;
        links.to = platform->links->from;
    }
    view.links = &links;
    flows.platform = &view;
    variables = (uint64_t)flows.root_count * links.count;
    if (variables > BY_STEADY_VARIABLES_MAX)
        return by_problem_set(trouble, BY_ELIMIT, nowhere,
                              "%u %s on %u links need %llu variables; the limit is %u: plan for fewer",
                              flows.root_count, flows.turned ? "receivers" : "senders", links.count,
                              (unsigned long long)variables, BY_STEADY_VARIABLES_MAX);
    for (uint32_t r = 0; r < flows.root_count && !error; r++)
        error = check_reach(&flows, r, trouble);
    return error ? error : solve(&flows, series, lanes, trouble);
}
