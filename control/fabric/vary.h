/*
 * Makes variants of a fabric: links that failed at random, scattered bandwidths, lost links or
 * nodes. `banyan topo` makes irregular fabrics this way; re-planning and tests make the fabric
 * after a failure. Topologies never change; these functions return new ones. Pure functions: any
 * thread.
 */
#ifndef BY_FABRIC_VARY_H
#define BY_FABRIC_VARY_H

#include "control/fabric/build.h"

struct by_variation {
    struct by_fraction fail; /* the fraction of all links that fails, 0 to less than 1 */
    /* each bandwidth is multiplied by a random integer in this range; 0 = unchanged */
    int64_t scatter_low, scatter_high;
    uint64_t seed;
    const char *name; /* name of the new topology; NULL keeps the old one */
};

/*
 * Fails floor(fail x links) links, chosen at random among those whose loss leaves the fabric
 * connected (fewer if no more such links are left), then scatters the bandwidths of the others. The
 * nodes and their order stay. Returns 0, or BY_ERANGE with `problem` filled when the new bandwidths
 * do not fit.
 */
int by_vary(const struct by_topology *from, const struct by_variation *variation,
            struct by_topology **topology, struct by_problem *problem);

/*
 * Makes the fabric without some links and nodes: `lost_links` (by link) and `lost_nodes` (by node);
 * either may be NULL. The links of a lost node are lost too. Returns 0, or BY_EINVAL with `problem`
 * filled when the rest is not connected or has no compute node.
 */
int by_topology_without(const struct by_topology *from, const bool *lost_links, const bool *lost_nodes,
                        struct by_topology **topology, struct by_problem *problem);

#endif
