/*
 * Scatters and gossips: the programs SSSP and SSPA2A of LMR sections 3.1 and 3.5. See program.h.
 *
 * In LMR each kind of message has its own variable on every link. Here the messages of one sender
 * are a single flow, in units of data. This is equivalent: ports are limited by the amount of data
 * only, and a flow that delivers the right amount to every receiver can be split into routes. So a
 * scatter has one variable for each link, a gossip one for each link and sender; in larger programs
 * alike variables are one (flow_classes.h).
 *
 * The same holds for the messages of one receiver. Where there are fewer receivers than senders, as
 * in a gather, the program is that of the fabric with all links turned round, and the solution is
 * turned back.
 */
#include "control/study/series/rational.h"
#include "control/study/steady/flow_classes.h"
#include "offload/base/assert.h"
#include "offload/base/errors.h"

static const struct by_place nowhere = {0, 0};

/* Most pairs of a root and a link (count): a table has 4 bytes for each. */
#define PAIRS_MAX (UINT32_C(1) << 25)

struct flows {
    const struct by_steady_problem *problem;
    const struct by_platform *platform; /* turned round: a view with exchanged ends of links */
    bool turned;
    bool merged;                    /* most variables stand for several alike ones */
    uint32_t root_count, end_count; /* senders and receivers; turned round: receivers and senders */
    const uint32_t *roots, *ends;
    struct by_fraction *sizes; /* by root and node: the message between them, 0: none */
    bool *idle;                /* by root: it has no message */
    struct by_resources resources;
    struct by_flow_classes classes;
    struct by_lp *lp;
    uint32_t throughput;        /* column */
    uint32_t *resource, *place; /* by class: row */
    uint32_t *column;           /* by class of flows */
};

static struct by_fraction size_of_message(const struct by_steady_problem *problem, uint32_t source,
                                          uint32_t target)
{
    struct by_fraction size = {1, 1};

    if (problem->sources[source] == problem->targets[target])
        return (struct by_fraction){0, 1};
    if (problem->matrix)
        return problem->matrix[(size_t)source * problem->target_count + target];
    for (uint32_t i = 0; i < problem->size_count; i++)
        if (problem->sizes[i].first == BY_SERIES_NONE || problem->sizes[i].first == problem->targets[target])
            size = problem->sizes[i].size;
    return size;
}

static void list_sizes(struct flows *flows)
{
    uint32_t n = flows->problem->topology->node_count;

    flows->sizes = by_alloc((size_t)flows->root_count * n, sizeof(*flows->sizes));
    flows->idle = by_alloc(flows->root_count, sizeof(*flows->idle));
    for (uint32_t r = 0; r < flows->root_count; r++) {
        flows->idle[r] = true;
        for (uint32_t i = 0; i < flows->end_count; i++) {
            struct by_fraction size =
                flows->turned ? size_of_message(flows->problem, i, r) : size_of_message(flows->problem, r, i);

            flows->sizes[(size_t)r * n + flows->ends[i]] = size;
            flows->idle[r] = flows->idle[r] && size.num == 0;
        }
    }
}

static int check_reach(const struct flows *flows, uint32_t root, struct by_problem *trouble)
{
    const struct by_links *links = flows->platform->links;
    const struct by_topology *topology = flows->problem->topology;
    bool *reached = by_alloc(topology->node_count, sizeof(*reached)), more = true;
    const struct by_fraction *sizes = flows->sizes + (size_t)root * topology->node_count;
    const char *names[2];
    int error = 0;

    reached[flows->roots[root]] = true;
    while (more) {
        more = false;
        for (uint32_t i = 0; i < links->count; i++)
            if (reached[links->from[i]] && !reached[links->to[i]])
                more = reached[links->to[i]] = true;
    }
    for (uint32_t i = 0; i < flows->end_count && !error; i++) {
        if (reached[flows->ends[i]] || sizes[flows->ends[i]].num == 0)
            continue;
        names[flows->turned] = topology->nodes[flows->roots[root]].name;
        names[!flows->turned] = topology->nodes[flows->ends[i]].name;
        error = by_problem_set(trouble, BY_EINVAL, nowhere,
                               "no links lead from '%s' to '%s': the throughput is 0", names[0], names[1]);
    }
    free(reached);
    return error;
}

