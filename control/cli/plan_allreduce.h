/* What `banyan plan` says of allreduce beside what it says of all collectives. One thread for each call. */
#ifndef BY_CLI_PLAN_ALLREDUCE_H
#define BY_CLI_PLAN_ALLREDUCE_H

#include <stdio.h>

#include "control/plan/plan.h"

/* For whom the bound holds: every schedule, or trees. */
const char *by_plan_bound_words(const struct by_plan *plan);
/* Lines about reduce-scatter and allgather, for people. Nothing for other collectives. */
void by_plan_allreduce_people(FILE *stream, const struct by_plan *plan);
/* Members of the JSON object, ended by a comma and a new line. Nothing for other collectives. */
void by_plan_allreduce_json(FILE *stream, const struct by_plan *plan);

#endif
