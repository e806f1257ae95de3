/*
 * Scatters and gossips: the programs SSSP and SSPA2A of LMR sections 3.1 and 3.5. See program.h.
 *
 * In LMR each kind of message has its own variable on every link. Here the messages of one sender
 * are a single flow, in units of data. This is equivalent: ports are limited by the amount of data
 * only, and a flow that delivers the right amount to every receiver can be split into routes. So a
 * scatter has one variable for each link, a gossip one for each link and sender.
 */
#include "control/study/series/rational.h"
#include "control/study/steady/program.h"
#include "offload/base/assert.h"
#include "offload/base/errors.h"

static const struct by_place nowhere = {0, 0};

struct flows {
    const struct by_steady_problem *problem;
    const struct by_platform *platform;
    struct by_lp *lp;
    struct by_resources resources;
    uint32_t throughput; /* column */
    uint32_t *column;    /* by source and link; BY_SERIES_NONE for links into the source */
};

/* Whether the source sends to the node. */
static bool receives(const struct by_steady_problem *problem, uint32_t source, uint32_t node)
{
    for (uint32_t i = 0; i < problem->target_count; i++)
        if (problem->targets[i] == node)
            return node != problem->sources[source];
    return false;
}

static int check_reach(const struct flows *flows, uint32_t source, struct by_problem *trouble)
{
    const struct by_links *links = flows->platform->links;
    const struct by_topology *topology = flows->problem->topology;
    bool *reached = by_alloc(topology->node_count, sizeof(*reached)), more = true;
    int error = 0;

    reached[flows->problem->sources[source]] = true;
    while (more) {
        more = false;
        for (uint32_t i = 0; i < links->count; i++)
            if (reached[links->from[i]] && !reached[links->to[i]])
                more = reached[links->to[i]] = true;
    }
    for (uint32_t i = 0; i < flows->problem->target_count && !error; i++)
        if (!reached[flows->problem->targets[i]])
            error = by_problem_set(trouble, BY_EINVAL, nowhere,
                                   "no links lead from '%s' to '%s': the throughput is 0",
                                   topology->nodes[flows->problem->sources[source]].name,
                                   topology->nodes[flows->problem->targets[i]].name);
    free(reached);
    return error;
}

/* Adds conservation rows: what arrives at a node leaves it, except for the data addressed to it. */
static void add_source(struct flows *flows, uint32_t source)
{
    const struct by_links *links = flows->platform->links;
    uint32_t n = flows->problem->topology->node_count, root = flows->problem->sources[source];
    uint32_t *column = flows->column + (size_t)source * links->count, *row = by_alloc(n, sizeof(*row));
    mpq_t size, one;

    mpq_inits(size, one, NULL);
    mpq_set_ui(one, 1, 1);
    for (uint32_t i = 0; i < n; i++) {
        if (i == root)
            continue;
        row[i] = by_lp_row(flows->lp, BY_LP_EQUAL, 0, 1);
        if (!receives(flows->problem, source, i))
            continue;
        by_steady_message_size(flows->problem, i, i, size);
        mpq_neg(size, size);
        by_lp_add_q(flows->lp, row[i], flows->throughput, size);
    }
    for (uint32_t l = 0; l < links->count; l++) {
        column[l] = BY_SERIES_NONE;
        if (links->to[l] == root)
            continue;
        column[l] = by_lp_column(flows->lp, 0, 1);
        by_resources_charge(&flows->resources, flows->platform, flows->lp, l, column[l], one);
        by_lp_add(flows->lp, row[links->to[l]], column[l], 1, 1);
        if (links->from[l] != root)
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

static void take_source(const struct flows *flows, uint32_t source, struct by_series *series,
                        uint32_t *message_room, struct by_lanes *lanes)
{
    const struct by_steady_problem *problem = flows->problem;
    const struct by_links *links = flows->platform->links;
    uint32_t root = problem->sources[source];
    mpq_t *flow = by_rationals_new(links->count), left;

    mpq_init(left);
    for (uint32_t l = 0; l < links->count; l++)
        if (flows->column[(size_t)source * links->count + l] != BY_SERIES_NONE)
            by_lp_primal(flows->lp, flows->column[(size_t)source * links->count + l], flow[l]);
    by_flow_straighten(links, problem->topology->node_count, flow);
    for (uint32_t i = 0; i < problem->target_count; i++) {
        struct by_series_message *message;

        if (problem->targets[i] == root)
            continue;
        BY_GROW(series->messages, series->message_count, *message_room);
        message = &series->messages[series->message_count++];
        *message = (struct by_series_message){.from = root, .to = problem->targets[i]};
        mpq_init(message->size);
        by_steady_message_size(problem, problem->targets[i], problem->targets[i], message->size);
        mpq_mul(left, series->throughput, message->size);
        take_routes(flows, root, problem->targets[i], series->message_count - 1, flow, message->size, left,
                    lanes);
    }
    mpq_clear(left);
    by_rationals_free(flow, links->count);
}

int by_program_flows(const struct by_steady_problem *problem, const struct by_platform *platform,
                     struct by_series *series, struct by_lanes *lanes, struct by_problem *trouble)
{
    struct flows flows = {.problem = problem, .platform = platform};
    struct by_lp_options options = {.deadline = problem->deadline};
    uint64_t variables = (uint64_t)problem->source_count * platform->links->count;
    uint32_t message_room = 0;
    int error = 0;

    if (variables > BY_STEADY_VARIABLES_MAX)
        return by_problem_set(
            trouble, BY_ELIMIT, nowhere,
            "%u senders on %u links need %llu variables; the limit is %u: name fewer senders",
            problem->source_count, platform->links->count, (unsigned long long)variables,
            BY_STEADY_VARIABLES_MAX);
    for (uint32_t s = 0; s < problem->source_count && !error; s++)
        error = check_reach(&flows, s, trouble);
    if (error)
        return error;
    flows.lp = by_lp_new();
    flows.column = by_alloc(variables, sizeof(*flows.column));
    by_resources_make(&flows.resources, platform, flows.lp);
    flows.throughput = by_lp_column(flows.lp, 1, 1);
    for (uint32_t s = 0; s < problem->source_count; s++)
        add_source(&flows, s);
    error = by_lp_solve(flows.lp, &options, trouble);
    if (!error) {
        by_lp_value(flows.lp, series->throughput);
        by_program_prices(&flows.resources, flows.lp, series);
        for (uint32_t s = 0; s < problem->source_count; s++)
            take_source(&flows, s, series, &message_room, lanes);
    }
    by_resources_free(&flows.resources);
    by_lp_free(flows.lp);
    free(flows.column);
    return error;
}
