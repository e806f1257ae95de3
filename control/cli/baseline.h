/* Baseline algorithms in `plan` and `compare`. Single-threaded. */
#ifndef BY_CLI_BASELINE_H
#define BY_CLI_BASELINE_H

#include "control/study/baseline/baseline.h"

/*
 * Replaces `*plan`, the best plan, by the plan of `algorithm` with the same bound. For an algorithm
 * of rounds it leaves `*plan` unchanged, prints the schedule and, with `output`, writes it. Returns
 * -1 to continue, else the exit status.
 */
int by_cli_baseline(const struct by_topology *topology, const char *path, enum by_algorithm algorithm,
                    double time_limit_s, bool show, const char *output, bool json, struct by_plan **plan);

#endif
