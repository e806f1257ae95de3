/*
 * Round-optimal schedules for collectives between p hosts without the help of switches. The
 * communication pattern is a circulant graph: in round k of a phase of q = ceil(log2 p) rounds,
 * rank r sends to r + skip[k] and receives from r - skip[k]. A broadcast of n blocks takes n - 1 +
 * q rounds, the minimum for ranks with one send and one receive at a time; reversed in time it is a
 * reduction in as many rounds. Every rank computes its own part alone, in O(log p) steps. Pure
 * functions of their arguments: no memory, no I/O, any thread.
 *
 * Sources: J. L. Traff, "(Poly)Logarithmic Time Construction of Round-optimal n-Block Broadcast
 * Schedules for Broadcast and irregular Allgather in MPI" (2022), and "Optimal Broadcast Schedules
 * in Logarithmic Time" (arXiv 2407.18004). The algorithms here are derived independently and
 * checked against the first paper's (tests/unit/host-driver/circulant).
 */
#ifndef BY_CIRCULANT_H
#define BY_CIRCULANT_H

#include <stdbool.h>
#include <stdint.h>

/* Maximum number of ranks: twice a rank fits 32 bits. */
#define BY_CIRCULANT_RANKS_MAX (UINT32_C(1) << 30)
/* ceil(log2 BY_CIRCULANT_RANKS_MAX): entries of a schedule. */
#define BY_CIRCULANT_PHASE_MAX 30u
/* Maximum number of blocks in one broadcast. */
#define BY_CIRCULANT_BLOCKS_MAX (UINT32_C(1) << 30)
/* No block: nothing is sent or received in this round. */
#define BY_CIRCULANT_NONE UINT32_MAX

/* The graph, which all ranks share. skip[0] = 1 < ... < skip[phase] = rank_count, each half the
 * next, rounded up. For one rank phase is 0 and skip[0] is 1. */
struct by_circulant {
    uint32_t rank_count;
    uint32_t phase; /* q: number of rounds in a phase */
    uint32_t skip[BY_CIRCULANT_PHASE_MAX + 1];
};

/* One rank's schedule. In round k of a phase the rank receives block receive[k] and sends block
 * send[k], counted from the first block that the root sends in this phase; negative blocks belong
 * to the previous phase. */
struct by_circulant_schedule {
    int8_t receive[BY_CIRCULANT_PHASE_MAX];
    int8_t send[BY_CIRCULANT_PHASE_MAX];
};

/* A rank's action in one round. The peers are those of the graph even if a block is
 * BY_CIRCULANT_NONE. */
struct by_circulant_step {
    uint32_t to, from;      /* ranks */
    uint32_t send, receive; /* blocks, or BY_CIRCULANT_NONE */
};

/* A rank's action in one round of the census or of the regular allgather. */
struct by_circulant_fold {
    uint32_t to, from; /* ranks */
    /* census: 1 if the sender adds its own value to the data that it sends, else 0; allgather:
     * shards to move, from the sender's own on, in rank order */
    uint32_t count;
};

/* A rank's action in one round of a scatter; all are distances from the root. */
struct by_circulant_span {
    bool sends, receives; /* not both */
    uint32_t peer;
    uint32_t first, count; /* shares [first, first + count) move */
};

/*
 * Fills `circulant` for `rank_count` ranks. False if that is 0 or above BY_CIRCULANT_RANKS_MAX.
 * O(log p).
 */
bool by_circulant_init(struct by_circulant *circulant, uint32_t rank_count);

/*
 * Returns the first block of each phase that `rank` receives. The root, rank 0, has none; for it
 * the result is `phase`. rank < rank_count. O(log p).
 */
uint32_t by_circulant_baseblock(const struct by_circulant *circulant, uint32_t rank);

/*
 * Writes `phase` entries: the receive schedule of `rank` if rank 0 is the root. For another root,
 * count the ranks from it: (rank - root) mod p. For rank > 0 the entries are -1 ... -phase without
 * baseblock - phase, and baseblock; for rank 0 all of -1 ... -phase, which no rank needs. O(log p).
 */
void by_circulant_receive(const struct by_circulant *circulant, uint32_t rank, int8_t *receive);

/*
 * Like by_circulant_receive, for the blocks that `rank` sends: for each k, receive[k] of rank +
 * skip[k]. Every send[k] < 0 is baseblock - phase or was received in a round before k of the same
 * phase. O(log p).
 */
