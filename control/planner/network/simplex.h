/*
 * An exact linear program for packings: maximises the sum of x over columns of small non-negative
 * integers, under row limits. Columns are offered one at a time, and each enters only if it
 * improves the value; the caller can price the next one by the dual. All numbers are integers over
 * one common determinant (Edmonds' integer pivoting), so nothing is rounded. Degenerate steps are
 * resolved lexicographically, which guarantees termination. Each program belongs to one thread.
 */
#ifndef BY_PLANNER_NETWORK_SIMPLEX_H
#define BY_PLANNER_NETWORK_SIMPLEX_H

#include <stdbool.h>
#include <stdint.h>

#include "control/fabric/topology.h"

/* Returned prices are at most this; larger ones are scaled down, see by_simplex_prices. */
#define BY_PRICE_MAX ((int64_t)1 << 36)

struct by_simplex;

/* `limits` are not negative. */
struct by_simplex *by_simplex_new(uint32_t row_count, const int64_t *limits);
void by_simplex_free(struct by_simplex *simplex);
/*
 * Offers a column (`counts` by row), which the caller identifies by `tag`. Returns false when it
 * would not improve the value; otherwise brings it into the basis and makes all prices
 * non-negative.
 */
bool by_simplex_offer(struct by_simplex *simplex, const int32_t *counts, uint32_t tag);
/*
 * Returns the dual by row, in a common integer scale: a column improves the value if the sum of its
 * counts times prices is below `*one`. Returns false when the prices had to be scaled down to
 * BY_PRICE_MAX, so that they are only a guide.
 */
bool by_simplex_prices(const struct by_simplex *simplex, int64_t *prices, int64_t *one);
/* Whether the value has reached `bound`. */
bool by_simplex_reaches(const struct by_simplex *simplex, int64_t bound);
/* The number of steps so far, which measures the work. */
uint32_t by_simplex_steps(const struct by_simplex *simplex);
/* A column of the solution. */
struct by_simplex_part {
    uint32_t tag;
    struct by_fraction amount;
};

/*
 * Returns the solution: fills `parts` (room for one per row) and returns their count; `*value` is
 * their sum. If an exact amount does not fit 63 bits, all are rounded down to multiples of 2^-20:
 * still within all limits, and slightly less.
 */
uint32_t by_simplex_solution(const struct by_simplex *simplex, struct by_simplex_part *parts,
                             struct by_fraction *value);

#endif
