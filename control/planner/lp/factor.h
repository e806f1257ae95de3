/*
 * Factors a sparse rational matrix: Gaussian elimination with the pivot that causes the least
 * fill-in (Markowitz 1957). Bases of network programs are nearly triangular, so the numbers stay
 * short. Neighbours: simplex.c. Each factorisation belongs to one thread.
 */
#ifndef BY_PLANNER_LP_FACTOR_H
#define BY_PLANNER_LP_FACTOR_H

#include <gmp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#define BY_FACTOR_NONE UINT32_MAX

struct by_factor;

/* An empty matrix of `size` rows and `columns` columns (more or fewer columns than rows are
 * allowed). */
struct by_factor *by_factor_new(uint32_t size, uint32_t columns);
void by_factor_free(struct by_factor *factor);
/* Sets an entry that was not set before; `value` is not 0. */
void by_factor_set(struct by_factor *factor, uint32_t row, uint32_t column, const mpq_t value);
/*
 * Eliminates. `row_of` (by column) and `column_of` (by row) receive the pairing of rows and
 * columns, BY_FACTOR_NONE for columns that depend on others and for rows that are left over.
 * Returns the rank.
 */
uint32_t by_factor_run(struct by_factor *factor, uint32_t *row_of, uint32_t *column_of);
/* The number of entries in the factors. */
size_t by_factor_entries(const struct by_factor *factor);
/* Solves M x = b for a square matrix of full rank; b (by row) is overwritten by x (by column). */
void by_factor_solve(const struct by_factor *factor, mpq_t *vector);
/* Solves y M = c for such a matrix; c (by column) is overwritten by y (by row). */
void by_factor_solve_left(const struct by_factor *factor, mpq_t *vector);

#endif
