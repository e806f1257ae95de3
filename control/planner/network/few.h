/* Allreduce on few trees: a part of the rate buys fewer trees. Each call runs in one thread. */
#ifndef BY_PLANNER_NETWORK_FEW_H
#define BY_PLANNER_NETWORK_FEW_H

#include "control/planner/planner.h"

/*
 * Replaces the trees of `plan`, an allreduce or barrier, by at most options->trees_max trees (pairs
 * count once) with the best rate that it finds, if the plan has more. The bound and its proof stay.
 * Returns 0, or a negative BY_E* with `problem` filled.
 */
int by_few_make(const struct by_topology *topology, const struct by_plan_options *options,
                struct by_plan *plan, struct by_problem *problem);

#endif
