/*
 * Linear programs as a method for the planner: by_plan_options.programs. That of the
 * Reduce-Broadcast rate (program.h) gives a bound, and trees where switches only forward; column
 * generation (columns.h) gives trees where they branch. One thread for each call.
 */
#ifndef BY_STUDY_BOUND_PACK_H
#define BY_STUDY_BOUND_PACK_H

#include "control/plan/plan.h"
#include "control/planner/network/packing.h"
#include "control/planner/planner.h"

/* See by_plan_programs_fn. Returns no trees, or no bound, if a program is too large or its numbers
 * need too many bits. */
by_plan_programs_fn by_program_pack;

#endif
