/*
 * Generates inputs and the expected result, and checks every delivered chunk. Memory does not grow
 * with the ranks: the inputs of a reduction are one block, in which rank r's input begins r lines
 * further on; the results of all ranks share one buffer, and each chunk is checked as soon as an
 * endpoint has received it. Before that its place is overwritten, so that data of another rank
 * cannot pass the check. Values are f32 with small integers, so sums are exact in any order.
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
    uint64_t *taken;       /* one bit per chunk of each rank */
    uint64_t taken_words;  /* per rank */
    uint64_t *taken_count; /* per rank */
    uint32_t pending_count;
    struct check_pending {
        struct chunks_chunk chunk;
    } pending[BY_WORLD_BURST_MAX]; /* of the current burst */
    uint64_t checked, wrong;       /* elements */
    int first_rank;                /* rank of the first wrong chunk, and its position; -1: none */
    uint32_t first_tree, first_seq;
};

/* Fills inputs and result from `seed`. `image` is a host's. 0 or BY_ENOMEM. */
int check_open(struct sim_check *check, unsigned collective, uint32_t root, uint64_t count, uint64_t seed,
               const uint8_t *image);
void check_close(struct sim_check *check);
/* Flips a bit of an input after the result is computed. */
void check_spoil(struct sim_check *check);
/* Fills the call that a rank posts. */
void check_call(const struct sim_check *check, uint32_t rank, struct by_call *call);
/* Prepares a new call on all ranks. 0, BY_ENOMEM, or BY_EUNSUPPORTED. */
int check_begin(struct sim_check *check);
/* Called before and after an endpoint receives a burst. */
void check_burst(struct sim_check *check, uint32_t rank, const struct by_rx *rx, uint32_t count, int done);
/* Counts the chunks that ranks should have received in this call and have not, over all ranks. */
uint64_t check_missing(const struct sim_check *check);

#endif
