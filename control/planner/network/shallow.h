/* Low trees: gives up part of the rate for fewer hops. Each call runs in one thread. */
#ifndef BY_PLANNER_NETWORK_SHALLOW_H
#define BY_PLANNER_NETWORK_SHALLOW_H

#include "control/plan/plan.h"
#include "control/planner/planner.h"

/*
 * For each height below that of the plan's trees, finds a rate that trees of that height reach, and
 * lists it in plan->trades, with the plan's own height and rate last; heights at which lower trees
 * are as fast are left out, so that rates grow with heights. Uses the lowest height whose
 * rate is at least (1 - options->loss_max) of the plan's; if there is none, the plan stays. The
 * bound remains the bound for all trees. BY_ERANGE, BY_EINVAL for a loss of 1 or more.
 */
int by_shallow_make(const struct by_topology *topology, const struct by_plan_options *options,
                    struct by_plan *plan, struct by_problem *problem);

#endif
