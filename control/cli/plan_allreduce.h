/* The parts of `banyan plan`'s output that are specific to allreduce. One thread for each call. */
#ifndef BY_CLI_PLAN_ALLREDUCE_H
#define BY_CLI_PLAN_ALLREDUCE_H

#include <stdio.h>

#include "control/plan/plan.h"
#include "control/planner/planner.h"

/* Returns the class of schedules for which the bound holds: every schedule, or trees. */
const char *by_plan_bound_words(const struct by_plan *plan);
/* Prints text about reduce-scatter and allgather; nothing for other collectives. */
void by_plan_allreduce_people(FILE *stream, const struct by_plan *plan);
/*
 * Prints members of the JSON object, followed by a comma and a new line; nothing for other
 * collectives.
 */
void by_plan_allreduce_json(FILE *stream, const struct by_plan *plan);

/* Prints the heights that the planner could choose from; nothing if the option was not given. */
void by_plan_trades_people(FILE *stream, const struct by_plan *plan);
void by_plan_trades_json(FILE *stream, const struct by_plan *plan);

#endif