/* Adds the rows of resources and the column of the throughput. */
static void add_resources(struct flows *flows)
{
    const struct by_class_list *resources = &flows->classes.resources;

    flows->resource = by_alloc(resources->count, sizeof(uint32_t));
    for (uint32_t c = 0; c < resources->count; c++)
        flows->resource[c] = by_lp_row(flows->lp, BY_LP_AT_MOST, 1, 1);
    flows->throughput = by_lp_column(flows->lp, 1, 1);
}

/* Adds the conservation rows of classes that begin at `root`: what arrives at a node leaves it,
 * except for the data addressed to it. */
static void add_places(struct flows *flows, uint32_t root)
{
    const struct by_class_list *places = &flows->classes.places;
    uint32_t n = flows->problem->topology->node_count;
    mpq_t size;

    mpq_init(size);
    for (uint32_t p = root * n; p < (root + 1) * n; p++) {
        uint32_t class = places->of[p];

        if (class == BY_SERIES_NONE || places->first[class] != p)
            continue;
        flows->place[class] = by_lp_row(flows->lp, BY_LP_EQUAL, 0, 1);
        if (flows->sizes[p].num == 0)
            continue;
        by_rational_set(size, flows->sizes[p]);
        mpq_neg(size, size);
        by_lp_add_q(flows->lp, flows->place[class], flows->throughput, size);
    }
    mpq_clear(size);
}

/* Adds `value` for the flow of `root` on a link if the row of its node stands for the class. */
static void add_flow(struct flows *flows, uint32_t root, uint32_t node, uint32_t column, int value)
{
    const struct by_class_list *places = &flows->classes.places;
    uint32_t place = root * flows->problem->topology->node_count + node, class = places->of[place];

    if (class != BY_SERIES_NONE && places->first[class] == place)
        by_lp_add(flows->lp, flows->place[class], column, value, 1);
}

static void charge_flow(struct flows *flows, uint32_t link, uint32_t column)
{
    const struct by_class_list *classes = &flows->classes.resources;
    const struct by_links *links = flows->platform->links;
    const uint32_t used[] = {flows->resources.sends[links->from[link]],
                             flows->resources.receives[links->to[link]], flows->resources.link[link]};

    for (unsigned i = 0; i < 3; i++)
        if (used[i] != BY_SERIES_NONE && classes->first[classes->of[used[i]]] == used[i])
            by_lp_add_q(flows->lp, flows->resource[classes->of[used[i]]], column,
                        flows->platform->cost[link]);
}

/* Adds the variables of classes that begin at `root`, and all that its flows add to rows. */
static void add_flows(struct flows *flows, uint32_t root)
{
    const struct by_class_list *classes = &flows->classes.flows;
    const struct by_links *links = flows->platform->links;

    for (uint32_t l = 0; l < links->count; l++) {
        uint32_t flow = root * links->count + l, class = classes->of[flow];

        if (class == BY_SERIES_NONE)
            continue;
        if (classes->first[class] == flow)
            flows->column[class] = by_lp_column(flows->lp, 0, 1);
        charge_flow(flows, l, flows->column[class]);
        add_flow(flows, root, links->to[l], flows->column[class], 1);
        add_flow(flows, root, links->from[l], flows->column[class], -1);
    }
}

/* ---- routes ---- */

/* The flow of one root, and for each node the links into it that still have some. */
struct root_flow {
    mpq_t *on;              /* by link */
    uint32_t *first, *list; /* links into node v: list[first[v]] and on */
    uint32_t *count;        /* by node */
};

static void root_flow_make(struct root_flow *flow, const struct flows *flows)
{
    const struct by_links *links = flows->platform->links;
    uint32_t n = flows->problem->topology->node_count;

    flow->on = by_rationals_new(links->count);
    flow->first = by_alloc((size_t)n + 1, sizeof(uint32_t));
    flow->list = by_alloc(links->count, sizeof(uint32_t));
    flow->count = by_alloc(n, sizeof(uint32_t));
    for (uint32_t l = 0; l < links->count; l++)
        flow->first[links->to[l] + 1]++;
    for (uint32_t v = 0; v < n; v++)
        flow->first[v + 1] += flow->first[v];
}

static void root_flow_free(struct root_flow *flow, const struct flows *flows)
{
    by_rationals_free(flow->on, flows->platform->links->count);
    free(flow->first);
    free(flow->list);
    free(flow->count);
}

