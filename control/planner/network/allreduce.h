/*
 * Allreduce and barrier: every host's data is sent up a tree and the result is sent down again.
 * Trees may be rooted anywhere, including switches that aggregate and multicast. Each call runs in
 * one thread.
 */
#ifndef BY_PLANNER_NETWORK_ALLREDUCE_H
#define BY_PLANNER_NETWORK_ALLREDUCE_H

#include "control/plan/plan.h"
#include "control/planner/planner.h"

/*
 * Fills the plan's bound (the least cut between compute nodes), trees and rate. On symmetric
 * fabrics one tree serves both directions. Otherwise there are pairs of trees of equal weight and
 * root, first the tree that carries up, then the one that carries down.
 */
int by_allreduce_plan(const struct by_topology *topology, const struct by_plan_options *options,
                      struct by_plan *plan, struct by_problem *problem);

#endif
