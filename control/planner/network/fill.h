/*
 * Filling a fabric with cheap trees, one after the other: what a thousand nodes get where linear
 * programs are too large. On regular fabrics whose switches work this reaches the least cut with a
 * handful of trees. One thread for each call.
 */
#ifndef BY_PLANNER_NETWORK_FILL_H
#define BY_PLANNER_NETWORK_FILL_H

#include "control/planner/pack/tree.h"

/*
 * Trees for both ways where the fabric is symmetric and no switch does half, else pairs of equal
 * root. First each tree takes all that the links left allow, scarce links being dear; where that
 * ends below `bound` (in units of capacity), many trees share the links, those that are loaded most
 * being dear. Appends trees to the empty list, and sets `*rate`, 0 for none. `rounds` limits the
 * trees tried; after `deadline` (a time of by_plan_clock, 0 for none) it is left with what it has.
 * 0 or BY_ERANGE.
 */
int by_fill(const struct by_graph *both, const struct by_graph *up, const struct by_graph *down, bool pairs,
            int64_t bound, uint32_t rounds, double deadline, struct by_tree_list *list,
            struct by_fraction *rate);

#endif
