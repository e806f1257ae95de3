/*
 * The bounds of small fabrics by trying every set of nodes, without the planner's flows or any
 * optimization. Exact in 128 bits. Pure functions: any thread.
 */
#ifndef TESTS_CAMPAIGN_CUTS_H
#define TESTS_CAMPAIGN_CUTS_H

#include "control/fabric/topology.h"

/* Maximum number of nodes of a fabric (count). */
#define CUTS_NODES_MAX 20u

/* num / den in the topology's unit, not reduced; den > 0 except for an unreachable node. */
struct cut_value {
    __int128 num, den;
};

struct cuts {
    struct cut_value inv_x;     /* allgather, reduce-scatter: maximum of (compute nodes inside) / (leaving) */
    struct cut_value broadcast; /* from the root: minimum bandwidth leaving a set that contains it */
    struct cut_value reduce;    /* to the root: minimum bandwidth leaving a set without it */
    struct cut_value allreduce; /* minimum bandwidth leaving a set with some, not all, compute nodes */
};

void cuts_find(const struct by_topology *topology, uint32_t root, struct cuts *cuts);
/* Shards of unequal size: returns the maximum of (parts of the nodes inside, or outside) /
 * (leaving) over all sets. */
struct cut_value cuts_shares(const struct by_topology *topology, const int64_t *shares, bool outside);
bool cut_equals(struct cut_value value, struct by_fraction fraction);
/* Returns whether the fraction is at most the value. */
bool cut_allows(struct cut_value value, struct by_fraction fraction);

#endif
