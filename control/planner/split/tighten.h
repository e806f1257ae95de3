/*
 * Manufacturing tight sets. Fabrics that do not block, and fabrics that lost links, have few tight
 * sets by nature; packing them is hard and trees come out deep. So capacity that is of no use is
 * taken away first: across the border of each cluster (cluster.h) it is lowered to exactly what
 * trees need, and given back where a cut complains. One thread for each call.
 */
#ifndef BY_PLANNER_SPLIT_TIGHTEN_H
#define BY_PLANNER_SPLIT_TIGHTEN_H

#include "control/planner/split/cluster.h"
#include "control/planner/split/laminar.h"

/*
 * Lowers `capacity` (by half), keeping every cut condition (for the members) and the balance of
 * each node, and fills `clusters` with the sets that are tight now, disjoint or within each other.
 * Nothing happens where capacities differ between the two ways of a pair.
 */
void by_tighten(const struct by_mesh *net, int64_t *capacity, const int64_t *roots, const bool *member,
                const bool *compute, struct by_clusters *clusters);
/* Makes a group of each cluster. The nest is new and has the capacities that by_tighten left. */
void by_tighten_insert(struct by_laminar *laminar, const struct by_clusters *clusters);

#endif
