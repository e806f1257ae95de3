/* The planner's view of a fabric. See graph.h. */
#include "control/plan/graph.h"

#include "control/topology/alloc.h"
#include "control/topology/fraction.h"
#include "offload/base/assert.h"

/* Divides all capacities by their greatest common divisor and sets the unit to match. */
static void normalise(struct by_graph *graph)
{
    size_t cells = (size_t)graph->node_count * graph->node_count;
    int64_t divisor = 0;
    int error;

    for (size_t i = 0; i < cells; i++)
        divisor = by_gcd(divisor, graph->capacity[i]);
    if (divisor == 0)
        divisor = 1;
    for (size_t i = 0; i < cells; i++)
        graph->capacity[i] /= divisor;
    error = by_fraction_set(divisor, graph->topology->scale, &graph->unit);
    BY_ASSERT(error == 0);
}

struct by_graph *by_graph_make(const struct by_topology *topology, enum by_direction direction,
                               bool in_network)
{
    struct by_graph *graph = by_alloc(1, sizeof(*graph));
    size_t n = topology->node_count;

    graph->topology = topology;
    graph->node_count = topology->node_count;
    graph->capacity = by_alloc(n * n, sizeof(*graph->capacity));
    graph->compute = by_alloc(n, sizeof(*graph->compute));
    graph->branch = by_alloc(n, sizeof(*graph->branch));
    for (size_t i = 0; i < n; i++) {
        const struct by_node *node = &topology->nodes[i];

        graph->compute[i] = node->compute;
        graph->compute_count += node->compute;
        graph->branch[i] = !node->compute && in_network &&
                           (direction == BY_DIRECTION_UP || node->multicast) &&
                           (direction == BY_DIRECTION_DOWN || node->aggregate);
    }
    for (uint32_t i = 0; i < topology->arc_count; i++) {
        const struct by_arc *arc = &topology->arcs[i];
        uint32_t from = direction == BY_DIRECTION_UP ? arc->to : arc->from;
        uint32_t to = direction == BY_DIRECTION_UP ? arc->from : arc->to;

        graph->capacity[from * n + to] += arc->capacity;
    }
    normalise(graph);
    return graph;
}

void by_graph_free(struct by_graph *graph)
{
    if (!graph)
        return;
    free(graph->capacity);
    free(graph->compute);
    free(graph->branch);
    free(graph);
}

int64_t by_graph_entering(const struct by_graph *graph, uint32_t node)
{
    int64_t sum = 0;

    for (uint32_t i = 0; i < graph->node_count; i++)
        sum += by_graph_capacity(graph, i, node);
    return sum;
}

int64_t by_graph_leaving(const struct by_graph *graph, uint32_t node)
{
    int64_t sum = 0;

    for (uint32_t i = 0; i < graph->node_count; i++)
        sum += by_graph_capacity(graph, node, i);
    return sum;
}

int64_t by_graph_sum(const struct by_graph *graph)
{
    int64_t sum = 0;

    for (uint32_t i = 0; i < graph->node_count; i++)
        sum += by_graph_leaving(graph, i);
    return sum;
}

int64_t by_graph_entering_set(const struct by_graph *graph, const bool *inside)
{
    int64_t sum = 0;

    for (uint32_t from = 0; from < graph->node_count; from++)
        for (uint32_t to = 0; to < graph->node_count; to++)
            if (!inside[from] && inside[to])
                sum += by_graph_capacity(graph, from, to);
    return sum;
}

bool by_graph_is_symmetric(const struct by_graph *graph)
{
    for (uint32_t i = 0; i < graph->node_count; i++)
        for (uint32_t j = 0; j < i; j++)
            if (by_graph_capacity(graph, i, j) != by_graph_capacity(graph, j, i))
                return false;
    return true;
}