/* Takes the flow of a root from the solution, without circles. */
static void root_flow_read(struct root_flow *flow, const struct flows *flows, uint32_t root)
{
    const struct by_links *links = flows->platform->links;
    const uint32_t *class = flows->classes.flows.of + (size_t)root * links->count;
    const mpq_t *primals = by_lp_primals(flows->lp);
    uint32_t n = flows->problem->topology->node_count;

    for (uint32_t l = 0; l < links->count; l++) {
        if (class[l] == BY_SERIES_NONE)
            mpq_set_ui(flow->on[l], 0, 1);
        else
            mpq_set(flow->on[l], primals[flows->column[class[l]]]);
    }
    by_flow_straighten(links, n, flow->on);
    memset(flow->count, 0, n * sizeof(*flow->count));
    for (uint32_t l = 0; l < links->count; l++)
        if (mpq_sgn(flow->on[l]) > 0)
            flow->list[flow->first[links->to[l]] + flow->count[links->to[l]]++] = l;
}

/* Returns the link into `node` with the largest remaining flow; forgets links that have none. */
static uint32_t widest_into(struct root_flow *flow, uint32_t node)
{
    uint32_t *list = flow->list + flow->first[node], kept = 0, best = BY_SERIES_NONE;

    for (uint32_t i = 0; i < flow->count[node]; i++) {
        uint32_t l = list[i];

        if (mpq_sgn(flow->on[l]) == 0)
            continue;
        list[kept++] = l;
        if (best == BY_SERIES_NONE || mpq_cmp(flow->on[l], flow->on[best]) > 0)
            best = l;
    }
    flow->count[node] = kept;
    return best;
}

/*
 * Takes the routes of one message out of the flow until `left` (data per unit of time) is carried.
 * Every route empties a link or is the receiver's last one, so each source has at most links +
 * receivers routes.
 */
