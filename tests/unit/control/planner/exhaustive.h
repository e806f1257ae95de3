/* Bounds of small fabrics by trying every cut and every partition: what the planner's flows and
 * programs must agree with. */
#ifndef TESTS_PLAN_EXHAUSTIVE_H
#define TESTS_PLAN_EXHAUSTIVE_H

#include "control/fabric/topology.h"

/* Fabrics up to this many nodes (count). */
#define EXHAUSTIVE_NODES_MAX 12u

/* Allgather: the greatest (compute nodes inside) / (bandwidth leaving) over all sets that miss a
 * compute node. */
struct by_fraction exhaustive_inv_x(const struct by_topology *topology);
/* Broadcast from `root`: the least bandwidth leaving a set that holds the root and misses a compute
 * node. */
struct by_fraction exhaustive_broadcast(const struct by_topology *topology, uint32_t root);
/* Reduce to `root`: the least bandwidth leaving a set that misses the root and holds a compute
 * node. */
struct by_fraction exhaustive_reduce(const struct by_topology *topology, uint32_t root);
/* Allreduce: the least bandwidth leaving a set with some, not all, compute nodes. */
struct by_fraction exhaustive_allreduce(const struct by_topology *topology);
/* Symmetric fabrics of compute nodes alone: the least (capacity between parts) / (parts - 1) over
 * all partitions (Tutte, Nash-Williams), the most that trees used in both directions can carry. */
struct by_fraction exhaustive_partition(const struct by_topology *topology);

#endif
