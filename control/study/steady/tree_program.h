/*
 * Reductions by column generation: the columns of a linear program are reduction trees, and those
 * that improve it are found one by one from the prices of ports, links and processors (Dantzig and
 * Wolfe 1960). It has a row for each of these, where SSR (program_reduce.c) has variables for each
 * link and partial result: 64 values on 192 links are 88 rows instead of 900,000 variables. A
 * floating-point solver sets the prices on the way; the weights and the prices of the result are
 * exact, and exact prices decide that no tree is missing. Neighbours: tree_pricing.c finds trees.
 * Private to control/study/steady. One thread for each call.
 */
#ifndef BY_STUDY_STEADY_TREE_PROGRAM_H
#define BY_STUDY_STEADY_TREE_PROGRAM_H

#include "control/study/steady/program.h"

/* As by_program_reduce. */
int by_program_columns(const struct by_steady_problem *problem, const struct by_platform *platform,
                       struct by_series *series, struct by_lanes *lanes, struct by_problem *trouble);

#endif
