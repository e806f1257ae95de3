/*
 * Ordered reduction: plans whose trees that carry up add contiguous intervals of ranks at each
 * node. One thread for each call.
 */
#ifndef BY_PLANNER_NETWORK_ORDERED_H
#define BY_PLANNER_NETWORK_ORDERED_H

#include "control/plan/plan.h"
#include "control/planner/planner.h"

/* Whether at each node of each tree that carries up the ranks below, with its own, are an interval.
 */
bool by_ordered_is(const struct by_plan *plan, const struct by_topology *topology);
/*
 * Replaces the trees of a plan of allreduce, barrier, reduce or reduce-scatter by ordered ones
 * where they are not; the bound stays. Small fabrics by an exact program over cheapest ordered
 * trees (interval.h), large ones by trees over blocks of ranks (blocks.h). BY_EINVAL for
 * collectives that add nothing, BY_ERANGE.
 */
int by_ordered_make(const struct by_topology *topology, const struct by_plan_options *options,
                    struct by_plan *plan, struct by_problem *problem);

#endif
