/*
 * Random balanced fabrics for the planner's campaign: a seed makes a fabric, the same one
 * everywhere. Switches of mixed capability, parallel links, fractions, one-way links in cycles (so
 * that every node keeps as much bandwidth in as out). Pure functions: any thread.
 */
#ifndef TESTS_CAMPAIGN_FABRIC_H
#define TESTS_CAMPAIGN_FABRIC_H

#include "control/fabric/topology.h"

struct fabric_sizes {
    uint32_t nodes_min, nodes_max; /* at least 3 */
};

/* The fabric of `seed`; the caller frees it. Ends the program when the generator itself is wrong.
 */
struct by_topology *campaign_fabric(uint64_t seed, struct fabric_sizes sizes);
/* What its switches can do: 'n' no switch branches (or there is none), 'a' all multicast and
 * aggregate, 'm' mixed. */
char campaign_capability(const struct by_topology *topology);

#endif
