/*
 * Tree packing: spanning out-trees with multiplicity, together within the capacities. ForestColl, NSDI'26,
 * section 5.4, algorithm 4 and theorem 10 (after Edmonds, Tarjan, Schrijver, Berczi and Frank). One thread
 * for each call.
 */
#ifndef BY_PLAN_PACK_H
#define BY_PLAN_PACK_H

#include <stdbool.h>
#include <stdint.h>

struct by_edge {
    uint32_t from;
    uint32_t to;
};

/* `count` equal trees; edges from the root outwards, parents before children. */
struct by_bundle {
    uint32_t root;
    int64_t count;
    uint32_t edge_count;
    struct by_edge *edges;
};

struct by_packing {
    uint32_t count;
    uint32_t room;
    struct by_bundle *bundles;
};

/*
 * Packs roots[v] trees rooted at each v, all spanning the members. by_oracle_check with the members as
 * targets must have passed, and no other node may have capacity. `deadline` is a time of by_plan_clock, 0 for
 * none: BY_ETIMEDOUT when it passes. The caller releases the result either way.
 */
int by_pack_run(uint32_t node_count, const int64_t *capacity, const int64_t *roots, const bool *members,
                double deadline, struct by_packing *packing);
void by_pack_free(struct by_packing *packing);

#endif
