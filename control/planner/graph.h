/*
 * The planner's view of a fabric: nodes of the topology, integer capacities between those that are
 * linked (parallel links added up, divided by their greatest common divisor), and which switches
 * may branch. For collectives that send data up, the graph is transposed: planning is always
 * planning of out-trees. Neighbours: all of planner/. One thread for each graph.
 */
#ifndef BY_PLANNER_GRAPH_H
#define BY_PLANNER_GRAPH_H

#include "control/fabric/topology.h"
#include "control/planner/flow/mesh.h"

/* Sums of capacities that planning multiplies by counts of nodes must stay below this. */
#define BY_CAPACITY_SUM_MAX ((int64_t)1 << 60)

/* What data does in the trees being planned. */
enum by_graph_direction { BY_DIRECTION_DOWN = 1, BY_DIRECTION_UP, BY_DIRECTION_BOTH };

struct by_graph {
    const struct by_topology *topology;
    uint32_t node_count;
    struct by_mesh *net;
    int64_t *capacity; /* [from * node_count + to]; NULL in a sparse graph */
    bool *compute;     /* by node */
    bool *branch; /* by node: a switch that may be a node of a tree: it multicasts (down), aggregates (up), or
                     does both */
    int64_t *budget; /* by node: what a branching switch adds at most (children - 1 for each unit of a tree
                        that carries up), -1 without limit; trees may also pass it as if
                        it only forwarded */
    uint32_t compute_count;
    struct by_fraction unit; /* bandwidth of one unit of capacity, in the topology's unit */
};

/* Makes the graph for data going in `direction` (UP transposes it). Without `in_network` no switch
 * branches.
 */
struct by_graph *by_graph_make(const struct by_topology *topology, enum by_graph_direction direction,
                               bool in_network);
/* The same without the table `capacity`, which a large fabric has no room for. */
struct by_graph *by_graph_make_sparse(const struct by_topology *topology, enum by_graph_direction direction,
                                      bool in_network);
void by_graph_free(struct by_graph *graph);
/* The capacity from `from` to `to`; not of a sparse graph. */
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
/* Whether each two nodes have equal capacity both ways. */
bool by_graph_is_symmetric(const struct by_graph *graph);

#endif
