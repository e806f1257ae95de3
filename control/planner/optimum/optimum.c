/* Bottleneck cuts of allgather, broadcast and allreduce. See optimum.h; the search for a fixed k is
 * in fixed.c. */
#include "control/planner/optimum/optimum.h"

#include "control/base/alloc.h"
#include "control/base/fraction.h"
#include "control/fabric/build.h"
#include "control/planner/flow/reach.h"
#include "control/planner/optimum/oracle.h"
#include "offload/base/assert.h"
#include "offload/base/errors.h"

static const struct by_place nowhere = {0, 0};

static int refuse_unreachable(const struct by_graph *graph, uint32_t node, struct by_problem *problem)
{
    return by_problem_set(problem, BY_EINVAL, nowhere,
                          "compute node '%s' cannot be reached from every other compute node in the "
                          "direction that the collective "
                          "needs; add the missing link direction",
                          graph->topology->nodes[node].name);
}

static int refuse_range(struct by_problem *problem)
{
    return by_problem_set(
        problem, BY_ERANGE, nowhere,
        "the bandwidths need more than 60 bits in their common unit; round them or use a larger unit");
}

static int refuse_late(struct by_problem *problem)
{
    return by_problem_set(problem, BY_ETIMEDOUT, nowhere,
                          "the time limit passed before the bottleneck was found; allow more time");
}

/* The state of Newton's method for shares. */
struct optimum_search {
    const struct by_graph *graph;
    const int64_t *shares;
    int64_t share_sum;
    struct by_reach *reach;
    int64_t p, q;
    bool *inside;
};

/* Sets the capacities to p times the graph's and the roots to q times the shares. */
static void rescale(struct optimum_search *search)
{
    const struct by_mesh *net = search->graph->net;

    for (uint32_t half = 0; half < 2 * net->pair_count; half++)
        by_reach_set(search->reach, half, search->p * net->capacity[half]);
    for (uint32_t i = 0; i < net->node_count; i++)
        by_reach_set_root(search->reach, i, search->q * search->shares[i]);
}

/* Computes the candidate of the set `inside`: the data that all others send, over the capacity that
 * enters the set. */
static int take_candidate(struct optimum_search *search, uint32_t node, struct by_problem *problem)
{
    const struct by_graph *graph = search->graph;
    int64_t entering = by_graph_entering_set(graph, search->inside), outside = search->share_sum, divisor;

    for (uint32_t i = 0; i < graph->node_count; i++)
        outside -= search->inside[i] ? search->shares[i] : 0;
    if (entering == 0)
        return refuse_unreachable(graph, node, problem);
    divisor = by_gcd(outside, entering);
    search->p = outside / divisor;
    search->q = entering / divisor;
    return 0;
}

/* Takes as the first candidate the node with the least entering capacity relative to its need. */
static int first_candidate(struct optimum_search *search, struct by_problem *problem)
{
    const struct by_graph *graph = search->graph;
    uint32_t least = UINT32_MAX;
    int64_t least_in = 0, least_need = 0;

    for (uint32_t i = 0; i < graph->node_count; i++) {
        int64_t in, need;

        if (!graph->compute[i])
            continue;
        in = by_graph_entering(graph, i);
        need = search->share_sum - search->shares[i];
        if (need == 0) /* it has all data */
            continue;
        if (least == UINT32_MAX || (__int128)need * least_in > (__int128)least_need * in) {
            least = i;
            least_in = in;
            least_need = need;
        }
    }
    memset(search->inside, 0, graph->node_count * sizeof(*search->inside));
    search->inside[least] = true;
    return take_candidate(search, least, problem);
}

/* Makes the set that violated the last query the next candidate. */
static int improve(struct optimum_search *search, uint32_t node, struct by_problem *problem)
{
    int64_t p_before = search->p, q_before = search->q;
    int error;

    for (uint32_t i = 0; i < search->graph->node_count; i++)
        search->inside[i] = by_reach_inside(search->reach, i);
    error = take_candidate(search, node, problem);
    BY_ASSERT(error || (__int128)search->p * q_before > (__int128)p_before * search->q);
    if (!error)
        rescale(search);
    return error;
}

/*
 * One pass over the compute nodes is enough: a larger 1/x only loosens the condition, so a node
 * that has passed stays passed, and every cut violated later leaves it outside. It is therefore
 * contracted into the source, which keeps later flows local.
 */
static int search_all(struct optimum_search *search, struct by_problem *problem)
{
    const struct by_graph *graph = search->graph;
    uint32_t *order = by_alloc(graph->node_count, sizeof(*order)), count = by_oracle_order(graph->net, order);
    int error = first_candidate(search, problem);

    if (!error)
        rescale(search);
    for (uint32_t i = 0; i < count && !error; i++) {
        if (!graph->compute[order[i]])
            continue;
        while (!error && by_reach_flow(search->reach, order[i], search->share_sum * search->q) <
                             search->share_sum * search->q)
            error = improve(search, order[i], problem);
        search->reach->contracted[order[i]] = true;
    }
    free(order);
    return !error && search->reach->late ? refuse_late(problem) : error;
}

