/*
 * Finds the cheapest pair of trees for given prices on a directed fabric: one that carries up to a
 * root and one that carries down from it. Each joins all compute nodes, branches only at compute
 * nodes and at switches that may branch (aggregate on the way up, multicast on the way down), and
 * passes the others by paths. Uses minimum arborescences (Chu and Liu, Edmonds) of cheapest paths,
 * for each root; optional switches are handled as in steiner.h. Each pricer belongs to one thread.
 */
#ifndef BY_PLANNER_NETWORK_TREE_PAIR_H
#define BY_PLANNER_NETWORK_TREE_PAIR_H

#include "control/plan/plan.h"
#include "control/planner/graph.h"

struct by_tree_pair;

/* `up` and `down` are the graphs of by_graph_make for these directions, of one topology; pointers
 * to both are kept. The rows are the directed pairs of nodes with capacity, in the topology's own
 * direction, then the switches with a budget of additions. */
struct by_tree_pair *by_tree_pair_new(const struct by_graph *up, const struct by_graph *down);
void by_tree_pair_free(struct by_tree_pair *tree_pair);
uint32_t by_tree_pair_row_count(const struct by_tree_pair *tree_pair);
int64_t by_tree_pair_row_capacity(const struct by_tree_pair *tree_pair, uint32_t row);
/* From and to of a link, or a switch twice. */
void by_tree_pair_row_ends(const struct by_tree_pair *tree_pair, uint32_t row, uint32_t ends[2]);
/* The number of nodes that trees may have, which is the size of the problem. */
uint32_t by_tree_pair_site_count(const struct by_tree_pair *tree_pair);
/* Whether prices can be proved to be least: there are few optional switches. */
bool by_tree_pair_can_prove(const struct by_tree_pair *tree_pair);
/*
 * Finds a cheap pair (prices by row, each at most BY_PRICE_MAX) and fills `counts` by row. With
 * `prove`, tries all choices of optional switches, and `*floor` is a lower bound of the price of
 * all pairs; otherwise it is -1.
 */
void by_tree_pair_price(struct by_tree_pair *tree_pair, const int64_t *prices, bool prove, int32_t *counts,
                        __int128 *floor);
/* As by_tree_pair_price without a proof, for trees of at most `height_max` hops. False if it finds
 * none. */
bool by_tree_pair_price_low(struct by_tree_pair *tree_pair, const int64_t *prices, uint32_t height_max,
                            int32_t *counts);
/* Returns the root of the last pair, and the paths of one of its trees, from the root outwards. The
 * caller frees nodes and array. */
struct by_path *by_tree_pair_paths(const struct by_tree_pair *tree_pair, bool up, uint32_t *root,
                                   uint32_t *path_count);

#endif
