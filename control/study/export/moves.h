/*
 * Scatters, gossips (all-to-alls), exchanges and reduces as operations of hosts. In each round a
 * host sends chunks to other hosts and receives some; it may forward or combine what it received in
 * a later round. Switches only forward. The format is JSON, banyan-moves-1 (docs/exchange.md), made
 * from a schedule of `banyan steady` or `banyan plan`; libbanyan executes it
 * (host-driver/schedule).
 *
 * Neighbours: moves.c makes and writes moves; moves_read.c reads and executes them. One thread for
 * each call.
 */
#ifndef BY_STUDY_EXPORT_MOVES_H
#define BY_STUDY_EXPORT_MOVES_H

#include <stdio.h>

#include "control/study/series/series.h"

/* Most chunks of a message (count); a host divides its data by this number. */
#define BY_MOVES_CHUNKS_MAX 65536u
/* Most rounds of a schedule and most moves of a file (count). */
#define BY_MOVES_ROUNDS_MAX 1000000u
#define BY_MOVES_MAX        4000000u

/*
 * `from` sends the chunks `first` to `first + count - 1` to `to`, over a path: of the message from
 * `source` for `target`, or in a reduce of the partial result number `source`. All but this number
 * are ranks. A combination has `from` == `to`: of the partial results `left` and `right` the rank
 * makes `source`.
 */
struct by_move {
    uint32_t round;
    uint32_t from, to;
    uint32_t source, target;
    uint32_t first, count;
    uint32_t path; /* index */
    uint32_t left, right;
};

/* A path from one host to another, without other hosts between them. */
struct by_moves_path {
    uint32_t from, to; /* ranks */
    uint32_t node_count;
    uint32_t *nodes; /* with both hosts; empty if it was read from a file */
    uint32_t next;   /* index of the next path from the same host, or UINT32_MAX */
};

struct by_moves {
    enum by_series_operation operation;
    enum by_series_ports ports;
    uint32_t rank_count;
    uint32_t chunk_count; /* chunks of each message */
    uint32_t round_count;
    uint32_t interval; /* rounds after which the next operation may begin */
    uint32_t move_count, move_room;
    struct by_move *moves; /* sends and combinations, sorted by round */
    uint32_t target;       /* of a reduce: the rank of the result */
    uint32_t partial_count;
    uint64_t *partials; /* of a reduce: the ranks whose values each partial result contains, as bits */
    uint32_t path_count, path_room;
    struct by_moves_path *paths;
};

/*
 * Makes the moves of one operation of the schedule. Returns 0, or with `problem` filled:
 * BY_EUNSUPPORTED for a reduce in which a switch combines, or whose values are not one for each
 * rank; BY_ELIMIT if a message needs too many chunks. The caller frees `moves` in either case.
 */
int by_moves_make(const struct by_series *series, const struct by_topology *topology, struct by_moves *moves,
                  struct by_problem *problem);
void by_moves_free(struct by_moves *moves);
/* Writes the file: for each host, its sends and receives in order. `addresses`, or NULL: by path,
 * the IPv4 address (host order) of its receiver to which it leads. Returns 0 or BY_EIO. */
int by_moves_write(const struct by_moves *moves, const struct by_topology *topology,
                   const uint32_t *addresses, FILE *file);
/* Whether the text declares this format. */
bool by_moves_suits(const char *text, size_t bytes);
/*
 * Reads a file and executes it symbolically. It checks that:
 * - every receive has a send in the same round;
 * - no host sends or combines data that it does not have yet, and no combination counts a value
 *   twice;
 * - no chunk reaches a host twice;
 * - at the end every message, or the complete result, is at its target.
 *
 * Returns 0; or with `problem` filled BY_EINVAL if the schedule is wrong, BY_EFORMAT or BY_ELIMIT
 * if the file holds no schedule that can be checked. The caller frees `moves` in either case.
 */
int by_moves_check(const char *text, size_t bytes, struct by_moves *moves, struct by_problem *problem);

#endif
