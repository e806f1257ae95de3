/*
 * What each rank gives and what each must get, element by element, computed by plain loops that
 * share no code with the library. Pure; any thread.
 *
 * Exact data: integers are any bits (they wrap); floats are small whole numbers for sums, signs and
 * powers of two for products, so that every order of operations gives the same exact result. Random
 * data: float sums of any fractions in [-1, 1); a result may differ from the sum in double
 * precision by the bound of Higham, Accuracy and Stability of Numerical Algorithms, section 4.2: n
 * u sum |x|, with u the unit roundoff of the type (a partial sum is rounded to it at every hop). In
 * mode exact it may differ by u |result|, half a unit in the last place: these data lie close
 * enough together that nothing else is rounded (but for f64, where the sum in double precision,
 * which it is held against, is itself rounded at each step).
 */
#ifndef BY_PERF_ORACLE_H
#define BY_PERF_ORACLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct perf_oracle {
    uint8_t op;    /* enum by_op; 0: elements are only moved */
    uint8_t dtype; /* enum by_dtype */
    uint8_t mode;  /* enum by_mode; 0: as FAST */
    bool random_data;
    uint32_t ranks;
    uint32_t salt; /* differs from run to run, so that stale results are seen */
};

/* Writes what `rank` gives: elements [first, first + count) of its data. */
void perf_oracle_fill(const struct perf_oracle *oracle, uint32_t rank, uint64_t first, uint64_t count,
                      void *buffer);
/* Elements among `count` at `buffer` that are not what rank `rank` gives at [first, ...). */
uint64_t perf_oracle_wrong_copy(const struct perf_oracle *oracle, uint32_t rank, uint64_t first,
                                uint64_t count, const void *buffer);
/* Elements among `count` at `buffer` that are not the reduction of all ranks' elements [first,
 * ...). */
uint64_t perf_oracle_wrong_sum(const struct perf_oracle *oracle, uint64_t first, uint64_t count,
                               const void *buffer);

#endif
