/*
 * Which bytes a rank sends to whom and receives from whom in each round of a collective between
 * hosts: the schedules of host-driver/circulant, and beside them two that are older, a ring and
 * recursive halving and doubling. All ranks work it out alike from the same facts. No I/O; any
 * thread.
 */
#ifndef BY_HOST_FALLBACK_MOVES_H
#define BY_HOST_FALLBACK_MOVES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "host-driver/circulant/circulant.h"

enum by_way { BY_WAY_CIRCULANT = 1, BY_WAY_RING, BY_WAY_CUBE };

/* What is the same for all calls of a job. */
struct by_team {
    struct by_circulant circulant;
    uint32_t rank;
    enum by_way way;
    uint64_t latency_ns, gap_ps; /* of a message, and of each byte of it */
    struct by_circulant_schedule
        *schedules; /* of all ranks counted from a root; [1] is that of rank root + 1 */
};

/* What a phase does with its vector, which is cut into a shard for each rank, or for its root
 * alone. */
enum by_phase_kind {
    BY_PHASE_BROADCAST = 1, /* root's vector to all */
    BY_PHASE_REDUCE,        /* the sum to root */
    BY_PHASE_GATHER,        /* every rank's shard to all */
    BY_PHASE_SCATTER,       /* of every shard the sum to its rank */
    BY_PHASE_SMALL,         /* as gather, in ceil(log2 p) rounds */
    BY_PHASE_CENSUS,        /* see by_circulant_census; base is S, census what is sent */
    BY_PHASE_TOKEN          /* nothing, but everybody has heard of everybody */
};

struct by_phase {
    enum by_phase_kind kind;
    uint32_t root;
    uint32_t element_bytes;
    uint64_t count;          /* elements of the whole vector */
    const uint64_t *offsets; /* of shards of unequal size: shard s is [offsets[s], offsets[s + 1]); or NULL */
    uint8_t *base;
    uint8_t *census;
    uint32_t block_count, round_count; /* by by_phase_plan */
};

/* One round. `fold`: what is received is added to where the pieces are, not stored there. */
struct by_round {
    bool sends, receives, fold;
    uint32_t to, from;
    uint32_t send_count, receive_count; /* pieces */
    struct iovec *send, *receive;       /* room for by_team_pieces() each, the caller's */
    uint64_t send_bytes, receive_bytes;
};

/* Chooses blocks and rounds of a phase whose other fields are set. */
void by_phase_plan(const struct by_team *team, struct by_phase *phase);
/* Fills all of `round` but the two pointers. round < round_count. */
void by_phase_round(const struct by_team *team, const struct by_phase *phase, uint32_t index,
                    struct by_round *round);
/* The elements of shard `shard`: [first, end). */
void by_phase_shard(const struct by_team *team, const struct by_phase *phase, uint32_t shard, uint64_t *first,
                    uint64_t *end);
/* Pieces of a round at most. */
uint32_t by_team_pieces(const struct by_team *team);

#endif
