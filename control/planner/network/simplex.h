/*
 * An exact linear program for packings: maximise the sum of x over columns of small non-negative
 * integers, under row limits. Columns come one at a time, each entering only when it improves the
 * value, so that the caller can price the next one by the dual. All numbers are integers over one
 * common determinant (Edmonds' integer pivoting); nothing rounds. Degenerate steps are broken
 * lexicographically, so it ends. One thread for each program.
 */
#ifndef BY_PLANNER_NETWORK_SIMPLEX_H
#define BY_PLANNER_NETWORK_SIMPLEX_H

#include <stdbool.h>
#include <stdint.h>

#include "control/fabric/topology.h"

/* Prices handed out are at most this: larger ones are shortened, see by_simplex_prices. */
#define BY_PRICE_MAX ((int64_t)1 << 36)

struct by_simplex;

/* `limits` are not negative. */
struct by_simplex *by_simplex_new(uint32_t row_count, const int64_t *limits);
void by_simplex_free(struct by_simplex *simplex);
/*
 * Offers a column (`counts` by row) known to the caller as `tag`. Returns false when it would not
 * improve the value; else brings it in and leaves all prices non-negative.
 */
bool by_simplex_offer(struct by_simplex *simplex, const int32_t *counts, uint32_t tag);
/*
 * The dual by row, in a common integer scale: a column improves when the sum of its counts times
 * prices is below `*one`. Returns false when the prices had to be shortened to BY_PRICE_MAX, so
 * that they only guide.
 */
bool by_simplex_prices(const struct by_simplex *simplex, int64_t *prices, int64_t *one);
/* Whether the value has reached `bound`. */
bool by_simplex_reaches(const struct by_simplex *simplex, int64_t bound);
/* Steps taken: the measure of the work done. */
uint32_t by_simplex_steps(const struct by_simplex *simplex);
/* A column of the solution. */
struct by_simplex_part {
    uint32_t tag;
    struct by_fraction amount;
};

/*
 * The solution: fills `parts` (room for one a row) and returns how many there are; `*value` is
 * their sum. Where an exact amount does not fit 63 bits, all are rounded down to multiples of
 * 2^-20: still within all limits, and a little less.
 */
uint32_t by_simplex_solution(const struct by_simplex *simplex, struct by_simplex_part *parts,
                             struct by_fraction *value);

#endif
