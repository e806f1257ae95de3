/*
 * Spanning trees in undirected links. See spanning.h.
 *
 * When each link is directed (in parts), the capacity entering a set T is m(T) - within(T): the
 * capacity entering its nodes, minus the capacity that both starts and ends in T. So for X
 * out-trees from a root r only the numbers m(v) matter: m(T) >= within(T) + X for each T without r,
 * m(T) >= within(T) for each T with r. The right side is supermodular on intersecting sets, so the
 * least m is found greedily, one flow for each node, and the tight sets, merged where they
 * intersect, are a partition. If the sum of m exceeds the capacity, this partition yields the next,
 * strictly smaller, X (Newton's method); otherwise such an orientation exists.
 *
 * The flow for v finds the T with v that minimises 2 m(T - v) - 2 within(T) = sum of (2 m(u) -
 * d(u)) over T - v, plus the capacity between T and the rest, minus d(v); d is the capacity at a
 * node. Nodes not yet processed are kept out of T.
 */
#include "control/planner/optimum/spanning.h"

#include "control/base/alloc.h"
#include "control/base/clock.h"
#include "control/base/fraction.h"
#include "control/fabric/build.h"
#include "control/planner/flow/flow.h"
#include "offload/base/assert.h"
#include "offload/base/errors.h"

#define ROOT 0u

/* The links between nodes, a source (number node_count) and a sink (the next), with arcs to and
 * from all. */
struct spanning_search {
    const struct by_graph *graph;
    struct by_spanning *spanning;
    struct by_flow *flow;
    uint32_t *arc; /* by arc of the graph */
    int64_t *base; /* its capacity */
    uint32_t arc_count;
    uint32_t *source, *sink; /* by node: arcs */
    int64_t *degree;         /* by node: capacity, one way */
    int64_t whole;           /* sum over all links, one way */
    bool *side;
    double deadline; /* a time of by_plan_clock, 0 for none */
};

static void search_make(struct spanning_search *search, const struct by_graph *graph,
                        struct by_spanning *spanning)
{
    uint32_t n = graph->node_count, count = 0;

    *search = (struct spanning_search){.graph = graph, .spanning = spanning};
    for (size_t i = 0; i < (size_t)n * n; i++)
        count += graph->capacity[i] > 0;
    search->flow = by_flow_new(n + 2);
    search->arc = by_alloc(count, sizeof(*search->arc));
    search->base = by_alloc(count, sizeof(*search->base));
    search->source = by_alloc(n, sizeof(*search->source));
    search->sink = by_alloc(n, sizeof(*search->sink));
    search->degree = by_alloc(n, sizeof(*search->degree));
    search->side = by_alloc(n + 2, sizeof(*search->side));
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t j = 0; j < n; j++) {
            if (by_graph_capacity(graph, i, j) == 0)
                continue;
            search->base[search->arc_count] = by_graph_capacity(graph, i, j);
            search->arc[search->arc_count++] = by_flow_add(search->flow, i, j, 0);
            search->degree[i] += by_graph_capacity(graph, i, j);
        }
        search->whole += search->degree[i];
        search->source[i] = by_flow_add(search->flow, n, i, 0);
        search->sink[i] = by_flow_add(search->flow, i, n + 1, 0);
    }
    search->whole /= 2;
    spanning->part = by_alloc(n, sizeof(*spanning->part));
    spanning->entering = by_alloc(n, sizeof(*spanning->entering));
}

static void search_free(struct spanning_search *search)
{
    by_flow_free(search->flow);
    free(search->arc);
    free(search->base);
    free(search->source);
    free(search->sink);
    free(search->degree);
    free(search->side);
}

/* Merges the nodes of `side` and all their parts. A part's number is that of one of its nodes. */
static void join_parts(struct spanning_search *search, uint32_t node)
{
    uint32_t n = search->graph->node_count, *part = search->spanning->part;
    bool *joined = by_alloc(n, sizeof(*joined));

    for (uint32_t i = 0; i < n; i++)
        if (search->side[i])
            joined[part[i]] = true;
    for (uint32_t i = 0; i < n; i++)
        if (joined[part[i]])
            part[i] = node;
    free(joined);
}

/* Numbers the parts from 0 and sets the rate to (capacity between them) / (parts - 1). */
static void rate_of_parts(struct spanning_search *search)
{
    struct by_spanning *spanning = search->spanning;
    uint32_t n = search->graph->node_count, *number = by_alloc(n, sizeof(*number));
    int64_t between = 0, divisor;

    for (uint32_t i = 0; i < n; i++)
        number[i] = UINT32_MAX;
    spanning->part_count = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (number[spanning->part[i]] == UINT32_MAX)
            number[spanning->part[i]] = spanning->part_count++;
        spanning->part[i] = number[spanning->part[i]];
    }
    free(number);
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = 0; j < i; j++)
            if (spanning->part[i] != spanning->part[j])
                between += by_graph_capacity(search->graph, i, j);
    BY_ASSERT(between > 0 && spanning->part_count > 1); /* connected, and not one tight set */
    divisor = by_gcd(between, spanning->part_count - 1);
    spanning->num = between / divisor;
    spanning->den = (spanning->part_count - 1) / divisor;
}

/* Allows later sets to contain a node: from now on it costs 2 m - d, or gains if that
 * is negative. */
static void open_node(struct spanning_search *search, uint32_t node)
{
    int64_t cost = 2 * search->spanning->entering[node] - search->degree[node] * search->spanning->den;

    by_flow_set(search->flow, search->source[node], cost > 0 ? cost : 0);
    by_flow_set(search->flow, search->sink[node], cost < 0 ? -cost : 0);
}

