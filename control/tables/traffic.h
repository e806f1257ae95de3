/*
 * What the tables say a call must put on each cable, in exact bytes, without loss: the figure that
 * counted bytes are held against. Computed from the trees as laid down and from the rules by which
 * endpoints cut calls (offload/endpoint: shares, 64-byte boundaries, chunks, the word on the first
 * tree). Any thread.
 */
#ifndef BY_TABLES_TRAFFIC_H
#define BY_TABLES_TRAFFIC_H

#include "control/tables/lower.h"

struct by_traffic_call {
    uint16_t job;
    unsigned collective;    /* enum by_collective */
    uint32_t root;          /* rank, for broadcast and reduce */
    uint64_t shard_bytes;   /* bytes of `count` elements as in by_call: of the whole vector, or of one rank's
                               shard (allgather, reduce-scatter) */
    const uint64_t *shards; /* these by rank, where they are of unequal size; else NULL */
};

/* One direction of each link, whole Ethernet frames without FCS. */
struct by_traffic_arc {
    uint64_t packets;
    uint64_t bytes;
};

/*
 * Adds one call to `arcs`: [2 * link] is from end a to end b of a link, [2 * link + 1] from b to a
 * (2 * link_count in all). BY_EUNSUPPORTED when no tree serves the call, else 0.
 */
int by_traffic_add(const struct by_lowering *lowering, const struct by_traffic_call *call,
                   struct by_traffic_arc *arcs);

/* Adds the roll call of a run of `job`: once for each run (offload/wire/PROTOCOL.md, "Sessions").
 */
void by_traffic_add_roll(const struct by_lowering *lowering, uint16_t job, struct by_traffic_arc *arcs);

#endif
