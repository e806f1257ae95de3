/*
 * The linear programs of LMR as they are printed (SSSP section 3.1, SSPA2A 3.5, SSR 4.2), with a
 * variable for every kind of message on every link, solved by glpsol's exact simplex in a process
 * of its own. Shares nothing with control/study/steady but the struct that says what is asked for.
 */
#ifndef TESTS_STEADY_ORACLE_H
#define TESTS_STEADY_ORACLE_H

#include "control/study/steady/steady.h"

/* The optimum with the 15 digits that glpsol prints, or -1 when glpsol is not installed. Fails the
 * test when it finds no optimum. Whole-number bandwidths, task times and sizes only; no switch
 * computes. */
double oracle_throughput(const struct by_steady_problem *problem);

#endif
