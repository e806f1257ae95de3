/* The planner's view of a fabric. See graph.h. */
#include "control/planner/graph.h"

#include "control/base/alloc.h"
#include "control/base/fraction.h"
#include "offload/base/assert.h"

/* Divides all capacities and budgets by their greatest common divisor and sets the unit to match.
 * All were multiplied by `scale` before. */
static void normalise(struct by_graph *graph, int64_t scale)
{
    uint32_t halves = 2 * graph->net->pair_count;
    int64_t divisor = 0;
    int error;

    for (uint32_t i = 0; i < halves; i++)
        divisor = by_gcd(divisor, graph->net->capacity[i]);
    for (uint32_t i = 0; i < graph->node_count; i++)
        divisor = by_gcd(divisor, graph->budget[i] > 0 ? graph->budget[i] : 0);
    if (divisor == 0)
        divisor = 1;
    for (uint32_t i = 0; i < graph->node_count; i++)
        graph->budget[i] = graph->budget[i] > 0 ? graph->budget[i] / divisor : -1;
    for (uint32_t i = 0; i < halves; i++)
        graph->net->capacity[i] /= divisor;
    error = by_fraction_set(divisor, scale, &graph->unit);
    BY_ASSERT(error == 0);
}

/* Returns a scale in which budgets are integers too. The scale ignores a budget whose factor does
 * not fit; that budget is rounded down. */
static int64_t scale_of(const struct by_topology *topology)
{
    int64_t scale = topology->scale;

    for (uint32_t i = 0; i < topology->node_count; i++) {
        struct by_fraction rate = topology->nodes[i].aggregate_rate;
        int64_t factor = rate.num > 0 ? rate.den / by_gcd(rate.den, scale) : 1;

        if (factor <= ((int64_t)1 << 20) && scale <= ((int64_t)1 << 40) / factor)
            scale *= factor;
    }
    return scale;
}

static int64_t budget_of(const struct by_node *node, int64_t scale)
{
    __int128 budget = (__int128)node->aggregate_rate.num * scale;

    if (node->aggregate_rate.num <= 0)
        return -1;
    budget /= node->aggregate_rate.den;
    return budget < BY_CAPACITY_SUM_MAX ? (int64_t)budget : -1; /* more than all links can deliver */
}

static void make_net(struct by_graph *graph, enum by_graph_direction direction, int64_t scale)
{
    const struct by_topology *topology = graph->topology;
    struct by_mesh_arc *arcs = by_alloc(topology->arc_count, sizeof(*arcs));

    for (uint32_t i = 0; i < topology->arc_count; i++) {
        const struct by_arc *arc = &topology->arcs[i];

        arcs[i].from = direction == BY_DIRECTION_UP ? arc->to : arc->from;
        arcs[i].to = direction == BY_DIRECTION_UP ? arc->from : arc->to;
        arcs[i].capacity = arc->capacity * (scale / topology->scale);
    }
    graph->net = by_mesh_new(topology->node_count, arcs, topology->arc_count);
    free(arcs);
}

struct by_graph *by_graph_make_sparse(const struct by_topology *topology, enum by_graph_direction direction,
                                      bool in_network)
{
    struct by_graph *graph = by_alloc(1, sizeof(*graph));
    size_t n = topology->node_count;
    int64_t scale = scale_of(topology);

    graph->topology = topology;
    graph->node_count = topology->node_count;
    graph->compute = by_alloc(n, sizeof(*graph->compute));
    graph->branch = by_alloc(n, sizeof(*graph->branch));
    graph->budget = by_alloc(n, sizeof(*graph->budget));
    for (size_t i = 0; i < n; i++) {
        const struct by_node *node = &topology->nodes[i];

        graph->compute[i] = node->compute;
        graph->compute_count += node->compute;
        graph->budget[i] = in_network && node->aggregate ? budget_of(node, scale) : -1;
        graph->branch[i] = !node->compute && in_network &&
                           (direction == BY_DIRECTION_UP || node->multicast) &&
                           (direction == BY_DIRECTION_DOWN || node->aggregate);
    }
    make_net(graph, direction, scale);
    normalise(graph, scale);
    for (size_t i = 0; i < n && direction == BY_DIRECTION_DOWN; i++)
        graph->budget[i] = -1;
    return graph;
}

struct by_graph *by_graph_make(const struct by_topology *topology, enum by_graph_direction direction,
                               bool in_network)
{
    struct by_graph *graph = by_graph_make_sparse(topology, direction, in_network);
    const struct by_mesh *net = graph->net;
    size_t n = graph->node_count;

    graph->capacity = by_alloc(n * n, sizeof(*graph->capacity));
    for (uint32_t half = 0; half < 2 * net->pair_count; half++)
        graph->capacity[net->tail[half] * n + by_mesh_head(net, half)] = net->capacity[half];
    return graph;
}

void by_graph_free(struct by_graph *graph)
{
    if (!graph)
        return;
    by_mesh_free(graph->net);
    free(graph->capacity);
    free(graph->compute);
    free(graph->branch);
    free(graph->budget);
    free(graph);
}

int64_t by_graph_entering(const struct by_graph *graph, uint32_t node)
{
    return by_mesh_entering(graph->net, node);
}

int64_t by_graph_leaving(const struct by_graph *graph, uint32_t node)
{
    return by_mesh_leaving(graph->net, node);
}

int64_t by_graph_sum(const struct by_graph *graph)
{
    int64_t sum = 0;

    for (uint32_t half = 0; half < 2 * graph->net->pair_count; half++)
        sum += graph->net->capacity[half]; /* the builder of the topology bounds it */
    return sum;
}

int64_t by_graph_entering_set(const struct by_graph *graph, const bool *inside)
{
    return by_mesh_entering_set(graph->net, inside);
}

bool by_graph_is_symmetric(const struct by_graph *graph)
{
    for (uint32_t pair = 0; pair < graph->net->pair_count; pair++)
        if (graph->net->capacity[2 * pair] != graph->net->capacity[2 * pair + 1])
            return false;
    return true;
}
