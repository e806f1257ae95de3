/*
 * The bytes that a rank sends and receives, and its peers, in each round of a collective between
 * hosts: the schedules of host-driver/circulant and two older ones, a ring and recursive halving
 * and doubling. All ranks derive the same schedule from the same inputs. No I/O; any thread.
 */
#ifndef BY_HOST_FALLBACK_MOVES_H
#define BY_HOST_FALLBACK_MOVES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "host-driver/circulant/circulant.h"

struct by_call;

enum by_way { BY_WAY_CIRCULANT = 1, BY_WAY_RING, BY_WAY_CUBE };

/* State that all calls of a job share. */
struct by_team {
    struct by_circulant circulant;
    uint32_t rank;
    enum by_way way;
    uint64_t latency_ns, gap_ps; /* cost of a message, and of each byte */
    uint64_t moves;              /* by_circulant_moves() */
    bool few_files;              /* some rank may not open a connection to each other */
    /* of all ranks, counted from the root; [1] belongs to rank root + 1 */
    struct by_circulant_schedule *schedules;
};

/* What a phase does with its vector, which is divided into one shard per rank or belongs to its
 * root. */
enum by_phase_kind {
    BY_PHASE_BROADCAST = 1, /* root's vector to all */
    BY_PHASE_REDUCE,        /* the sum of all vectors to root */
    BY_PHASE_GATHER,        /* every rank's shard to all */
    BY_PHASE_SCATTER,       /* the sum of every shard to its rank */
    BY_PHASE_SMALL,         /* like gather, in ceil(log2 p) rounds */
    BY_PHASE_CENSUS,        /* see by_circulant_census; base is S, census is the value sent */
    BY_PHASE_TOKEN,         /* no data; afterwards every rank has heard of every other */
    /* Exchanges (exchange.h): each message has one receiver. */
    BY_PHASE_DIRECT, /* each to its receiver; the rounds of a rank's messages are independent */
    BY_PHASE_ROUTED, /* all-to-all in ceil(log2 p) rounds */
    BY_PHASE_SPREAD, /* scatter along a tree, in as many rounds */
    BY_PHASE_COLLECT /* gather, its reversal */
};

struct by_phase {
    enum by_phase_kind kind;
    uint32_t root;
    uint32_t element_bytes;
    uint64_t count; /* elements of the whole vector */
    /* unequal shards: shard s is [offsets[s], offsets[s + 1]); or NULL */
    const uint64_t *offsets;
    uint8_t *base;
    uint8_t *census;
    /* of an exchange (exchange.h) */
    const struct by_call *call;
    const uint8_t *send;
    uint8_t *relayed;
    uint32_t block_count, round_count; /* set by by_phase_plan */
};

/* One round. `fold`: received data are added to the pieces instead of stored there. */
struct by_round {
    bool sends, receives, fold;
    uint32_t to, from;
    uint32_t send_count, receive_count; /* pieces */
    struct iovec *send, *receive;       /* the caller's, by_team_pieces() entries each */
    uint64_t send_bytes, receive_bytes;
};

/* Chooses the blocks and rounds of a phase whose other fields are set. */
void by_phase_plan(const struct by_team *team, struct by_phase *phase);
/* Fills all fields of `round` except the two pointers. round < round_count. */
void by_phase_round(const struct by_team *team, const struct by_phase *phase, uint32_t index,
                    struct by_round *round);
/* Returns the elements of shard `shard`: [first, end). */
void by_phase_shard(const struct by_team *team, const struct by_phase *phase, uint32_t shard, uint64_t *first,
                    uint64_t *end);
/* Maximum number of pieces in a round. */
uint32_t by_team_pieces(const struct by_team *team);

#endif
