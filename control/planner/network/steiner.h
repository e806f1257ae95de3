/*
 * Finds the cheapest tree for given prices on a symmetric fabric. It joins all compute nodes,
 * branches only at compute nodes and at switches that may branch, and passes the others by paths
 * (paying for a link once for each pass). Without optional switches this is a minimum spanning tree
 * of shortest paths. A few optional switches are tried in all combinations, more by local search.
 * The allreduce planner prices its columns here. Each pricer belongs to one thread.
 */
#ifndef BY_PLANNER_NETWORK_STEINER_H
#define BY_PLANNER_NETWORK_STEINER_H

#include "control/plan/plan.h"
#include "control/planner/graph.h"

struct by_steiner;

/*
 * The rows of the program that the prices belong to: first the links, which are the pairs of nodes
 * with capacity in order of (lower node, higher node), then the switches with a budget of
 * additions.
 */
struct by_steiner *by_steiner_new(const struct by_graph *graph);
void by_steiner_free(struct by_steiner *steiner);
uint32_t by_steiner_row_count(const struct by_steiner *steiner);
/* The limit of a row: the capacity of each direction of a link, or the budget of a switch. */
int64_t by_steiner_row_capacity(const struct by_steiner *steiner, uint32_t row);
/* The two nodes of a link, or a switch twice. */
void by_steiner_row_ends(const struct by_steiner *steiner, uint32_t row, uint32_t ends[2]);
/* Whether prices can be proved to be least: there are few optional switches. */
bool by_steiner_can_prove(const struct by_steiner *steiner);
/*
 * Finds a cheap tree (prices by row, each at most BY_PRICE_MAX; among equal prices the one with
 * fewer hops). Fills `counts` by row: how often the tree passes a link, and at a switch with a
 * budget, the number of its links beyond two, which is the number of additions if the root is
 * elsewhere. Returns the price. With `prove`, tries all choices of optional switches, and `*floor`
 * is a lower bound of the price of all trees; otherwise it is -1.
 */
__int128 by_steiner_price(struct by_steiner *steiner, const int64_t *prices, bool prove, int32_t *counts,
                          __int128 *floor);
/* As by_steiner_price without a proof, for a tree in which some node is at most `height_max` hops
 * from all others. False if it finds none. */
bool by_steiner_price_low(struct by_steiner *steiner, const int64_t *prices, uint32_t height_max,
                          int32_t *counts);
/* Returns the paths of the last tree, from compute node `*root` outwards. The caller frees each
 * path's nodes and the array. */
struct by_path *by_steiner_paths(const struct by_steiner *steiner, uint32_t *root, uint32_t *path_count);

#endif
