/*
 * What disjoint sets of nodes prove about trees for allreduce. All trees but its own enter and
 * leave each set; where the nodes outside the sets have at most one capability, this bounds the
 * links that leave the sets, or those that enter them, which no tree can save. Pure functions: any
 * thread.
 */
#ifndef BY_PLANNER_NETWORK_PARTS_H
#define BY_PLANNER_NETWORK_PARTS_H

#include "control/planner/graph.h"

/*
 * Computes the bound of the sets: `part` is below `part_count` for nodes inside (by node, each set
 * with a compute node), anything else outside. `up` and `down` have the capabilities, `both` the
 * arcs. With fewer than two sets, or if the bound does not fit 63 bits, its num is 0.
 */
struct by_fraction by_parts_bound(const struct by_graph *both, const struct by_graph *up,
                                  const struct by_graph *down, const uint32_t *part, uint32_t part_count);
/* The sets that each hold one compute node; fills `part` and returns their count. */
uint32_t by_parts_single(const struct by_graph *both, uint32_t *part);

#endif
