/*
 * The one question behind every step: with these capacities, can `roots[v]` trees start at each v and all
 * reach every target? By Edmonds' theorem that is a maximum flow of sum(roots) from a source (with an arc of
 * roots[v] to each v) to each target. ForestColl, NSDI'26, theorems 3 and 8. One thread for each call.
 */
#ifndef BY_PLAN_ORACLE_H
#define BY_PLAN_ORACLE_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Returns -1 when all targets are reached, else a target that is not, with `inside` (by node, may be NULL)
 * set to the nodes on its side of a violated cut. `capacity` is [from * node_count + to].
 */
int64_t by_oracle_check(uint32_t node_count, const int64_t *capacity, const int64_t *roots,
                        const bool *targets, bool *inside);
/* What the set `inside` has to spare: capacity entering it, plus the trees that start inside, less all trees.
 */
int64_t by_oracle_slack(uint32_t node_count, const int64_t *capacity, const int64_t *roots,
                        const bool *inside);

#endif
