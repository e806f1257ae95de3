/* Trees for both directions on symmetric fabrics: the maximum number of (Steiner) trees that fit
 * into undirected links, solved exactly as a linear program. Each call runs in one thread. */
#ifndef BY_PLANNER_NETWORK_PACKING_H
#define BY_PLANNER_NETWORK_PACKING_H

#include "control/plan/certificate.h"
#include "control/planner/pack/tree.h"

/* The result of a packing. */
struct by_packed {
    struct by_fraction rate;      /* of the trees appended, in units of capacity; 0 if there are none */
    struct by_fraction bound;     /* upper bound for such trees, num 0 if not known */
    struct by_certificate *proof; /* proof of the bound, owned by the caller; may be NULL */
};

/*
 * Packs trees that branch at compute nodes and at switches with graph->branch. Each tree loads the
 * links that it passes once in each direction, and each budget with its additions. `bound` is an
 * upper bound for every schedule, `least` a rate that is known to be possible otherwise, both in
 * units of capacity. Appends the trees if they reach at least `least`. Otherwise, or if the program
 * is hopeless or too large, appends nothing. After `deadline` (a time of by_plan_clock, 0 for none)
 * it uses the result so far. Returns 0 or BY_ERANGE.
 */
int by_packing_symmetric(const struct by_graph *graph, int64_t bound, struct by_fraction least,
                         struct by_tree_list *list, double deadline, struct by_packed *packed);
/* Makes scarce links expensive: sets the price of each row in inverse proportion to what is left of
 * its limit, at most BY_PRICE_MAX. The arrays are by row. */
void by_packing_price(const int64_t *limits, const int64_t *left, uint32_t rows, int64_t *prices);

#endif
