/*
 * Random two-way fabrics of mixed capabilities, by family: chains, trees, stars of stars, hosts
 * behind hosts, unequal bandwidths, oversubscribed leaf-spines, meshes, one-way rings, trees of
 * parallel cables. Each switch multicasts, aggregates, does both or neither, perhaps at a limited
 * rate. A seed gives the same fabric on every machine. Pure functions: any thread.
 */
#ifndef TESTS_CAMPAIGN_MIXED_H
#define TESTS_CAMPAIGN_MIXED_H

#include "control/fabric/topology.h"

enum mixed_family {
    MIXED_CHAIN,
    MIXED_TREE,
    MIXED_STARS,
    MIXED_BEHIND,
    MIXED_UNEQUAL,
    MIXED_OVERSUB,
    MIXED_MESH,
    MIXED_ONEWAY,
    MIXED_PARALLEL,
    MIXED_COUNT
};

const char *mixed_name(enum mixed_family family);
/* Returns the fabric of `seed`, whose family is seed % MIXED_COUNT; the caller frees it. */
struct by_topology *mixed_fabric(uint64_t seed);

#endif
