/*
 * Maps chunk `seq` of a tree to the bytes of a call: the rule of offload/wire/PROTOCOL.md,
 * "Collectives", implemented independently from the LEAF records of one host, as a check of the
 * endpoints. Pure but for memory; single-threaded.
 */
#ifndef BY_SIM_CHUNKS_H
#define BY_SIM_CHUNKS_H

#include <stdint.h>

#include "offload/table/image.h"

/* Consecutive chunks of one tree: bytes [start, end) of shard (or of the whole, shard 0). */
struct chunk_run {
    uint32_t seq; /* of the first chunk */
    uint32_t count;
    uint32_t shard;
    uint64_t start, end;
    uint64_t index; /* of the first chunk among all of the call */
};

struct chunk_tree {
    struct by_image_leaf leaf;
    uint32_t next_seq;
    uint32_t run_count, run_room;
    struct chunk_run *runs;
};

struct chunks {
    uint32_t rank_count, tree_count;
    struct chunk_tree *trees; /* in the order of the records */
    uint16_t tree_limit;
    uint32_t *tree_of;    /* by tree number in the protocol: index, UINT32_MAX: none */
    uint64_t chunk_count; /* of the last added call */
};

/* One chunk. */
struct chunks_chunk {
    uint32_t shard;
    uint64_t offset;
    uint32_t bytes;
    uint64_t index;
};

/* Reads the trees of job index 0 from a host's image. 0 or BY_ENOMEM. */
int chunks_open(struct chunks *chunks, const uint8_t *image);
void chunks_close(struct chunks *chunks);
/* Adds the beginning of a session: the roll call, in the first chunks of the first tree, and an
 * opening on each tree. */
void chunks_add_session(struct chunks *chunks);
/* Advances by one call; discards the runs of the previous one. `shard_bytes` is the size of `count`
 * elements in by_call. 0, BY_ENOMEM, or BY_EUNSUPPORTED if no tree serves it. */
int chunks_add_call(struct chunks *chunks, unsigned collective, uint32_t root, uint64_t shard_bytes);
/* Returns 1 and the chunk if (tree, seq) belongs to the last call and holds data. */
int chunks_find(const struct chunks *chunks, uint32_t tree, uint32_t seq, struct chunks_chunk *chunk);

#endif