int by_optimum_shares(const struct by_graph *graph, const int64_t *shares, int64_t *p, int64_t *q,
                      bool *inside, struct by_problem *problem)
{
    struct optimum_search search = {.graph = graph, .shares = shares, .inside = inside};
    int error;

    for (uint32_t i = 0; i < graph->node_count; i++)
        if (__builtin_add_overflow(search.share_sum, shares[i], &search.share_sum))
            return refuse_range(problem);
    if (by_graph_sum(graph) > BY_CAPACITY_SUM_MAX / search.share_sum)
        return search.share_sum <= graph->compute_count
                   ? refuse_range(problem)
                   : by_problem_set(problem, BY_ERANGE, nowhere,
                                    "the bandwidths, in their common unit, times the %lld parts of the data "
                                    "need more than 60 bits; round the shares or the bandwidths",
                                    (long long)search.share_sum);
    search.reach = by_reach_new(graph->net);
    error = search_all(&search, problem);
    by_reach_free(search.reach);
    *p = search.p;
    *q = search.q;
    return error;
}

int by_optimum_allgather(const struct by_graph *graph, int64_t *p, int64_t *q, bool *inside,
                         struct by_problem *problem)
{
    int64_t *shares = by_alloc(graph->node_count, sizeof(*shares));
    int error;

    for (uint32_t i = 0; i < graph->node_count; i++)
        shares[i] = graph->compute[i];
    error = by_optimum_shares(graph, shares, p, q, inside, problem);
    free(shares);
    return error;
}

/* Lowers `*rate` to the least capacity that enters a compute node other than `root`, the cuts that
 * need no flow. */
static void least_node(const struct by_graph *graph, const struct by_reach *reach, uint32_t root,
                       int64_t *rate, bool *inside)
{
    const struct by_mesh *net = graph->net;

    for (uint32_t i = 0; i < graph->node_count; i++) {
        int64_t sum = 0;

        if (!graph->compute[i] || i == root)
            continue;
        for (uint32_t j = net->first[i]; j < net->first[i + 1]; j++)
            sum += reach->capacity[net->near[j].half];
        if (sum >= *rate)
            continue;
        *rate = sum;
        memset(inside, 0, graph->node_count * sizeof(*inside));
        inside[i] = true;
    }
}

/* Lowers `*rate` to the least flow from `root` to a compute node. A node that receives `*rate` is
 * in no smaller cut, so it becomes part of the source. */
static int least_flow(const struct by_graph *graph, struct by_reach *reach, uint32_t root, int64_t *rate,
                      bool *inside, struct by_problem *problem)
{
    uint32_t *order = by_alloc(graph->node_count, sizeof(*order)), count = by_oracle_order(graph->net, order);
    int error = 0;

    reach->contracted[root] = true;
    for (uint32_t i = 0; i < count && !error; i++) {
        uint32_t node = order[i];
        int64_t found;

        if (!graph->compute[node] || reach->contracted[node])
            continue;
        found = by_reach_flow(reach, node, *rate);
        if (found < *rate) {
            *rate = found;
            for (uint32_t j = 0; j < graph->node_count; j++)
                inside[j] = by_reach_inside(reach, j);
        }
        if (found == 0)
            error = refuse_unreachable(graph, node, problem);
        reach->contracted[node] = true;
    }
    free(order);
    if (error || !reach->late)
        return error;
    least_node(graph, reach, root, rate, inside);
    return refuse_late(problem);
}

int by_optimum_broadcast(const struct by_graph *graph, uint32_t root, int64_t *rate, bool *inside,
                         struct by_problem *problem)
{
    struct by_reach *reach;
    int error;

    if (by_graph_sum(graph) > BY_CAPACITY_SUM_MAX)
        return refuse_range(problem);
    reach = by_reach_new(graph->net);
    *rate = BY_CAPACITY_SUM_MAX + 1;
    error = least_flow(graph, reach, root, rate, inside, problem);
    by_reach_free(reach);
    return error;
}

/* Every cut between compute nodes has the first of them on one side, so flows from it and flows to
 * it suffice. */
int by_optimum_allreduce(const struct by_graph *graph, int64_t *rate, bool *inside,
                         struct by_problem *problem)
{
    struct by_reach *reach;
    uint32_t first = 0, n = graph->node_count;
    int64_t forward;
    int error;

    if (by_graph_sum(graph) > BY_CAPACITY_SUM_MAX)
        return refuse_range(problem);
    while (!graph->compute[first])
        first++;
    *rate = BY_CAPACITY_SUM_MAX + 1;
    reach = by_reach_new(graph->net);
    error = least_flow(graph, reach, first, rate, inside, problem);
    forward = *rate;
    if (!error && !by_graph_is_symmetric(graph)) {
        for (uint32_t half = 0; half < 2 * graph->net->pair_count; half++)
            by_reach_set(reach, half, graph->net->capacity[half ^ 1]);
        memset(reach->contracted, 0, n * sizeof(*reach->contracted));
        error = least_flow(graph, reach, first, rate, inside, problem);
        /* Here the set is the one that data must leave. */
        for (uint32_t i = 0; i < n && *rate < forward; i++)
            inside[i] = !inside[i];
    }
    by_reach_free(reach);
    return error;
}
