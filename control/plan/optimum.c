/* Bottleneck cuts of allgather, broadcast and allreduce. See optimum.h; the search for a fixed k is in
 * fixed.c. */
#include "control/plan/optimum.h"

#include "control/flow/flow.h"
#include "control/topology/alloc.h"
#include "control/topology/build.h"
#include "control/topology/fraction.h"
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

/* A network of the graph's arcs times `factor`, and a source (node number node_count) with an arc to each
 * compute node. */
struct sourced {
    struct by_flow *flow;
    uint32_t *arc;    /* by cell, UINT32_MAX where there is none */
    uint32_t *source; /* by node: the arc from the source */
};

static void sourced_make(const struct by_graph *graph, struct sourced *network)
{
    uint32_t n = graph->node_count;

    network->flow = by_flow_new(n + 1);
    network->arc = by_alloc((size_t)n * n, sizeof(*network->arc));
    network->source = by_alloc(n, sizeof(*network->source));
    for (uint32_t i = 0; i < n * n; i++)
        network->arc[i] = graph->capacity[i] ? by_flow_add(network->flow, i / n, i % n, 0) : UINT32_MAX;
    for (uint32_t i = 0; i < n; i++)
        network->source[i] = graph->compute[i] ? by_flow_add(network->flow, n, i, 0) : UINT32_MAX;
}

static void sourced_free(struct sourced *network)
{
    by_flow_free(network->flow);
    free(network->arc);
    free(network->source);
}

/* Sets arcs to p times their capacity, and the source's arcs to q but for contracted nodes, which are part of
 * the source. */
static void sourced_scale(const struct by_graph *graph, struct sourced *network, int64_t p, int64_t q,
                          const bool *contracted)
{
    uint32_t n = graph->node_count;

    for (uint32_t i = 0; i < n * n; i++)
        if (network->arc[i] != UINT32_MAX)
            by_flow_set(network->flow, network->arc[i], p * graph->capacity[i]);
    for (uint32_t i = 0; i < n; i++)
        if (network->source[i] != UINT32_MAX)
            by_flow_set(network->flow, network->source[i], contracted[i] ? BY_FLOW_INFINITE : q);
}

/* The candidate that the set `inside` gives: its compute nodes need what all others send, over the capacity
 * that enters it. */
static int candidate(const struct by_graph *graph, const bool *inside, uint32_t node, int64_t *p, int64_t *q,
                     struct by_problem *problem)
{
    int64_t entering = by_graph_entering_set(graph, inside), outside = graph->compute_count, divisor;

    for (uint32_t i = 0; i < graph->node_count; i++)
        outside -= graph->compute[i] && inside[i];
    if (entering == 0)
        return refuse_unreachable(graph, node, problem);
    divisor = by_gcd(outside, entering);
    *p = outside / divisor;
    *q = entering / divisor;
    return 0;
}

/* The node that hears least, as the first candidate. */
static int first_candidate(const struct by_graph *graph, int64_t *p, int64_t *q, bool *inside,
                           struct by_problem *problem)
{
    uint32_t least = UINT32_MAX;

    for (uint32_t i = 0; i < graph->node_count; i++)
        if (graph->compute[i] &&
            (least == UINT32_MAX || by_graph_entering(graph, i) < by_graph_entering(graph, least)))
            least = i;
    memset(inside, 0, graph->node_count * sizeof(*inside));
    inside[least] = true;
    return candidate(graph, inside, least, p, q, problem);
}

/*
 * One pass over the compute nodes is enough: a larger 1/x only loosens the condition, so a node that has
 * passed stays passed, and every cut violated later leaves it outside. It is therefore contracted into the
 * source, which keeps later flows local.
 */
int by_optimum_allgather(const struct by_graph *graph, int64_t *p, int64_t *q, bool *inside,
                         struct by_problem *problem)
{
    bool *contracted = by_alloc(graph->node_count, sizeof(*contracted));
    bool *side = by_alloc(graph->node_count + 1, sizeof(*side));
    struct sourced network;
    int64_t n = graph->compute_count;
    int error;

    if (by_graph_sum(graph) > BY_CAPACITY_SUM_MAX / n) {
        free(side);
        free(contracted);
        return refuse_range(problem);
    }
    sourced_make(graph, &network);
    error = first_candidate(graph, p, q, inside, problem);
    if (!error)
        sourced_scale(graph, &network, *p, *q, contracted);
    for (uint32_t node = 0; node < graph->node_count && !error; node++) {
        if (!graph->compute[node])
            continue;
        while (!error && by_flow_run(network.flow, graph->node_count, node, n * *q) < n * *q) {
            int64_t p_before = *p, q_before = *q;

            by_flow_sink_side(network.flow, side);
            memcpy(inside, side, graph->node_count * sizeof(*inside));
            error = candidate(graph, inside, node, p, q, problem);
            BY_ASSERT(error || (__int128)*p * q_before > (__int128)p_before * *q);
            if (!error)
                sourced_scale(graph, &network, *p, *q, contracted);
        }
        contracted[node] = true;
        by_flow_set(network.flow, network.source[node], BY_FLOW_INFINITE);
    }
    sourced_free(&network);
    free(side);
    free(contracted);
    return error;
}

/* A network of the graph's arcs alone. */
static struct by_flow *plain_network(const struct by_graph *graph)
{
    uint32_t n = graph->node_count;
    struct by_flow *flow = by_flow_new(n);

    for (uint32_t i = 0; i < n * n; i++)
        if (graph->capacity[i])
            by_flow_add(flow, i / n, i % n, graph->capacity[i]);
    return flow;
}

int by_optimum_broadcast(const struct by_graph *graph, uint32_t root, int64_t *rate, bool *inside,
                         struct by_problem *problem)
{
    struct by_flow *flow;
    int error = 0;

    if (by_graph_sum(graph) > BY_CAPACITY_SUM_MAX)
        return refuse_range(problem);
    flow = plain_network(graph);
    *rate = BY_FLOW_INFINITE;
    for (uint32_t node = 0; node < graph->node_count && !error; node++) {
        int64_t found;

        if (!graph->compute[node] || node == root)
            continue;
        found = by_flow_run(flow, root, node, *rate);
        if (found < *rate) {
            *rate = found;
            by_flow_sink_side(flow, inside);
        }
        if (found == 0)
            error = refuse_unreachable(graph, node, problem);
    }
    by_flow_free(flow);
    return error;
}

int by_optimum_allreduce(const struct by_graph *graph, int64_t *rate, bool *inside,
                         struct by_problem *problem)
{
    struct by_flow *flow;
    uint32_t first = 0;
    int error = 0;

    if (by_graph_sum(graph) > BY_CAPACITY_SUM_MAX)
        return refuse_range(problem);
    flow = plain_network(graph);
    *rate = BY_FLOW_INFINITE;
    while (!graph->compute[first])
        first++;
    for (uint32_t node = first + 1; node < graph->node_count && !error; node++) {
        for (int way = 0; way < 2 && graph->compute[node] && !error; way++) {
            int64_t found = by_flow_run(flow, way ? node : first, way ? first : node, *rate);

            if (found < *rate) {
                *rate = found;
                by_flow_sink_side(flow, inside);
            }
            if (found == 0)
                error = refuse_unreachable(graph, way ? first : node, problem);
        }
    }
    by_flow_free(flow);
    return error;
}
