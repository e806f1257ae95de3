/*
 * What one rank does in an operation of a schedule: sends, receives and combinations of data, each
 * with the steps that must precede it. Read from a file of moves (banyan-moves-1, docs/exchange.md)
 * that `banyan export --format hosts` writes. No network; immutable once read; any thread.
 */
#ifndef BY_HOST_SCHEDULE_PROGRAM_H
#define BY_HOST_SCHEDULE_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BY_SCHEDULE_RANKS_MAX  1000u
#define BY_SCHEDULE_CHUNKS_MAX 65536u
#define BY_SCHEDULE_ROUNDS_MAX 1000000u
#define BY_SCHEDULE_NONE       UINT32_MAX

enum by_program_step_kind { BY_STEP_SEND = 1, BY_STEP_RECEIVE, BY_STEP_COMBINE };

/* A step moves or makes the chunks `first` to `first + count - 1` of `item`. */
struct by_program_step {
    enum by_program_step_kind kind;
    uint32_t round; /* earlier rounds are preferred */
    uint32_t item;
    uint32_t first, count;
    uint32_t way;         /* of a send or receive */
    uint32_t index;       /* of a send or receive: number among the steps of this way, from 0 */
    uint32_t left, right; /* of a combination: items */
    uint32_t needs;       /* steps that must precede it */
    uint32_t after;       /* index in `after` of the first step that needs this one */
    uint32_t after_count;
};

/* Data that this rank sends, receives, passes on or combines: the message from rank `source` for
 * rank `target`, or in a reduce the sum of the values of some ranks. */
struct by_item {
    uint32_t source, target;
    uint64_t ranks; /* of a reduce, as bits; else 0 */
};

/* A connection in one direction, along a path of the fabric. */
struct by_way_end {
    uint32_t path; /* number in the file */
    uint32_t peer;
    bool sends;
    uint32_t ip; /* of the receiver, in host order; 0: the one at which the ranks have met */
    uint32_t step_count;
    uint32_t *steps; /* by `index` */
};

struct by_program {
    char *path;    /* of the file */
    uint64_t hash; /* of its text */
    uint32_t rank, rank_count;
    bool reduces;
    bool ports_many;  /* the links of a rank share no port */
    uint32_t target;  /* of a reduce */
    bool *pairs;      /* by source and target: there is a message; NULL in a reduce */
    uint64_t relayed; /* most receives of one rank that are not for itself; alike for all ranks */
    uint32_t chunk_count, round_count, interval;
    uint32_t item_count;
    struct by_item *items;
    uint32_t step_count;
    struct by_program_step *steps; /* in the order of rounds */
    uint32_t *after;               /* steps */
    uint32_t way_count;
    struct by_way_end *ways;
};

/* Whether this rank has the item from the start, in its own data. */
bool by_program_is_own(const struct by_program *program, const struct by_item *item);
/* Whether the item is a result of this rank: a message for it, or the sum of all values at the
 * target. */
bool by_program_is_result(const struct by_program *program, const struct by_item *item);
/* Reads the program of `rank`. 0, or an error whose text names the file: BY_ENOENT, BY_EFORMAT,
 * BY_EMISMATCH if the file is for another number of ranks, BY_ENOMEM. */
int by_schedule_program_read(const char *path, uint32_t rank, uint32_t rank_count,
                             struct by_program **program);
void by_schedule_program_free(struct by_program *program);

#endif
