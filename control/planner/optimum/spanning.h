/*
 * Spanning trees of a symmetric fabric without switches, used both ways: how many fit into its
 * links, which partition of the nodes allows no more, and how to direct the links so that as many
 * out-trees from one root are there to be packed. One thread for each call.
 *
 * Tutte and Nash-Williams 1961; Frank 1980 (orientations); Cunningham 1985 (optimal attack).
 */
#ifndef BY_PLANNER_OPTIMUM_SPANNING_H
#define BY_PLANNER_OPTIMUM_SPANNING_H

#include "control/planner/graph.h"

struct by_spanning {
    int64_t num, den; /* trees, in units of capacity: num / den in lowest terms */
    uint32_t *part;   /* by node: its part of the partition that allows no more */
    uint32_t part_count;
    int64_t *entering; /* by node: capacity directed towards it, in 1/den */
};

/*
 * The most trees, exactly: the least of (capacity between parts) / (parts - 1) over all partitions.
 * All nodes must be compute nodes, and the graph symmetric and connected. BY_ERANGE, and
 * BY_ETIMEDOUT after `deadline` (a time of by_plan_clock, 0 for none), with `problem` filled. Free
 * after success and failure.
 */
int by_spanning_find(const struct by_graph *graph, double deadline, struct by_spanning *spanning,
                     struct by_problem *problem);
void by_spanning_free(struct by_spanning *spanning);
/*
 * Directs the links: `directed` ([from * node_count + to], caller's memory) receives capacities in
 * 1/(2 den), of which each two opposite ones add up to a link's, such that 2 num out-trees from
 * node 0 fit.
 */
void by_spanning_direct(const struct by_graph *graph, const struct by_spanning *spanning, int64_t *directed);

#endif
