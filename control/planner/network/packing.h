/*
 * Trees for both directions on symmetric fabrics: how many (Steiner) trees fit into undirected
 * links, solved exactly as a linear program. One thread for each call.
 */
#ifndef BY_PLANNER_NETWORK_PACKING_H
#define BY_PLANNER_NETWORK_PACKING_H

#include "control/plan/certificate.h"
#include "control/planner/pack/tree.h"

/* What a packing came to. */
struct by_packed {
    struct by_fraction rate;      /* of the trees appended, 0 when there are none; in units of capacity */
    struct by_fraction bound;     /* what no such trees exceed, num 0 where that is not known */
    struct by_certificate *proof; /* of the bound: the caller's, NULL without one */
};

/*
 * Packs trees that branch at compute nodes and at switches with graph->branch, each loading the
 * links it passes once in each direction, and each budget with its additions. `bound` is what no
 * schedule exceeds, `least` what is known to be possible otherwise; both in units of capacity.
 * Appends the trees when they reach `least` or more; else, or where trying is hopeless or too long,
 * appends nothing. After `deadline` (a time of by_plan_clock, 0 for none) it is left with what it
 * has. 0 or BY_ERANGE.
 */
int by_packing_symmetric(const struct by_graph *graph, int64_t bound, struct by_fraction least,
                         struct by_tree_list *list, double deadline, struct by_packed *packed);

#endif
