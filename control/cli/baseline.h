/* What plan and compare share about baselines. Single-threaded. */
#ifndef BY_CLI_BASELINE_H
#define BY_CLI_BASELINE_H

#include "control/study/baseline/baseline.h"

/*
 * Replaces `*plan`, which is the best plan, by that of `algorithm` with the same bound; or, for an
 * algorithm of rounds, leaves it alone, and prints and (with `output`) writes the schedule itself.
 * -1 to go on, else the exit status.
 */
int by_cli_baseline(const struct by_topology *topology, const char *path, enum by_algorithm algorithm,
                    double time_limit_s, bool show, const char *output, bool json, struct by_plan **plan);
/* Prints "a, b or c": the names of all algorithms. */
const char *by_cli_algorithms(void);

#endif
