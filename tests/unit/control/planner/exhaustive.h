/* Bounds of small fabrics by trying every cut and every partition. The planner's flows and programs
 * must agree with them. */
#ifndef TESTS_PLAN_EXHAUSTIVE_H
#define TESTS_PLAN_EXHAUSTIVE_H

#include "control/fabric/topology.h"

/* Maximum number of nodes of a fabric (count). */
#define EXHAUSTIVE_NODES_MAX 12u

/* Allgather: returns the maximum of (compute nodes inside) / (bandwidth leaving) over all sets
 * without some compute node. */
struct by_fraction exhaustive_inv_x(const struct by_topology *topology);
/* Broadcast from `root`: returns the minimum bandwidth leaving a set that contains the root and not
 * all compute nodes. */
struct by_fraction exhaustive_broadcast(const struct by_topology *topology, uint32_t root);
/* Reduce to `root`: returns the minimum bandwidth leaving a set that contains a compute node but
 * not the root. */
struct by_fraction exhaustive_reduce(const struct by_topology *topology, uint32_t root);
/* Allreduce: returns the minimum bandwidth leaving a set with some, not all, compute nodes. */
struct by_fraction exhaustive_allreduce(const struct by_topology *topology);
/* Symmetric fabrics of compute nodes only: returns the minimum of (capacity between parts) / (parts
 * - 1) over all partitions (Tutte, Nash-Williams), the maximum for trees used in both
 * directions. */
struct by_fraction exhaustive_partition(const struct by_topology *topology);

#endif