void by_circulant_send(const struct by_circulant *circulant, uint32_t rank, int8_t *send);

/*
 * Both schedules. O(log p).
 */
void by_circulant_schedule(const struct by_circulant *circulant, uint32_t rank,
                           struct by_circulant_schedule *schedule);

/*
 * Returns the rounds of a broadcast of `block_count` blocks (1 ... BY_CIRCULANT_BLOCKS_MAX), or of
 * a collective that consists of such broadcasts or their reversals: block_count - 1 + phase; 0 for
 * a single rank.
 */
uint32_t by_circulant_rounds(const struct by_circulant *circulant, uint32_t block_count);

/*
 * Computes round `round`, counted from 0, of a broadcast of `block_count` blocks from `root`, as
 * executed by `rank`. `schedule` is the schedule of (rank - root) mod p. Each rank except the root
 * receives each block exactly once, and sends only blocks that it has. An allgather is p such
 * broadcasts side by side, one from each rank: their peers are equal in each round, so their blocks
 * travel in one message. O(1).
 */
void by_circulant_broadcast(const struct by_circulant *circulant,
                            const struct by_circulant_schedule *schedule, uint32_t rank, uint32_t root,
                            uint32_t block_count, uint32_t round, struct by_circulant_step *step);

/*
 * Computes round `round` of a reduction to `root`: the broadcast, reversed in time and along each
 * edge. A rank adds received blocks to its own, and sends each block exactly once, after it has
 * received all contributions to it. A reduce-scatter is p such reductions side by side. O(1).
 */
void by_circulant_reduce(const struct by_circulant *circulant, const struct by_circulant_schedule *schedule,
                         uint32_t rank, uint32_t root, uint32_t block_count, uint32_t round,
                         struct by_circulant_step *step);

/*
 * Computes round `round` < phase of the allgather of one small shard per rank: `count` shards move,
 * those of the sender and of the ranks after it. After the round a rank has the shards of
 * skip[round + 1] ranks from its own on. O(1).
 */
void by_circulant_gather(const struct by_circulant *circulant, uint32_t rank, uint32_t round,
                         struct by_circulant_fold *fold);

/*
 * Computes round `round` < phase of the census. Each rank keeps a sum S, initially empty, sends S
 * (plus its own value if fold.count is 1, as in round 0) and adds received data to S. After the
 * last round, S plus the rank's own value is the sum of all. The order of operands differs between
 * ranks, so only exactly associative and commutative operators give all ranks the same bits. O(1).
 */
void by_circulant_census(const struct by_circulant *circulant, uint32_t rank, uint32_t round,
                         struct by_circulant_fold *fold);

/*
 * Returns the rounds in which a message for the rank `distance` ranks further moves: bit k is set
 * if it moves by skip[k]. The distance is the sum of these skips, largest first. An all-to-all in
 * `phase` rounds moves every message so, the rounds in descending order of k: in round k a rank
 * sends what moves in it to rank + skip[k]. distance < rank_count. O(log p).
 */
uint32_t by_circulant_path(const struct by_circulant *circulant, uint32_t distance);

/*
 * Returns how often the messages for all other ranks move: the sum of the bits of their paths.
 * O(p log p).
 */
uint64_t by_circulant_moves(const struct by_circulant *circulant);

/*
 * Computes what the rank at `distance` from the root does in round `round` < phase of a scatter
 * along the paths: a tree in which each rank receives, once, the shares of itself and of the ranks
 * behind it in the tree, which follow it, and then forwards parts of them. A gather is the scatter
 * reversed in time and along each edge. O(log p).
 */
void by_circulant_scatter(const struct by_circulant *circulant, uint32_t distance, uint32_t round,
                          struct by_circulant_span *span);

/*
 * Returns the number of blocks with the earliest completion for `bytes`, if a message of s bytes
 * takes latency_ns + s * gap_ps / 1000 nanoseconds. It is the n that minimises (n - 1 + phase) *
 * (latency + gap * bytes / n), which is the root of (phase - 1) * gap * bytes / latency, from 1 to
 * `block_count_max`. latency_ns 0 counts as 1.
 */
uint32_t by_circulant_block_count(const struct by_circulant *circulant, uint64_t bytes, uint64_t latency_ns,
                                  uint64_t gap_ps, uint32_t block_count_max);

#endif
