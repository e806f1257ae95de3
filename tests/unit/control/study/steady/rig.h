/* Shared by the tests of steady states: every schedule is checked, executed, written and read
 * back. */
#ifndef TESTS_STEADY_RIG_H
#define TESTS_STEADY_RIG_H

#include "control/study/series/run.h"
#include "control/study/steady/steady.h"
#include "control/verify/series.h"

struct by_topology *steady_parse(const char *json);
/* Makes the schedule, or fails the test with the problem's text. Then calls steady_check. */
struct by_series *steady_made(const struct by_steady_problem *problem);
/* Requires that the checker finds the schedule OPTIMAL, that its file reads back unchanged, and
 * that runs of 1, 2, 4 ... 128 times its stages reach what LMR proves: at most the throughput, and
 * at least 1 - stages / periods of it. */
void steady_check(const struct by_series *series, const struct by_topology *topology,
                  enum by_verdict verdict);
void steady_assert_rational(const mpq_t value, unsigned long num, unsigned long den);
char *steady_text(const struct by_series *series, const struct by_topology *topology);

#endif
