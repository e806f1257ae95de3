/*
 * The bottleneck cut that limits a collective, found exactly. ForestColl, NSDI'26, sections 5.2 and
 * 5.5, appendix E.1 and E.4; but with Newton's method instead of a binary search: each violated cut
 * yields the next, strictly better, candidate. Graphs are those of by_graph_make(_sparse), so data
 * flows along the arcs. After the deadline of graph->net, the functions return BY_ETIMEDOUT; the
 * first four have then filled their results with a valid cut, which need not be the tightest one.
 * Each graph belongs to one thread.
 */
#ifndef BY_PLANNER_OPTIMUM_OPTIMUM_H
#define BY_PLANNER_OPTIMUM_OPTIMUM_H

#include "control/planner/graph.h"

/*
 * Allgather: 1/x* = p/q per unit of capacity, in lowest terms; with capacities p times the graph's,
 * q trees fit for each root. `inside` (by node, caller's memory) receives the bottleneck set T that
 * data must enter. BY_EINVAL when a compute node cannot be reached (`problem` names it), BY_ERANGE
 * when the numbers exceed 60 bits.
 */
int by_optimum_allgather(const struct by_graph *graph, int64_t *p, int64_t *q, bool *inside,
                         struct by_problem *problem);
/*
 * The same for unequal shards: node v has shares[v] parts of the data (0 for switches, any count
 * for compute nodes, not all 0). With capacities p times the graph's, q * shares[v] trees fit at
 * each v.
 */
int by_optimum_shares(const struct by_graph *graph, const int64_t *shares, int64_t *p, int64_t *q,
                      bool *inside, struct by_problem *problem);
/* Broadcast from `root`: the least maximum flow to a compute node, and the side of the cut that
 * data must enter. */
int by_optimum_broadcast(const struct by_graph *graph, uint32_t root, int64_t *rate, bool *inside,
                         struct by_problem *problem);
/* Allreduce: the least cut between compute nodes, in either direction, and the side that data must
 * enter. */
int by_optimum_allreduce(const struct by_graph *graph, int64_t *rate, bool *inside,
                         struct by_problem *problem);
/*
 * Fixed k: the least U = p/q such that with capacities floor(U * capacity), `roots[v]` trees can
 * start at each v and reach every compute node. `scaled` (by half of graph->net, caller's memory)
 * receives these capacities. Returns 0, BY_EINVAL or BY_ERANGE as above. `start` is a lower bound
 * of U, 0/1 if none is known.
 */
int by_optimum_fixed(const struct by_graph *graph, const int64_t *roots, struct by_fraction start, int64_t *p,
                     int64_t *q, int64_t *scaled, struct by_problem *problem);
/* Whether these capacities (by half) add up to the same into and out of every node, as switch
 * removal requires. */
bool by_optimum_balanced(const struct by_mesh *net, const int64_t *scaled);
/*
 * The least k for which rounded-down capacities still reach the optimum p/q of by_optimum_shares. k
 * = q always does; often a smaller k does as well, which means fewer trees and smaller numbers.
 * With `balanced`, each node's rounded capacities must also add up to the same in and out. `inside`
 * is a bottleneck cut; `scaled` (by half) receives the capacities.
 */
int64_t by_optimum_least_k(const struct by_graph *graph, const int64_t *shares, int64_t p, int64_t q,
                           const bool *inside, bool balanced, int64_t *scaled);

#endif
