/*
 * Random balanced fabrics for the planner's campaign. A seed gives the same fabric on every
 * machine: switches of mixed capabilities, parallel links, fractions, and one-way links in cycles,
 * so that every node has equal bandwidth in and out. Pure functions: any thread.
 */
#ifndef TESTS_CAMPAIGN_FABRIC_H
#define TESTS_CAMPAIGN_FABRIC_H

#include "control/fabric/topology.h"

struct fabric_sizes {
    uint32_t nodes_min, nodes_max; /* at least 3 */
};

/* Returns the fabric of `seed`; the caller frees it. Ends the program if the generator itself is
 * wrong. */
struct by_topology *campaign_fabric(uint64_t seed, struct fabric_sizes sizes);
/* Returns the capabilities of the switches: 'n' no switch branches (or there is none), 'a' all
 * multicast and aggregate, 'm' mixed. */
char campaign_capability(const struct by_topology *topology);

#endif
