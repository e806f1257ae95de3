/*
 * The linear programs of LMR as printed (SSSP section 3.1, SSPA2A 3.5, SSR 4.2), with a variable
 * for each kind of message on each link. glpsol's exact simplex solves them in another process.
 * Shares only the struct of the problem with control/study/steady.
 */
#ifndef TESTS_STEADY_ORACLE_H
#define TESTS_STEADY_ORACLE_H

#include "control/study/steady/steady.h"

/* Returns the optimum with the 15 digits that glpsol prints, or -1 if glpsol is not installed.
 * Fails the test if there is no optimum. Integer bandwidths, task times and sizes only; switches do
 * not compute. */
double oracle_throughput(const struct by_steady_problem *problem);

#endif
