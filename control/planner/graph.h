/*
 * The planner's view of a fabric: the nodes of the topology, integer capacities between linked
 * nodes (parallel links are added up, and all capacities are divided by their greatest common
 * divisor), and the switches that may branch. For collectives that send data up, the graph is
 * transposed, so that the planner always plans out-trees. Neighbours: all of planner/. Each graph
 * belongs to one thread.
 */
#ifndef BY_PLANNER_GRAPH_H
#define BY_PLANNER_GRAPH_H

#include "control/fabric/topology.h"
#include "control/planner/flow/mesh.h"

/* Sums of capacities, which the planner multiplies by node counts, must stay below this. */
#define BY_CAPACITY_SUM_MAX ((int64_t)1 << 60)

/* The direction of data in the trees being planned. */
enum by_graph_direction { BY_DIRECTION_DOWN = 1, BY_DIRECTION_UP, BY_DIRECTION_BOTH };

struct by_graph {
    const struct by_topology *topology;
    uint32_t node_count;
    struct by_mesh *net;
    int64_t *capacity; /* [from * node_count + to]; NULL in a sparse graph */
    bool *compute;     /* by node */
    /* by node: a switch that may be a tree node: it multicasts (down), aggregates (up), or does
     * both */
    bool *branch;
    /* by node: the additions that a branching switch can do, -1 for no limit. A tree
     * that carries up costs children - 1 for each unit. Trees may also pass the
     * switch as if it only forwarded. */
    int64_t *budget;
    uint32_t compute_count;
    struct by_fraction unit; /* bandwidth of one unit of capacity, in the topology's unit */
};

/* Makes the graph for data in direction `direction` (UP transposes it). Without `in_network` no
 * switch branches. */
struct by_graph *by_graph_make(const struct by_topology *topology, enum by_graph_direction direction,
                               bool in_network);
/* The same without the table `capacity`, which would be too large for a large fabric. */
struct by_graph *by_graph_make_sparse(const struct by_topology *topology, enum by_graph_direction direction,
                                      bool in_network);
void by_graph_free(struct by_graph *graph);
/* Returns the capacity from `from` to `to`. Not available for a sparse graph. */
static inline int64_t by_graph_capacity(const struct by_graph *graph, uint32_t from, uint32_t to)
{
    return graph->capacity[(size_t)from * graph->node_count + to];
}
/* Sums of the capacities into and out of `node`. */
int64_t by_graph_entering(const struct by_graph *graph, uint32_t node);
int64_t by_graph_leaving(const struct by_graph *graph, uint32_t node);
/* Sum of all capacities. */
int64_t by_graph_sum(const struct by_graph *graph);
/* Sum of the capacities into the set of nodes with inside[node]. */
int64_t by_graph_entering_set(const struct by_graph *graph, const bool *inside);
/* Whether the capacities between any two nodes are equal in both directions. */
bool by_graph_is_symmetric(const struct by_graph *graph);

#endif
