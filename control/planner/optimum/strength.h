/*
 * The strength of a fabric: the number of trees that fit when they may start at any compute node,
 * as out-trees in directed capacity and with switches that only forward. The proof comes with it:
 * disjoint sets of nodes, each of which all trees but its own must enter. On a symmetric fabric,
 * half of the strength is the optimum of allreduce over such trees. Each call runs in one thread.
 *
 * Tutte and Nash-Williams 1961 (undirected graphs), Frank 1978 (free roots), Cunningham 1985
 * (strength).
 */
#ifndef BY_PLANNER_OPTIMUM_STRENGTH_H
#define BY_PLANNER_OPTIMUM_STRENGTH_H

#include "control/planner/graph.h"

#define BY_PART_NONE UINT32_MAX

struct by_strength {
    int64_t num, den;    /* trees, in units of capacity: num / den in lowest terms */
    int64_t *roots;      /* by node: trees that start there, in 1/den; their sum is num */
    uint32_t *part;      /* by node: the number of its set, BY_PART_NONE outside all */
    uint32_t part_count; /* 0 when, for these roots, no disjoint sets hold all compute nodes */
};

/*
 * The maximum number of trees, exactly: the minimum of (capacity entering the sets) / (sets - 1)
 * over families of disjoint sets that each hold a compute node. The graph must be balanced (as much
 * in as out at each node): trees reach this rate only if switches can be removed. BY_EINVAL,
 * BY_ERANGE, and BY_ETIMEDOUT after `deadline` (a time of by_plan_clock, 0 for none), with
 * `problem` filled. Free after success and failure.
 */
int by_strength_find(const struct by_graph *graph, double deadline, struct by_strength *strength,
                     struct by_problem *problem);
void by_strength_free(struct by_strength *strength);

#endif
