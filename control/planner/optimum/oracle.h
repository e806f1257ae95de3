/*
 * The feasibility oracle behind every step: with these capacities, can `roots[v]` trees start at
 * each v and all reach every target? By Edmonds' theorem this holds exactly when the maximum flow
 * from a source (with an arc of roots[v] to each v) to each target is sum(roots). ForestColl,
 * NSDI'26, theorems 3 and 8. Each call runs in one thread.
 */
#ifndef BY_PLANNER_OPTIMUM_ORACLE_H
#define BY_PLANNER_OPTIMUM_ORACLE_H

#include <stdbool.h>
#include <stdint.h>

#include "control/planner/flow/reach.h"

/* Orders all nodes of the net so that neighbours are close to each other: breadth first from node
 * 0, then the nodes not connected to it. Fills `order` (node_count) and returns the count. */
uint32_t by_oracle_order(const struct by_mesh *net, uint32_t *order);
/*
 * Asks the oracle with the capacities and roots of `reach`. Returns -1 when all targets receive
 * `total` (the sum of the roots), else a target that does not; the violated set is the side of the
 * query (by_reach_side). `order` is from by_oracle_order. Targets that passed stay contracted.
 */
int64_t by_oracle_ask(struct by_reach *reach, const uint32_t *order, int64_t total, const bool *targets);
/*
 * The same for a dense graph. Returns -1 when all targets pass, else a target that does not, with
 * `inside` (by node, may be NULL) set to the nodes on its side of a violated cut. `capacity` is
 * [from * node_count + to].
 */
int64_t by_oracle_check(uint32_t node_count, const int64_t *capacity, const int64_t *roots,
                        const bool *targets, bool *inside);

#endif
