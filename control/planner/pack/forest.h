/*
 * From scaled capacities to finished trees: which switches stay as nodes, tight sets, removal of
 * the other switches, packing, and laying the trees back onto the fabric. What allgather,
 * reduce-scatter, broadcast and reduce share; allreduce builds on it too. One thread for each call.
 */
#ifndef BY_PLANNER_PACK_FOREST_H
#define BY_PLANNER_PACK_FOREST_H

#include "control/base/clock.h"
#include "control/planner/pack/tree.h"

struct by_forest {
    const struct by_graph *graph; /* names, kinds and the direction of data */
    const int64_t *capacity;      /* by half of graph->net, in trees */
    const int64_t *roots;         /* trees that start at each node */
    struct by_fraction weight;    /* bandwidth of one tree, in the topology's unit */
    enum by_tree_use use;
    double deadline;        /* a time of by_plan_clock, 0 for none: then BY_ETIMEDOUT */
    struct by_stage *stage; /* or NULL */
};

/*
 * Makes the trees and appends them to `list`. The oracle with the compute nodes as targets must
 * have passed. A switch that may branch, and that every tree can reach, stays as a node (theorem 2
 * of ForestColl, after Bang-Jensen, Frank and Jackson, lets it); any other is removed, for which
 * each node needs as much capacity in as out: BY_EINVAL names one that has not. Adds the time spent
 * to `seconds` of the plan.
 */
int by_forest_make(const struct by_forest *forest, struct by_tree_list *list, struct by_plan *plan,
                   struct by_problem *problem);

#endif
