/*
 * The same fabric after something happened to it: links that failed at random, bandwidths that
 * scatter, a link or node that is gone. `banyan topo` makes irregular fabrics this way, re-planning
 * and tests make the fabric after a failure. A topology is never changed; these return a new one.
 * Pure functions: any thread.
 */
#ifndef BY_FABRIC_VARY_H
#define BY_FABRIC_VARY_H

#include "control/fabric/build.h"

struct by_variation {
    struct by_fraction fail;           /* the part of all links that fails, 0 to less than 1 */
    int64_t scatter_low, scatter_high; /* each bandwidth times a random integer of these, 0 = unchanged */
    uint64_t seed;
    const char *name; /* of the new topology; NULL keeps the old one */
};

/*
 * Fails floor(fail x links) links that are chosen at random among those whose loss leaves the
 * fabric in one part (fewer when no more such links are left), then scatters the bandwidths of the
 * others. The nodes stay, in their order. 0, or BY_ERANGE with `problem` filled when the new
 * bandwidths do not fit.
 */
int by_vary(const struct by_topology *from, const struct by_variation *variation,
            struct by_topology **topology, struct by_problem *problem);

/*
 * The fabric without some links and nodes: `lost_links` (by link) and `lost_nodes` (by node),
 * either may be NULL; the links of a lost node go with it. 0, or BY_EINVAL with `problem` filled
 * when what is left is not one part with a compute node.
 */
int by_topology_without(const struct by_topology *from, const bool *lost_links, const bool *lost_nodes,
                        struct by_topology **topology, struct by_problem *problem);

#endif
