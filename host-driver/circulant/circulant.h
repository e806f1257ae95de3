/*
 * Round-optimal schedules for collectives between p hosts without a switch's help: the
 * communication pattern is a circulant graph, in which rank r sends to r + skip[k] and receives
 * from r - skip[k] in the k-th round of a phase of q = ceil(log2 p) rounds. A broadcast of n blocks
 * takes n - 1 + q rounds, the least that ranks with one send and one receive at a time can do;
 * turned around in time it is a reduction in as many rounds. Every rank computes its own part
 * alone, in O(log p) steps. Pure functions of their arguments: no memory, no I/O, any thread.
 * Sources: J. L. Traff, "(Poly)Logarithmic Time Construction of Round-optimal n-Block Broadcast
 * Schedules for Broadcast and irregular Allgather in MPI" (2022), and "Optimal Broadcast Schedules
 * in Logarithmic Time" (arXiv 2407.18004); the algorithms here are worked out anew and checked
 * against the first paper's (tests/unit/host-driver/circulant).
 */
#ifndef BY_CIRCULANT_H
#define BY_CIRCULANT_H

#include <stdbool.h>
#include <stdint.h>

/* Ranks at most: so that twice a rank is a number of 32 bits. */
#define BY_CIRCULANT_RANKS_MAX (UINT32_C(1) << 30)
/* ceil(log2 BY_CIRCULANT_RANKS_MAX): entries of a schedule. */
#define BY_CIRCULANT_PHASE_MAX 30u
/* Blocks of one broadcast at most. */
#define BY_CIRCULANT_BLOCKS_MAX (UINT32_C(1) << 30)
/* No block: nothing is sent or received in this round. */
#define BY_CIRCULANT_NONE UINT32_MAX

/* The graph: what all ranks share. skip[0] = 1 < ... < skip[phase] = rank_count, each half the
 * next, rounded up; for one rank phase is 0 and skip[0] is 1. */
struct by_circulant {
    uint32_t rank_count;
    uint32_t phase; /* q: rounds of a phase */
    uint32_t skip[BY_CIRCULANT_PHASE_MAX + 1];
};

/* One rank's schedule. In round k of a phase the rank receives block receive[k] and sends block
 * send[k], counted from the first block that the root sends in this phase: negative ones belong to
 * the phase before.
 */
struct by_circulant_schedule {
    int8_t receive[BY_CIRCULANT_PHASE_MAX];
    int8_t send[BY_CIRCULANT_PHASE_MAX];
};

/* What a rank does in one round. The peers are those of the graph also where a block is
 * BY_CIRCULANT_NONE. */
struct by_circulant_step {
    uint32_t to, from;      /* ranks */
    uint32_t send, receive; /* blocks, or BY_CIRCULANT_NONE */
};

/* What a rank does in one round of the census or of the regular allgather. */
struct by_circulant_fold {
    uint32_t to, from; /* ranks */
    uint32_t count;    /* census: 1 when the sender adds its own value to what it sends, 0 when not;
                          allgather: shards that move, from the sender's own on, in the order of ranks */
};

/*
 * Fills `circulant` for `rank_count` ranks. False when that is 0 or above BY_CIRCULANT_RANKS_MAX.
 * O(log p).
 */
bool by_circulant_init(struct by_circulant *circulant, uint32_t rank_count);

/*
 * The block that `rank` is the first to have of each phase's: the first it receives. The root, rank
 * 0, has no first one; for it the answer is `phase`. rank < rank_count. O(log p).
 */
uint32_t by_circulant_baseblock(const struct by_circulant *circulant, uint32_t rank);

/*
 * Writes `phase` entries of the receive schedule of `rank` when rank 0 is the root (for another
 * root number the ranks from it: (rank - root) mod p). For rank > 0 they are -1 ... -phase without
 * baseblock - phase, and baseblock; for rank 0 all of -1 ... -phase, which nobody needs. O(log p).
 */
void by_circulant_receive(const struct by_circulant *circulant, uint32_t rank, int8_t *receive);

/*
 * The same for what `rank` sends: for each k, receive[k] of rank + skip[k]. Every send[k] < 0 is
 * baseblock - phase or was received in a round before k of the same phase. O(log p).
 */
void by_circulant_send(const struct by_circulant *circulant, uint32_t rank, int8_t *send);

/*
 * Both. O(log p).
 */
void by_circulant_schedule(const struct by_circulant *circulant, uint32_t rank,
                           struct by_circulant_schedule *schedule);

/*
 * Rounds of a broadcast of `block_count` blocks (1 ... BY_CIRCULANT_BLOCKS_MAX), or of any
 * collective that is made of such broadcasts or their reversals: block_count - 1 + phase; 0 for a
 * single rank.
 */
uint32_t by_circulant_rounds(const struct by_circulant *circulant, uint32_t block_count);

/*
 * Round `round`, counted from 0, of a broadcast of `block_count` blocks from `root` as `rank` does
 * it. `schedule` is that of (rank - root) mod p. Each rank but the root receives each block exactly
 * once, and sends only what it has. An allgather is p such broadcasts side by side, one from each
 * rank: their peers are the same in each round, so that what they send in it is one message. O(1).
 */
void by_circulant_broadcast(const struct by_circulant *circulant,
                            const struct by_circulant_schedule *schedule, uint32_t rank, uint32_t root,
                            uint32_t block_count, uint32_t round, struct by_circulant_step *step);

/*
 * Round `round` of a reduction to `root`: the broadcast backwards in time and along each edge. A
 * rank adds what it receives to its own block, and sends each block exactly once, after all that it
 * gets for it. A reduce-scatter is p such reductions side by side. O(1).
 */
void by_circulant_reduce(const struct by_circulant *circulant, const struct by_circulant_schedule *schedule,
                         uint32_t rank, uint32_t root, uint32_t block_count, uint32_t round,
                         struct by_circulant_step *step);

/*
 * Round `round` < phase of the allgather of one shard a rank, for small ones: `count` shards move,
 * those of the sender and of the ranks after it. After it a rank has the shards of skip[round + 1]
 * ranks from its own on. O(1).
 */
void by_circulant_gather(const struct by_circulant *circulant, uint32_t rank, uint32_t round,
                         struct by_circulant_fold *fold);

/*
 * Round `round` < phase of the census: each rank keeps a sum S, empty at first, sends S (with its
 * own value added when fold.count is 1, as in round 0) and adds what it receives to S; after the
 * last round S with its own value is the sum of all. The order of the operands differs between
 * ranks, so that only operators which are exactly associative and commutative give all the same
 * bits. O(1).
 */
void by_circulant_census(const struct by_circulant *circulant, uint32_t rank, uint32_t round,
                         struct by_circulant_fold *fold);

/*
 * The count of blocks that makes `bytes` arrive soonest where a message of s bytes takes latency_ns
 * + s * gap_ps / 1000 nanoseconds: the n that minimises (n - 1 + phase) * (latency + gap * bytes /
 * n), so the root of (phase - 1) * gap * bytes / latency; from 1 to `block_count_max`. latency_ns 0
 * counts as 1.
 */
uint32_t by_circulant_block_count(const struct by_circulant *circulant, uint64_t bytes, uint64_t latency_ns,
                                  uint64_t gap_ps, uint32_t block_count_max);

#endif
