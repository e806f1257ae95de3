/* Ordered reduction: plans in which each node of the trees that carry up adds contiguous intervals
 * of ranks. Each call runs in one thread. */
#ifndef BY_PLANNER_NETWORK_ORDERED_H
#define BY_PLANNER_NETWORK_ORDERED_H

#include "control/plan/plan.h"
#include "control/planner/planner.h"

/* Whether, at each node of each tree that carries up, its own rank and the ranks below form an
 * interval. */
bool by_ordered_is(const struct by_plan *plan, const struct by_topology *topology);
/*
 * Replaces the trees of a plan of allreduce, barrier, reduce or reduce-scatter by ordered ones if
 * they are not ordered; the bound stays. Small fabrics use an exact program over cheapest ordered
 * trees (interval.h), large ones use trees over blocks of ranks (blocks.h). BY_EINVAL for
 * collectives that add nothing, BY_ERANGE.
 */
int by_ordered_make(const struct by_topology *topology, const struct by_plan_options *options,
                    struct by_plan *plan, struct by_problem *problem);

#endif
