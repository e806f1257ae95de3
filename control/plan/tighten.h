/*
 * Manufacturing tight sets. Fabrics that do not block, and fabrics that lost links, have few tight sets by
 * nature; packing them is hard and trees come out deep. So capacity that is of no use is taken away first:
 * for clusters of nodes (what hangs below a switch, what a clique of switches joins, what stays when a switch
 * is taken out) the capacity across the border is lowered to exactly what trees need, and given back where a
 * cut complains. One thread for each call.
 */
#ifndef BY_PLAN_TIGHTEN_H
#define BY_PLAN_TIGHTEN_H

#include "control/plan/nest.h"

/* Sets of nodes, disjoint or within each other, smaller ones first. */
struct by_clusters {
    uint32_t count, room;
    uint32_t *start; /* by cluster, and one more */
    uint32_t *nodes;
    uint32_t node_count, node_room;
};

void by_clusters_free(struct by_clusters *clusters);
/*
 * Lowers `capacity` (by half), keeping every cut condition and the balance of each node, and fills `clusters`
 * with the sets that are tight now. Nothing happens where capacities differ between the two ways of a pair.
 */
void by_tighten(const struct by_mesh *net, int64_t *capacity, const int64_t *roots, const bool *member,
                const bool *compute, struct by_clusters *clusters);
/* Makes a group of each cluster. The nest is new and has the capacities that by_tighten left. */
void by_tighten_insert(struct by_nest *nest, const struct by_clusters *clusters);

#endif
