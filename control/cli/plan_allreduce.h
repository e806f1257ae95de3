/* What `banyan plan` says of allreduce beside what it says of all collectives. One thread for each
 * call. */
#ifndef BY_CLI_PLAN_ALLREDUCE_H
#define BY_CLI_PLAN_ALLREDUCE_H

#include <stdio.h>

#include "control/plan/plan.h"
#include "control/planner/planner.h"

/* For whom the bound holds: every schedule, or trees. */
const char *by_plan_bound_words(const struct by_plan *plan);
/* Lines about reduce-scatter and allgather, for people. Nothing for other collectives. */
void by_plan_allreduce_people(FILE *stream, const struct by_plan *plan);
/* Members of the JSON object, ended by a comma and a new line. Nothing for other collectives. */
void by_plan_allreduce_json(FILE *stream, const struct by_plan *plan);

/* `--latency-aware[=LOSS]`: reads LOSS ("10%", "0.1", "1/10"; NULL is a tenth) into the options.
 * -1, or the exit status. */
int by_plan_read_loss(const char *text, struct by_plan_options *options);
/* What heights there were to choose from; nothing when the plan did not ask. */
void by_plan_trades_people(FILE *stream, const struct by_plan *plan);
void by_plan_trades_json(FILE *stream, const struct by_plan *plan);

#endif
