/*
 * Finds the cheapest tree that adds in order: at each of its nodes the ranks below are a contiguous
 * interval, so partial sums can be combined from left to right. Operators that do not commute need
 * this, as do results that must be bitwise reproducible (the v[k,m] of Legrand, Marchal and
 * Robert's steady-state reduction). Each search belongs to one thread.
 */
#ifndef BY_PLANNER_NETWORK_INTERVAL_H
#define BY_PLANNER_NETWORK_INTERVAL_H

#include "control/plan/plan.h"
#include "control/planner/graph.h"

/* Limits of the search: compute nodes, and compute nodes plus branching switches (counts). */
#define BY_INTERVAL_RANKS_MAX 64u
#define BY_INTERVAL_SITES_MAX 96u

struct by_interval;

/* `up` is a graph for data that flows up (transposed, as by_graph_make makes it); a pointer to it
 * is kept. */
struct by_interval *by_interval_new(const struct by_graph *up);
void by_interval_free(struct by_interval *interval);
/* Finds the cheapest such trees for all roots at once. `prices` are by [from * node_count + to] of
 * `up`, and at most 2^36. An addition at a switch with a budget costs `additions` (by node). */
void by_interval_search(struct by_interval *interval, const int64_t *prices, const int64_t *additions);
/* Returns the price that the search found for the tree for `root`; INT64_MAX if there
 * is no tree. */
int64_t by_interval_price(const struct by_interval *interval, uint32_t root);
/*
 * Writes the paths of the tree for `root`, from the root outwards, to `paths` (room for two per
 * compute node; the caller frees their nodes). Returns their count, 0 when there is no tree. If a
 * switch would occur twice in the tree, it is excluded and the search is repeated; later trees of
 * the same search may therefore use fewer switches.
 */
uint32_t by_interval_tree(struct by_interval *interval, uint32_t root, struct by_path *paths);

#endif
