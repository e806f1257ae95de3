/*
 * Schedules of rounds. In each round some nodes send some shards; the next round begins when all
 * have arrived. The data are `shard_count` equal shards, one for each compute node. The time of a
 * round for data of size 1 is the time of its most loaded link; the sum over all rounds is exact.
 * One thread for each schedule.
 */
#ifndef BY_STUDY_BASELINE_ROUNDS_H
#define BY_STUDY_BASELINE_ROUNDS_H

#include "control/study/baseline/net.h"

struct by_baseline_transfer {
    uint32_t round;
    uint32_t from; /* rank */
    uint32_t to;
    uint32_t shard; /* first shard; the following numbers wrap to 0 at shard_count */
    uint32_t count;
    bool reduce;         /* the receiver adds the data; false: it stores them */
    uint32_t path_first; /* index into `nodes` */
    uint32_t path_count;
};

struct by_rounds {
    unsigned collective;
    int64_t root; /* rank, or -1 */
    uint32_t shard_count;
    uint32_t round_count;
    uint32_t transfer_count, transfer_room;
    struct by_baseline_transfer *transfers; /* sorted by round */
    uint32_t node_count, node_room;
    uint32_t *nodes;             /* nodes of all paths */
    struct by_fraction *seconds; /* by round: time for data of size 1, in 1 / the topology's unit */
    struct by_fraction time;     /* sum of `seconds` */
    struct by_fraction achieved; /* 1 / `time` */
    uint32_t hops_max;
};

struct by_rounds *by_rounds_new(unsigned collective, int64_t root, uint32_t shard_count);
void by_rounds_free(struct by_rounds *rounds);
/* Adds a transfer to `round`, which is the last round so far or the next one. */
void by_rounds_add(struct by_rounds *rounds, uint32_t round, struct by_baseline_transfer transfer);
/*
 * Routes all transfers and computes the times. Returns 0, or with `problem` filled: BY_EINVAL if a
 * node cannot reach another, BY_ERANGE if a time exceeds 63 bits.
 */
int by_rounds_lay(struct by_rounds *rounds, struct by_baseline_net *net, struct by_problem *problem);
/*
 * Executes the schedule symbolically. Each node starts with its own contributions; no sum may
 * contain a contribution twice; in the end each node must have what the collective defines. Returns
 * false with the first fault in `problem`. Supports at most BY_ROUNDS_CHECK_MAX compute nodes.
 */
#define BY_ROUNDS_CHECK_MAX 512u
bool by_rounds_check(const struct by_rounds *rounds, struct by_problem *problem);
/* Writes the schedule as JSON (docs/exchange.md) to `stream` (a FILE *). Returns 0 or BY_EIO. */
int by_rounds_write(const struct by_rounds *rounds, const struct by_topology *topology, const char *algorithm,
                    struct by_fraction optimum, void *stream);

#endif
