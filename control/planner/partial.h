/*
 * Plans for a subset of the compute nodes. The plan is made on the fabric as a job on these nodes
 * sees it (fabric/members.h), then expressed in the node numbers of the whole fabric. Each call
 * runs in one thread.
 */
#ifndef BY_PLANNER_PARTIAL_H
#define BY_PLANNER_PARTIAL_H

#include "control/plan/plan.h"
#include "control/planner/planner.h"

/* by_plan_make for an `options->member` that leaves out compute nodes. */
int by_partial_plan(const struct by_topology *topology, const struct by_plan_options *options,
                    struct by_plan **plan, struct by_problem *problem);

#endif
