/*
 * The cheapest tree that adds in order: at each of its nodes the ranks below are a contiguous
 * interval, so that partial sums can be combined from left to right, for operators that do not
 * commute and for results that are the same bits every time (the v[k,m] of Legrand, Marchal and
 * Robert's steady-state reduction). One thread for each search.
 */
#ifndef BY_PLANNER_NETWORK_INTERVAL_H
#define BY_PLANNER_NETWORK_INTERVAL_H

#include "control/plan/plan.h"
#include "control/planner/graph.h"

/* Compute nodes, and these with branching switches, up to which trees are searched (counts). */
#define BY_INTERVAL_RANKS_MAX 64u
#define BY_INTERVAL_SITES_MAX 96u

struct by_interval;

/* `up` is a graph for data that goes up (transposed, as by_graph_make makes it); it is kept. */
struct by_interval *by_interval_new(const struct by_graph *up);
void by_interval_free(struct by_interval *interval);
/*
 * Finds the cheapest such trees for all roots at once. `prices` are by [from * node_count + to] of
 * `up`; they are at most 2^36. Additions at switches with budgets cost `additions` (by node).
 */
void by_interval_search(struct by_interval *interval, const int64_t *prices, const int64_t *additions);
/* What the tree for `root` costs as far as the search knows; INT64_MAX where there is none. */
int64_t by_interval_price(const struct by_interval *interval, uint32_t root);
/*
 * The tree found for `root`: its paths from the root outwards go to `paths` (room for two a compute
 * node; the caller frees their nodes); returns how many there are, 0 when there is no tree. Where a
 * switch would be in two places of the tree, it is taken from the search and the search made anew;
 * so the trees of a search can differ in what they may use.
 */
uint32_t by_interval_tree(struct by_interval *interval, uint32_t root, struct by_path *paths);

#endif
