/*
 * Fills a fabric with cheap trees, one after the other: used for about a thousand nodes, where
 * linear programs are too large. On regular fabrics whose switches aggregate and multicast, a few
 * trees reach the least cut. Each call runs in one thread.
 */
#ifndef BY_PLANNER_NETWORK_FILL_H
#define BY_PLANNER_NETWORK_FILL_H

#include "control/planner/pack/tree.h"

/*
 * Makes trees for both directions if the fabric is symmetric and no switch is capable in one
 * direction only, else pairs of equal root. First each tree takes all that the remaining links
 * allow, with high prices for scarce links. If that ends below `bound` (in units of capacity), many
 * trees share the links, with high prices for the most loaded ones. Appends trees to the empty
 * list, and sets `*rate`, 0 for none. `rounds` limits the number of trees tried; after `deadline`
 * (a time of by_plan_clock, 0 for none) it keeps the trees found so far. Returns 0 or BY_ERANGE.
 */
int by_fill(const struct by_graph *both, const struct by_graph *up, const struct by_graph *down, bool pairs,
            int64_t bound, uint32_t rounds, double deadline, struct by_tree_list *list,
            struct by_fraction *rate);

#endif
