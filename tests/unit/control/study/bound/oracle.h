/*
 * The Reduce-Broadcast rate of small fabrics by exhaustive enumeration: of all partitions, or with
 * every tree as a variable (Zhou and Sun, "On the Computation Rate of All-Reduce", theorem 2,
 * unchanged, with pairs of trees expressed by a balance at each root). Uses nothing of
 * control/study/bound or control/plan. Pure functions: any thread.
 */
#ifndef TESTS_BOUND_ORACLE_H
#define TESTS_BOUND_ORACLE_H

#include "control/fabric/topology.h"
#include "control/planner/lp/lp.h"

/* Maximum number of nodes for partitions, and of compute nodes for trees (count). */
#define ORACLE_NODES_MAX 8u

/* Returns the minimum of (bandwidth between parts, one way) / (parts - 1) over all partitions of a
 * symmetric fabric of compute nodes, in the topology's unit. */
struct by_fraction oracle_partitions(const struct by_topology *topology);
/* Returns N / (2 (N - 1)) times the minimum bandwidth that leaves, or enters, the widest compute
 * node alone, over all sets that contain it and no other compute node. */
struct by_fraction oracle_processes(const struct by_topology *topology);
/* Returns theorem 2's program over all trees. Paths between compute nodes pass through switches,
 * which only forward. */
struct by_lp *oracle_program(const struct by_topology *topology);
/* Finds its optimum, in the topology's unit. Returns false if this needs more than 64 bits. */
bool oracle_trees(const struct by_topology *topology, struct by_fraction *rate);

#endif
