/*
 * Allreduce where one tree cannot serve both ways: pairs of trees, one up and one down, of equal
 * root and weight, packed into directed links by an exact linear program. One thread for each call.
 */
#ifndef BY_PLANNER_NETWORK_PAIRS_H
#define BY_PLANNER_NETWORK_PAIRS_H

#include "control/planner/network/packing.h"

/*
 * Packs pairs into the links and budgets (`up` and `down` are the graphs of one topology for these
 * directions). `bound` and `least` are in units of capacity. Appends the pairs, first up, then
 * down, when they reach more than `least`; else, or where the fabric is too large to try, appends
 * nothing. After `deadline` it is left with what it has. `packed` as in packing.h. 0 or BY_ERANGE.
 */
int by_pairs_pack(const struct by_graph *up, const struct by_graph *down, int64_t bound,
                  struct by_fraction least, struct by_tree_list *list, double deadline,
                  struct by_packed *packed);

#endif
