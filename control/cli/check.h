/* Verifies a plan in memory before it is printed or written. One thread for each call. */
#ifndef BY_CLI_CHECK_H
#define BY_CLI_CHECK_H

#include "control/plan/plan.h"
#include "control/verify/verify.h"

/* Runs the verifier on a plan exactly as on the plan's file. */
void by_cli_check(const struct by_plan *plan, const struct by_topology *topology,
                  struct by_verify_report *report);
/* Returns "OPTIMAL", "VALID" or "INVALID". */
const char *by_verdict_name(enum by_verdict verdict);

#endif
