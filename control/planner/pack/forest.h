/*
 * Turns scaled capacities into finished trees: selects the switches that remain as nodes, finds
 * tight sets, removes the other switches, packs, and maps the trees back onto the fabric.
 * Allgather, reduce-scatter, broadcast and reduce share this; allreduce uses it too. Each call runs
 * in one thread.
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
 * have passed. A switch that may branch, and that every tree can reach, remains as a node (theorem
 * 2 of ForestColl, after Bang-Jensen, Frank and Jackson, permits it). Every other switch is
 * removed, which requires as much capacity in as out at each node: BY_EINVAL names a node that
 * violates this. Adds the time spent to `seconds` of the plan.
 */
int by_forest_make(const struct by_forest *forest, struct by_tree_list *list, struct by_plan *plan,
                   struct by_problem *problem);

#endif
