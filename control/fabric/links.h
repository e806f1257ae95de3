/* The directed pairs of linked nodes, with parallel links merged, for readers that look up millions
 * of hops. Immutable after construction: any number of threads. */
#ifndef BY_FABRIC_LINKS_H
#define BY_FABRIC_LINKS_H

#include "control/fabric/topology.h"

/* Pair number p goes from `from[p]` to `to[p]` and has the capacity `capacity[p]` (1/scale of the
 * unit). */
struct by_links {
    uint32_t count;
    uint32_t *from;
    uint32_t *to;
    int64_t *capacity;
    uint32_t mask;
    uint32_t *slots; /* hash table: pair number + 1, 0 is free */
};

struct by_links *by_links_new(const struct by_topology *topology);
void by_links_free(struct by_links *links);
/* Returns the number of the pair, or UINT32_MAX when there is no link in that direction. */
uint32_t by_links_find(const struct by_links *links, uint32_t from, uint32_t to);

#endif
