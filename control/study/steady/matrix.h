/*
 * Matrices of an exchange (all-to-all): the data that each compute node has for each other one, as
 * a JSON file (banyan-plan(1)). Each call runs in one thread.
 */
#ifndef BY_STUDY_STEADY_MATRIX_H
#define BY_STUDY_STEADY_MATRIX_H

#include "control/base/problem.h"
#include "control/fabric/topology.h"

/* Most ranks of a matrix (count): the numbers then need 256 MiB. */
#define BY_MATRIX_RANKS_MAX 4096u

/*
 * Reads an array with a row for each of the `count` compute nodes `ranks`, in their order; a row
 * has a number for each receiver in the same order. A number is an integer, a decimal, or a
 * fraction in a string; 0 is valid, and the diagonal does not move. Returns 0 and `*matrix` (sender
 * x count + receiver; the caller frees), or a negative BY_E* with `problem` filled.
 */
int by_matrix_read(const char *path, const struct by_topology *topology, const uint32_t *ranks,
                   uint32_t count, struct by_fraction **matrix, struct by_problem *problem);
/* The same from memory. */
int by_matrix_parse(const char *text, size_t bytes, const struct by_topology *topology, const uint32_t *ranks,
                    uint32_t count, struct by_fraction **matrix, struct by_problem *problem);

#endif
