/*
 * The linear program of the Reduce-Broadcast rate as a method for the planner:
 * by_plan_options.forwarding. One thread for each call.
 */
#ifndef BY_STUDY_BOUND_PACK_H
#define BY_STUDY_BOUND_PACK_H

#include "control/plan/plan.h"
#include "control/planner/network/packing.h"
#include "control/planner/planner.h"

/*
 * See by_plan_forwarding_fn. Returns no trees if the program is too large or its numbers need too
 * many bits.
 */
by_plan_forwarding_fn by_program_pack;

#endif
