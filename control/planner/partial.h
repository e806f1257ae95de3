/*
 * Plans for some of the compute nodes: made on the fabric that a job on them has
 * (fabric/members.h), and told in the numbers of the whole fabric. One thread for each call.
 */
#ifndef BY_PLANNER_PARTIAL_H
#define BY_PLANNER_PARTIAL_H

#include "control/plan/plan.h"
#include "control/planner/planner.h"

/* by_plan_make where `options->member` leaves out compute nodes. */
int by_partial_plan(const struct by_topology *topology, const struct by_plan_options *options,
                    struct by_plan **plan, struct by_problem *problem);

#endif
