/*
 * The program of the Reduce-Broadcast rate as a means of the planner: by_plan_options.forwarding.
 * One thread for each call.
 */
#ifndef BY_STUDY_BOUND_PACK_H
#define BY_STUDY_BOUND_PACK_H

#include "control/plan/plan.h"
#include "control/planner/network/packing.h"
#include "control/planner/planner.h"

/* See by_plan_forwarding_fn. Has nothing where the program is large or its numbers need too many
 * bits. */
by_plan_forwarding_fn by_program_pack;

#endif
