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
/*
 * Replaces the trees of `plan`, an allreduce or barrier, by at most 32 (pairs count once) if it has
 * more and these reach the same rate, or a better one: fewer trees have larger windows and use
 * fewer slots. Tries fabrics of up to 160 nodes where some switch aggregates or multicasts;
 * otherwise the plan stays.
 */
void by_few_keep(const struct by_topology *topology, const struct by_plan_options *options,
                 struct by_plan *plan);

#endif
