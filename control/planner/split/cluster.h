/*
 * Clusters of a fabric: sets of nodes that are joined better within than to the rest. Only guesses,
 * for tighten.h to try: what hangs below a switch, what links of at least some bandwidth join, what
 * falls off when a switch is taken out, switches with much the same neighbours. One thread for each
 * list.
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
/* Appends a set, given in ascending order. */
void by_clusters_add(struct by_clusters *clusters, const uint32_t *nodes, uint32_t count);
/*
 * Sets that are disjoint or within each other, larger ones first, each with some and not all
 * compute nodes
 * (`bears`), chosen by how much of their links' capacity stays inside.
 */
void by_clusters_find(const struct by_mesh *net, const int64_t *capacity, const bool *bears,
                      struct by_clusters *clusters);

#endif
