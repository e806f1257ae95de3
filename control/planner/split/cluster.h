/*
 * Clusters of a fabric: sets of nodes that are better connected among themselves than to the rest.
 * They are candidates only, which tighten.h tries. The candidates are
 *
 * - the nodes below a switch,
 * - the nodes connected by links of at least some bandwidth,
 * - the parts that become disconnected when a switch is removed,
 * - switches with nearly the same neighbours.
 *
 * Each list belongs to one thread.
 */
#ifndef BY_PLANNER_SPLIT_CLUSTER_H
#define BY_PLANNER_SPLIT_CLUSTER_H

#include "control/planner/flow/mesh.h"

/* Sets of nodes, each in ascending order. All zero is an empty list. */
struct by_clusters {
    uint32_t count, room;
    uint32_t *start; /* by cluster, and one more */
    uint32_t *nodes;
    uint32_t node_count, node_room;
};

void by_clusters_free(struct by_clusters *clusters);
/* Appends a set, whose nodes must be in ascending order. */
void by_clusters_add(struct by_clusters *clusters, const uint32_t *nodes, uint32_t count);
/*
 * Finds sets that are pairwise disjoint or nested, larger ones first. Each holds some but not all
 * compute nodes (`bears`, by node). Sets are chosen by the fraction of their links' capacity that
 * stays inside.
 */
void by_clusters_find(const struct by_mesh *net, const int64_t *capacity, const bool *bears,
                      struct by_clusters *clusters);

#endif
