/*
 * Predicts the exact bytes of a call on each cable, without loss, for comparison with counters. The
 * prediction uses the trees as laid on cables and the endpoint's rules for dividing calls
 * (offload/endpoint: shares, 64-byte boundaries, chunks, the word on the first tree). Any thread.
 */
#ifndef BY_TABLES_TRAFFIC_H
#define BY_TABLES_TRAFFIC_H

#include "control/tables/lower.h"

struct by_traffic_call {
    uint16_t job;
    unsigned collective; /* enum by_collective */
    uint32_t root;       /* rank, for broadcast and reduce */
    /*
     * Bytes of `count` elements as in by_call: of the whole vector, or of one rank's shard
     * (allgather, reduce-scatter).
     */
    uint64_t shard_bytes;
    const uint64_t *shards; /* shard_bytes by rank if the shards have unequal sizes; else NULL */
};

/* One direction of a link: whole Ethernet frames without FCS. */
struct by_traffic_arc {
    uint64_t packets;
    uint64_t bytes;
};

/*
 * Adds one call to `arcs`, which has 2 * link_count elements: [2 * link] is from end a to end b of
 * a link, [2 * link + 1] from b to a. Returns 0, or BY_EUNSUPPORTED if no tree serves the call.
 */
int by_traffic_add(const struct by_lowering *lowering, const struct by_traffic_call *call,
                   struct by_traffic_arc *arcs);

/* Adds the roll call of `job` and the openings of its trees, once for each run on tables that no
 * run has used (offload/wire/PROTOCOL.md, "Sessions"). */
void by_traffic_add_session(const struct by_lowering *lowering, uint16_t job, struct by_traffic_arc *arcs);

#endif
