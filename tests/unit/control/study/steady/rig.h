/* What the tests of steady states share: every schedule is checked, executed, written and read
 * back. */
#ifndef TESTS_STEADY_RIG_H
#define TESTS_STEADY_RIG_H

#include "control/study/series/run.h"
#include "control/study/steady/steady.h"
#include "control/verify/series.h"

struct by_topology *steady_parse(const char *json);
/* Makes the schedule, or fails the test with the problem's text; then steady_check. */
struct by_series *steady_made(const struct by_steady_problem *problem);
/* Asserts that the checker finds it OPTIMAL, that its file reads back as the same, and that runs of
 * 1, 2, 4
 * ... 128 times its stages reach what LMR's proofs promise: never more than the throughput, and at
 * least 1 - stages / periods of it. */
void steady_check(const struct by_series *series, const struct by_topology *topology,
                  enum by_verdict verdict);
void steady_assert_rational(const mpq_t value, unsigned long num, unsigned long den);
char *steady_text(const struct by_series *series, const struct by_topology *topology);

#endif
