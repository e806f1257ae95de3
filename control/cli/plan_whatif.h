/* `banyan plan --what-if`: what the capability of a switch, or of a class of switches, is worth. */
#ifndef BY_CLI_PLAN_WHATIF_H
#define BY_CLI_PLAN_WHATIF_H

#include "control/plan/plan.h"
#include "control/planner/planner.h"

/*
 * Plans with and without a capability and prints both rates, as a table or as one JSON object.
 * `what` is NAME[=CAPABILITY]: NAME a switch, a class (a name without its trailing digits) or
 * "all", which gives a row for each class and each switch; CAPABILITY any of multicast, aggregate,
 * joined by a comma, or both when left out. `file` is the topology's name in messages. Returns the
 * exit status. One thread.
 */
int by_cli_what_if(const struct by_topology *topology, const char *file,
                   const struct by_plan_options *options, const char *what, bool json);

#endif
