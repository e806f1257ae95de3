/*
 * Finds the cheapest reduction tree at given prices of ports, links and processors.
 *
 * In the operator's order it is exact dynamic programming over intervals of values and the places
 * that compute: an interval is made from two, at the price of their combination, and moves on a
 * cheapest path. Time: n^3 / 6 x places, and n^2 / 2 x places^2, for n values.
 *
 * A commutative operator allows any tree. If all partial results have the same size, the price of a
 * transfer does not depend on what it carries. A tree then is an arborescence to the target: each
 * holder that computes combines its value with all that arrives and sends the result once (a second
 * message of the same operation would be one more transfer and one more combination elsewhere), a
 * holder that does not compute sends its value to one that does, and nodes between only forward.
 * The cheapest arborescence (Chu and Liu 1965, Edmonds 1967) is the cheapest tree. Nodes without a
 * value that combine at no cost may take part or not; every set of them is tried.
 *
 * Neighbours: tree_program.c sets the prices. Private to control/study/steady. One thread for each
 * pricer.
 */
#ifndef BY_STUDY_STEADY_TREE_PRICING_H
#define BY_STUDY_STEADY_TREE_PRICING_H

#include "control/study/steady/partials.h"

struct by_tree_pricer;

/*
 * Makes a pricer of a reduction. Returns NULL, with `trouble` filled, if the operator commutes and
 * the problem is none of those above: BY_ELIMIT.
 */
struct by_tree_pricer *by_tree_pricer_new(const struct by_steady_problem *problem,
                                          const struct by_platform *platform,
                                          const struct by_resources *resources, struct by_problem *trouble);
void by_tree_pricer_free(struct by_tree_pricer *pricer);
/*
 * Finds a tree for prices by row of the resources: in floating point, or exactly. Among trees of
 * the same price it is one with few hops. Returns false if there is no tree.
 */
bool by_tree_pricer_guess(struct by_tree_pricer *pricer, const double *prices);
bool by_tree_pricer_find(struct by_tree_pricer *pricer, const mpq_t *prices);
/* Appends the tasks of the tree that was found last. New messages are added to `partials`. */
void by_tree_pricer_build(struct by_tree_pricer *pricer, struct by_partials *partials,
                          struct by_steady_lane *lane);

#endif
