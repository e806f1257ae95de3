/*
 * The input and the expected result of each rank, element by element, computed by plain loops that
 * share no code with the library. Pure; any thread.
 *
 * Exact data: integers have any bits (they wrap). Floats are small whole numbers for sums, signs
 * and powers of two for products, so that every order of operations gives the same exact result.
 *
 * Random data: float sums of any fractions in [-1, 1). A result may differ from the sum in double
 * precision by the bound of Higham, Accuracy and Stability of Numerical Algorithms, section 4.2: n
 * u sum |x|, where u is the unit roundoff of the type (a partial sum is rounded to it at every
 * hop). In mode exact it may differ by u |result|, half a unit in the last place: the magnitudes of
 * these data are so close that no other rounding occurs. The exception is f64, whose reference, the
 * sum in double precision, is itself rounded at each step.
 */
#ifndef BY_PERF_ORACLE_H
#define BY_PERF_ORACLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct perf_oracle {
    uint8_t op;    /* enum by_op; 0: elements are only copied */
    uint8_t dtype; /* enum by_dtype */
    uint8_t mode;  /* enum by_mode; 0: as FAST */
    bool random_data;
    uint32_t ranks;
    uint32_t salt; /* differs between runs, to detect stale results */
};

/* Writes the input of `rank`: elements [first, first + count) of its data. */
void perf_oracle_fill(const struct perf_oracle *oracle, uint32_t rank, uint64_t first, uint64_t count,
                      void *buffer);
/* Counts the elements among `count` at `buffer` that differ from the input of rank `rank` at
 * [first, ...). */
uint64_t perf_oracle_wrong_copy(const struct perf_oracle *oracle, uint32_t rank, uint64_t first,
                                uint64_t count, const void *buffer);
/* Counts the elements among `count` at `buffer` that differ from the reduction of all ranks'
 * elements [first, ...). */
uint64_t perf_oracle_wrong_sum(const struct perf_oracle *oracle, uint64_t first, uint64_t count,
                               const void *buffer);

#endif
