/*
 * Allreduce and barrier: every host's data goes up a tree and comes down again. Trees may be rooted
 * anywhere, also at switches that aggregate and multicast. One thread for each call.
 */
#ifndef BY_PLANNER_NETWORK_ALLREDUCE_H
#define BY_PLANNER_NETWORK_ALLREDUCE_H

#include "control/plan/plan.h"
#include "control/planner/planner.h"

/*
 * Fills the plan's bound (the least cut between compute nodes), trees and rate. On symmetric
 * fabrics one tree serves both ways; else there are pairs of equal weight and root, first the tree
 * that carries up, then the one that carries down.
 */
int by_allreduce_plan(const struct by_topology *topology, const struct by_plan_options *options,
                      struct by_plan *plan, struct by_problem *problem);

#endif
