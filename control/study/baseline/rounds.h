/*
 * Schedules of rounds: in each round some nodes send some shards, and the next round begins when
 * all have arrived. The data are `shard_count` equal shards, one for each compute node. The time of
 * a round for data of size 1 is what its fullest link needs; the sum over rounds is exact. One
 * thread for each schedule.
 */
#ifndef BY_STUDY_BASELINE_ROUNDS_H
#define BY_STUDY_BASELINE_ROUNDS_H

#include "control/study/baseline/net.h"

struct by_baseline_transfer {
    uint32_t round;
    uint32_t from; /* rank */
    uint32_t to;
    uint32_t shard; /* the first; they follow one another, from shard_count on again from 0 */
    uint32_t count;
    bool reduce;         /* the receiver adds what arrives, else it stores it */
    uint32_t path_first; /* in `nodes` */
    uint32_t path_count;
};

struct by_rounds {
    unsigned collective;
    int64_t root; /* rank, or -1 */
    uint32_t shard_count;
    uint32_t round_count;
    uint32_t transfer_count, transfer_room;
    struct by_baseline_transfer *transfers; /* in the order of their rounds */
    uint32_t node_count, node_room;
    uint32_t *nodes;             /* the nodes of all paths */
    struct by_fraction *seconds; /* by round: time for data of size 1, one over the topology's unit */
    struct by_fraction time;     /* their sum */
    struct by_fraction achieved; /* its inverse */
    uint32_t hops_max;
};

struct by_rounds *by_rounds_new(unsigned collective, int64_t root, uint32_t shard_count);
void by_rounds_free(struct by_rounds *rounds);
/* Adds a transfer to round number `round`, which is the last so far or the one after it. */
void by_rounds_add(struct by_rounds *rounds, uint32_t round, struct by_baseline_transfer transfer);
/* Routes all transfers and finds the times. BY_EINVAL when a node cannot reach another, BY_ERANGE
 * when a time exceeds 63 bits; `problem` is filled. */
int by_rounds_lay(struct by_rounds *rounds, struct by_baseline_net *net, struct by_problem *problem);
/*
 * Executes the schedule on symbols: each node starts with its own contribution to each shard it
 * contributes to, sums must not count one twice, and in the end each node must have what the
 * collective promises. False with the first fault in `problem`; at most BY_ROUNDS_CHECK_MAX compute
 * nodes.
 */
#define BY_ROUNDS_CHECK_MAX 512u
bool by_rounds_check(const struct by_rounds *rounds, struct by_problem *problem);
/* Writes the schedule as JSON (docs/exchange.md) to `stream` (a FILE *). 0 or BY_EIO. */
int by_rounds_write(const struct by_rounds *rounds, const struct by_topology *topology, const char *algorithm,
                    struct by_fraction optimum, void *stream);

#endif