/* Finds the least m of one node; `gain` is the gain of all open nodes inside. */
static void treat_node(struct spanning_search *search, uint32_t node, int64_t *gain)
{
    struct by_spanning *spanning = search->spanning;
    uint32_t n = search->graph->node_count;
    int64_t wanted = node == ROOT ? 0 : 2 * spanning->num, found, twice;

    by_flow_set(search->flow, search->source[node], 0);
    by_flow_set(search->flow, search->sink[node], BY_FLOW_INFINITE);
    found = by_flow_run(search->flow, n, n + 1, BY_FLOW_INFINITE) - *gain;
    twice = wanted + search->degree[node] * spanning->den - found;
    BY_ASSERT(twice >= 0 && twice % 2 == 0);
    spanning->entering[node] = twice / 2;
    by_flow_sink_side(search->flow, search->side);
    search->side[n] = search->side[n + 1] = false;
    join_parts(search, node);
    open_node(search, node);
    twice -= search->degree[node] * spanning->den;
    *gain += twice < 0 ? -twice : 0;
}

/* Finds the least m for the rate; returns the sum. Leaves the partition that requires this sum. */
static int64_t spread(struct spanning_search *search)
{
    struct by_spanning *spanning = search->spanning;
    uint32_t n = search->graph->node_count;
    int64_t sum = 0, gain = 0, closed = (search->whole * spanning->den + spanning->num) * 4;

    for (uint32_t i = 0; i < search->arc_count; i++)
        by_flow_set(search->flow, search->arc[i], search->base[i] * spanning->den);
    for (uint32_t i = 0; i < n; i++) {
        spanning->part[i] = i;
        by_flow_set(search->flow, search->source[i], closed);
        by_flow_set(search->flow, search->sink[i], 0);
    }
    for (uint32_t i = n; i-- > 0 && !by_plan_late(search->deadline);) { /* the root last */
        treat_node(search, i, &gain);
        sum += spanning->entering[i];
    }
    return sum;
}

int by_spanning_find(const struct by_graph *graph, double deadline, struct by_spanning *spanning,
                     struct by_problem *problem)
{
    static const struct by_place nowhere = {0, 0};
    struct spanning_search search;
    int error = 0;

    *spanning = (struct by_spanning){0};
    if (by_graph_sum(graph) > BY_CAPACITY_SUM_MAX / 8 / graph->compute_count)
        return by_problem_set(
            problem, BY_ERANGE, nowhere,
            "the bandwidths need more than 60 bits in their common unit; round them or use a larger unit");
    search_make(&search, graph, spanning);
    search.deadline = deadline;
    for (uint32_t i = 0; i < graph->node_count; i++)
        spanning->part[i] = i;
    rate_of_parts(&search);
    while (!error) {
        int64_t num = spanning->num, den = spanning->den, sum = spread(&search);

        if (by_plan_late(deadline)) {
            error = by_problem_set(problem, BY_ETIMEDOUT, nowhere,
                                   "the time limit passed before the bound was found; allow more time");
            break;
        }
        if (sum <= search.whole * den)
            break;
        rate_of_parts(&search);
        BY_ASSERT((__int128)spanning->num * den < (__int128)num * spanning->den);
    }
    if (!error)
        rate_of_parts(&search);
    search_free(&search);
    return error;
}

void by_spanning_free(struct by_spanning *spanning)
{
    free(spanning->part);
    free(spanning->entering);
    *spanning = (struct by_spanning){0};
}

void by_spanning_roots(const struct by_spanning *spanning, uint32_t node_count, int64_t *roots)
{
    int64_t trees = 2 * spanning->num;

    /* Number i of the trees starts at node i * node_count / trees: evenly spread. */
    for (uint32_t i = 0; i < node_count; i++)
        roots[i] = (int64_t)((__int128)trees * (i + 1) / node_count - (__int128)trees * i / node_count);
}

/*
 * Both directions start with half of each link. The surplus that enters some nodes is turned along
 * the links towards the nodes that lack capacity.
 *
 * With X trees, m(T) + r(T) >= within(T) + X for every set T, where r counts the trees that start
 * in T: for all of them at the root by the choice of m. Only the sum m + r matters, so other nodes
 * may be roots instead, for as much less capacity into them; and m + r is at least X at every node.
 */
void by_spanning_direct(const struct by_graph *graph, const struct by_spanning *spanning,
                        const int64_t *roots, int64_t *directed)
{
    uint32_t n = graph->node_count, *arc = by_alloc((size_t)n * n, sizeof(*arc));
    struct by_flow *flow = by_flow_new(n + 2);
    int64_t missing = 0, found;

    for (uint32_t i = 0; i < n; i++) {
        int64_t excess = roots[i] - 2 * spanning->entering[i] - (i == ROOT ? 2 * spanning->num : 0);

        for (uint32_t j = 0; j < n; j++) {
            size_t cell = (size_t)i * n + j;

            directed[cell] = graph->capacity[cell] * spanning->den;
            excess += directed[cell];
            if (directed[cell])
                arc[cell] = by_flow_add(flow, i, j, directed[cell]);
        }
        if (excess > 0)
            by_flow_add(flow, n, i, excess);
        else if (excess < 0)
            by_flow_add(flow, i, n + 1, -excess);
        missing += excess < 0 ? -excess : 0;
    }
    found = by_flow_run(flow, n, n + 1, missing);
    BY_ASSERT(found == missing); /* m(T) >= within(T) for all T */
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = 0; j < n; j++) {
            size_t cell = (size_t)i * n + j, back = (size_t)j * n + i;
            int64_t moved = graph->capacity[cell] ? by_flow_amount(flow, arc[cell]) : 0;

            directed[cell] += moved;
            directed[back] -= moved;
        }
    by_flow_free(flow);
    free(arc);
}
