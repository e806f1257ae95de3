/*
 * The partial results of a reduction, numbered as messages: all intervals of values in the
 * operator's order, or the sets that trees of a commutative operator use. Neighbours:
 * tree_pricing.c numbers what its trees carry; tree_program.c and program_reduce.c write the list
 * into the series. Private to control/study/steady. One thread for each list.
 */
#ifndef BY_STUDY_STEADY_PARTIALS_H
#define BY_STUDY_STEADY_PARTIALS_H

#include "control/study/steady/program.h"

struct by_partials {
    uint32_t count, room;
    uint64_t *values; /* by message: set of values */
    uint32_t mask;
    uint32_t *slots; /* hash table: message + 1, 0 is free */
};

/* Without `commutative` the list has all intervals from the start, by length, then by first
 * value. */
void by_partials_make(struct by_partials *partials, const struct by_steady_problem *problem);
void by_partials_free(struct by_partials *partials);
/* Returns the number of the interval of `length` values from `first` on, of `count` in all. */
uint32_t by_partials_interval(uint32_t count, uint32_t length, uint32_t first);
/* Returns the number of the message with these values; adds it if it is new. */
uint32_t by_partials_add(struct by_partials *partials, uint64_t values);
/* Writes the reduction's target and holders, and its messages, `values` by number, with their
 * sizes, into the series. */
void by_partials_list(const struct by_steady_problem *problem, const uint64_t *values, uint32_t count,
                      struct by_series *series);

#endif
