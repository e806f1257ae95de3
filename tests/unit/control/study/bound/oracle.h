/*
 * The Reduce-Broadcast rate of small fabrics by trying everything: every partition, or every tree
 * as a variable of its own (Zhou and Sun, "On the Computation Rate of All-Reduce", theorem 2, as it
 * stands, with the pair of trees told by a balance at each root). Nothing of control/study/bound or
 * control/plan. Pure functions: any thread.
 */
#ifndef TESTS_BOUND_ORACLE_H
#define TESTS_BOUND_ORACLE_H

#include "control/fabric/topology.h"
#include "control/planner/lp/lp.h"

/* Nodes of a fabric whose partitions are tried (count), and compute nodes of one whose trees are.
 */
#define ORACLE_NODES_MAX 8u

/* The least (bandwidth between parts, one way) / (parts - 1) over all partitions of a symmetric
 * fabric of compute nodes, in the topology's unit. */
struct by_fraction oracle_partitions(const struct by_topology *topology);
/* The least bandwidth that leaves, or enters, the widest compute node alone, times N / (2 (N - 1)):
 * over all sets that hold it and no other compute node. */
struct by_fraction oracle_processes(const struct by_topology *topology);
/* Theorem 2's program over all trees: paths between compute nodes pass switches, which only
 * forward. */
struct by_lp *oracle_program(const struct by_topology *topology);
/* Its optimum, in the topology's unit; false when it cannot be told in 64 bits. */
bool oracle_trees(const struct by_topology *topology, struct by_fraction *rate);

#endif
