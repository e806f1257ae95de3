/*
 * Low trees: part of the rate given up for fewer hops. One thread for each call.
 */
#ifndef BY_PLANNER_NETWORK_SHALLOW_H
#define BY_PLANNER_NETWORK_SHALLOW_H

#include "control/plan/plan.h"
#include "control/planner/planner.h"

/*
 * Finds, for each height below that of the plan's trees, a rate that trees of that height reach,
 * and lists them in plan->trades with the plan's own last. Takes the lowest whose rate is at least
 * (1 - options->loss_max) of the plan's; where there is none, the plan stays. The bound stays that
 * of all trees. BY_ERANGE, BY_EINVAL for a loss that is not below 1.
 */
int by_shallow_make(const struct by_topology *topology, const struct by_plan_options *options,
                    struct by_plan *plan, struct by_problem *problem);

#endif
