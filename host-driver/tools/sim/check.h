/*
 * Inputs, the right answer, and every delivered chunk held against it. Memory does not grow with
 * the ranks: inputs of a reduction are one block, in which rank r's begins r lines further on;
 * results of all ranks go to the same place, and each chunk is looked at as soon as an endpoint has
 * taken it. Before, its place is overwritten, so that what another rank has left there is never
 * taken for it. Values are f32 that are small integers, so that sums are exact in any order.
 * Single-threaded.
 */
#ifndef BY_SIM_CHECK_H
#define BY_SIM_CHECK_H

#include "host-driver/sim/world.h"
#include "host-driver/tools/sim/chunks.h"

struct sim_check {
    unsigned collective;
    uint32_t root, rank_count;
    uint64_t count; /* as in by_call */
    uint64_t all;   /* elements of the whole vector, all shards */
    float *input, *want, *out;
    struct chunks chunks;
    uint64_t *taken;       /* a bit for each chunk of each rank */
    uint64_t taken_words;  /* of one rank */
    uint64_t *taken_count; /* by rank */
    uint32_t pending_count;
    struct check_pending {
        struct chunks_chunk chunk;
    } pending[BY_WORLD_BURST_MAX]; /* of the burst in hand */
    uint64_t checked, wrong;       /* elements */
    int first_rank;                /* of the first wrong chunk, and where it was; -1: none */
    uint32_t first_tree, first_seq;
};

/* Fills inputs and answer from `seed`. `image` is a host's. 0 or BY_ENOMEM. */
int check_open(struct sim_check *check, unsigned collective, uint32_t root, uint64_t count, uint64_t seed,
               const uint8_t *image);
void check_close(struct sim_check *check);
/* Flips a bit of an input, once the answer is known. */
void check_spoil(struct sim_check *check);
/* The call that a rank posts. */
void check_call(const struct sim_check *check, uint32_t rank, struct by_call *call);
/* All ranks begin the call anew. 0, BY_ENOMEM, or BY_EUNSUPPORTED. */
int check_begin(struct sim_check *check);
/* Before and after an endpoint takes a burst. */
void check_burst(struct sim_check *check, uint32_t rank, const struct by_rx *rx, uint32_t count, int done);
/* Chunks that a rank should have got in this call and has not, over all ranks. */
uint64_t check_missing(const struct sim_check *check);

#endif
