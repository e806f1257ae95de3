/*
 * `banyan plan --what-if`: by how much a capability of a switch, or of a class of switches, raises
 * the rate.
 */
#ifndef BY_CLI_PLAN_WHATIF_H
#define BY_CLI_PLAN_WHATIF_H

#include "control/plan/plan.h"
#include "control/planner/planner.h"

/*
 * Plans with and without a capability, and prints both rates as a table or as one JSON object.
 * `what` is NAME[=CAPABILITY].
 * - NAME is a switch, a class (a switch's name without its trailing digits) or "all", which prints
 *   a row for each class and each switch.
 * - CAPABILITY is multicast, aggregate or both, separated by a comma; if omitted, both.
 *
 * `file` is the topology's name in messages. Returns the exit status. One thread.
 */
int by_cli_what_if(const struct by_topology *topology, const char *file,
                   const struct by_plan_options *options, const char *what, bool json);

#endif
