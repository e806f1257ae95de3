/*
 * Spanning trees of a symmetric fabric without switches, used in both directions: how many fit into
 * its links, the partition of the nodes that allows no more, and an orientation of the links in
 * which as many out-trees from one root can be packed. Each call runs in one thread.
 *
 * Tutte and Nash-Williams 1961; Frank 1980 (orientations); Cunningham 1985 (optimal attack).
 */
#ifndef BY_PLANNER_OPTIMUM_SPANNING_H
#define BY_PLANNER_OPTIMUM_SPANNING_H

#include "control/planner/graph.h"

struct by_spanning {
    int64_t num, den; /* trees, in units of capacity: num / den in lowest terms */
    uint32_t *part;   /* by node: its part in the partition that allows no more trees */
    uint32_t part_count;
    int64_t *entering; /* by node: capacity directed towards it, in 1/den */
};

/*
 * The maximum number of trees, exactly: the minimum of (capacity between parts) / (parts - 1) over
 * all partitions. All nodes must be compute nodes, and the graph symmetric and connected.
 * BY_ERANGE, and BY_ETIMEDOUT after `deadline` (a time of by_plan_clock, 0 for none), with
 * `problem` filled. Free after success and failure.
 */
int by_spanning_find(const struct by_graph *graph, double deadline, struct by_spanning *spanning,
                     struct by_problem *problem);
void by_spanning_free(struct by_spanning *spanning);
/* Spreads the roots of 2 num trees evenly over the nodes: `roots` (by node, caller's memory). Trees
 * from many roots are lower, and much quicker to pack, than as many from one. */
void by_spanning_roots(const struct by_spanning *spanning, uint32_t node_count, int64_t *roots);
/*
 * Directs the links: `directed` ([from * node_count + to], caller's memory) receives capacities in
 * 1/(2 den) such that 2 num out-trees fit, roots[v] of them from each node v. The two directions
 * between two nodes add up to the link's capacity.
 */
void by_spanning_direct(const struct by_graph *graph, const struct by_spanning *spanning,
                        const int64_t *roots, int64_t *directed);

#endif
