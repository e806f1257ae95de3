/*
 * The one question behind every step: with these capacities, can `roots[v]` trees start at each v
 * and all reach every target? By Edmonds' theorem that is a maximum flow of sum(roots) from a
 * source (with an arc of roots[v] to each v) to each target. ForestColl, NSDI'26, theorems 3 and 8.
 * One thread for each call.
 */
#ifndef BY_PLANNER_OPTIMUM_ORACLE_H
#define BY_PLANNER_OPTIMUM_ORACLE_H

#include <stdbool.h>
#include <stdint.h>

#include "control/planner/flow/reach.h"

/* All nodes of the net, neighbours close to each other: breadth first from node 0, then what is not
 * joined to it. Fills `order` (node_count) and returns the count. */
uint32_t by_oracle_order(const struct by_mesh *net, uint32_t *order);
/*
 * Asks with the capacities and roots that `reach` has. Returns -1 when all targets are reached by
 * `total` (the sum of the roots), else a target that is not; the violated set is the side of the
 * query (by_reach_side). `order` is by_oracle_order's. Targets that were reached stay contracted.
 */
int64_t by_oracle_ask(struct by_reach *reach, const uint32_t *order, int64_t total, const bool *targets);
/*
 * The same for a dense graph. Returns -1 when all targets are reached, else a target that is not,
 * with `inside` (by node, may be NULL) set to the nodes on its side of a violated cut. `capacity`
 * is [from * node_count + to].
 */
int64_t by_oracle_check(uint32_t node_count, const int64_t *capacity, const int64_t *roots,
                        const bool *targets, bool *inside);

#endif