static void take_routes(const struct flows *flows, uint32_t root, uint32_t target, uint32_t message,
                        struct root_flow *flow, const mpq_t size, mpq_t left, struct by_lanes *lanes)
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
            path[length] = widest_into(flow, node);
            BY_ASSERT(path[length] != BY_SERIES_NONE);
            if (mpq_cmp(flow->on[path[length]], amount) < 0)
                mpq_set(amount, flow->on[path[length]]);
            length++;
        }
        lane->tasks = by_alloc(lane->task_room = length, sizeof(*lane->tasks));
        while (length-- > 0) {
            mpq_sub(flow->on[path[length]], flow->on[path[length]], amount);
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

static void take_root(const struct flows *flows, uint32_t root, struct root_flow *flow,
                      struct by_series *series, uint32_t *message_room, struct by_lanes *lanes)
{
    const struct by_fraction *sizes = flows->sizes + (size_t)root * flows->problem->topology->node_count;
    mpq_t left, size;

    mpq_inits(left, size, NULL);
    root_flow_read(flow, flows, root);
    for (uint32_t i = 0; i < flows->end_count; i++) {
        struct by_series_message *message;

        if (sizes[flows->ends[i]].num == 0)
            continue;
        by_rational_set(size, sizes[flows->ends[i]]);
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

/* ---- the program ---- */

/* Stores the prices of resources: members of a class share the price of its row. */
static void take_prices(const struct flows *flows, struct by_series *series)
{
    const struct by_class_list *classes = &flows->classes.resources;
    mpq_t *prices = by_rationals_new(flows->resources.count), members;

    mpq_init(members);
    for (uint32_t i = 0; i < flows->resources.count; i++) {
        by_lp_dual(flows->lp, flows->resource[classes->of[i]], prices[i]);
        mpq_set_ui(members, classes->size[classes->of[i]], 1);
        mpq_div(prices[i], prices[i], members);
    }
    by_program_prices(&flows->resources, prices, series);
    by_rationals_free(prices, flows->resources.count);
    mpq_clear(members);
}

/* Looks for a solution of the same throughput with the least traffic: shorter routes, and fewer. */
static int spare_traffic(struct flows *flows, const mpq_t throughput, struct by_problem *trouble)
{
    const struct by_lp_options options = {.deadline = flows->problem->deadline};
    const struct by_class_list *classes = &flows->classes.flows;
    uint32_t row = by_lp_row_q(flows->lp, BY_LP_EQUAL, throughput);

    by_lp_add(flows->lp, row, flows->throughput, 1, 1);
    by_lp_cost(flows->lp, flows->throughput, 0, 1);
    for (uint32_t c = 0; c < classes->count; c++)
        by_lp_cost(flows->lp, flows->column[c], -(int64_t)classes->size[c], 1);
    return by_lp_solve(flows->lp, &options, trouble);
}

/* Builds and solves the program of the classes. */
static int solve(struct flows *flows, struct by_series *series, struct by_problem *trouble)
{
    const struct by_lp_options options = {.deadline = flows->problem->deadline};
    int error;

    flows->place = by_alloc(flows->classes.places.count, sizeof(uint32_t));
    flows->column = by_alloc(flows->classes.flows.count, sizeof(uint32_t));
    flows->lp = by_lp_new();
    add_resources(flows);
    for (uint32_t r = 0; r < flows->root_count; r++) {
        add_places(flows, r);
        add_flows(flows, r);
    }
    error = by_lp_solve(flows->lp, &options, trouble);
    if (error)
        return error;
    by_lp_value(flows->lp, series->throughput);
    take_prices(flows, series);
    return flows->merged ? spare_traffic(flows, series->throughput, trouble) : 0;
}

static void take_solution(struct flows *flows, struct by_series *series, struct by_lanes *lanes)
{
    struct root_flow flow;
    uint32_t message_room = 0;

    root_flow_make(&flow, flows);
    for (uint32_t r = 0; r < flows->root_count; r++)
        take_root(flows, r, &flow, series, &message_room, lanes);
    root_flow_free(&flow, flows);
    if (flows->turned)
        turn_back(series, lanes);
}

/* Finds the classes of flows: the variables of the program. */
static int find_classes(struct flows *flows, struct by_problem *trouble)
{
    const struct by_flow_pairs pairs = {
        flows->platform, &flows->resources, flows->root_count,       flows->roots,
        flows->sizes,    flows->idle,       flows->problem->deadline};
    uint64_t variables = (uint64_t)flows->root_count * flows->platform->links->count;
    uint32_t from = flows->problem->classes_from ? flows->problem->classes_from : BY_STEADY_CLASSES_FROM;
    int error;

    if (variables < from) {
        by_flow_classes_single(&flows->classes, &pairs);
        return 0;
    }
    if (variables > PAIRS_MAX)
        return by_problem_set(trouble, BY_ELIMIT, nowhere,
                              "%u %s on %u links are %llu flows; the limit is %u: plan for fewer",
                              flows->root_count, flows->turned ? "receivers" : "senders",
                              flows->platform->links->count, (unsigned long long)variables, PAIRS_MAX);
    error = by_flow_classes_find(&flows->classes, &pairs);
    flows->merged = flows->classes.flows.count < variables / 2;
    if (error)
        return by_problem_set(trouble, error, nowhere, "the time limit passed while alike flows were sought");
    if (flows->classes.flows.count > BY_STEADY_VARIABLES_MAX)
        return by_problem_set(trouble, BY_ELIMIT, nowhere,
                              "%u %s on %u links need %u variables, one for each class of alike flows; the "
                              "limit is %u: plan for fewer, or for a more regular fabric",
                              flows->root_count, flows->turned ? "receivers" : "senders",
                              flows->platform->links->count, flows->classes.flows.count,
                              BY_STEADY_VARIABLES_MAX);
    return 0;
}

int by_program_flows(const struct by_steady_problem *problem, const struct by_platform *platform,
                     struct by_series *series, struct by_lanes *lanes, struct by_problem *trouble)
{
    struct flows flows = {.problem = problem, .turned = problem->target_count < problem->source_count};
    struct by_platform view = *platform;
    struct by_links links = *platform->links;
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
    list_sizes(&flows);
    by_resources_make(&flows.resources, &view, NULL);
    for (uint32_t r = 0; r < flows.root_count && !error; r++)
        error = check_reach(&flows, r, trouble);
    if (!error)
        error = find_classes(&flows, trouble);
    if (!error)
        error = solve(&flows, series, trouble);
    if (!error)
        take_solution(&flows, series, lanes);
    by_resources_free(&flows.resources);
    by_flow_classes_free(&flows.classes);
    by_lp_free(flows.lp);
    free(flows.sizes);
    free(flows.idle);
    free(flows.resource);
    free(flows.place);
    free(flows.column);
    return error;
}
