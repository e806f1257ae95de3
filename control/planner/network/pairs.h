/*
 * Allreduce if one tree cannot serve both directions: pairs of trees, one up and one down, of equal
 * root and weight, packed into directed links by an exact linear program. Each call runs in one
 * thread.
 */
#ifndef BY_PLANNER_NETWORK_PAIRS_H
#define BY_PLANNER_NETWORK_PAIRS_H

#include "control/planner/network/packing.h"

/*
 * Packs pairs into the links and budgets; `up` and `down` are the graphs of one topology for these
 * directions. `bound` and `least` are in units of capacity. Appends the pairs, each up tree before
 * its down tree, if they reach more than `least`. Otherwise, or if the fabric is too large, appends
 * nothing. After `deadline` it uses the result so far. `packed` as in packing.h. Returns 0 or
 * BY_ERANGE.
 */
int by_pairs_pack(const struct by_graph *up, const struct by_graph *down, int64_t bound,
                  struct by_fraction least, struct by_tree_list *list, double deadline,
                  struct by_packed *packed);

#endif
