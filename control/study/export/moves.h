/*
 * Scatters and gossips (all-to-alls) as hosts do them: in each round a host sends some chunks of
 * some messages to other hosts and receives some; what it received it may send on in a later round.
 * Switches only forward. JSON of format banyan-moves-1 (docs/exchange.md), from a schedule of
 * banyan steady. Neighbours: moves.c makes and writes, moves_read.c reads and executes. One thread
 * for each call.
 */
#ifndef BY_STUDY_EXPORT_MOVES_H
#define BY_STUDY_EXPORT_MOVES_H

#include <stdio.h>

#include "control/study/series/series.h"

/* Chunks of a message (count): a host divides its data by it. */
#define BY_MOVES_CHUNKS_MAX 65536u
/* Rounds of a schedule, moves of a file (count). */
#define BY_MOVES_ROUNDS_MAX 1000000u
#define BY_MOVES_MAX        4000000u

/* Chunks `first` to `first + count - 1` of the message of `source` for `target` go from `from` to
 * `to`: all ranks. */
struct by_move {
    uint32_t round;
    uint32_t from, to;
    uint32_t source, target;
    uint32_t first, count;
};

struct by_moves {
    enum by_series_operation operation;
    uint32_t rank_count;
    uint32_t chunk_count; /* of each message */
    uint32_t round_count;
    uint32_t interval; /* rounds after which the next operation may begin */
    uint32_t move_count, move_room;
    struct by_move *moves; /* sends, by round */
};

/*
 * What hosts do in one operation of the schedule. 0; BY_EUNSUPPORTED for a reduction, BY_ELIMIT
 * when a message would have to be cut into too many chunks, each with `problem` filled. The caller
 * frees either way.
 */
int by_moves_make(const struct by_series *series, const struct by_topology *topology, struct by_moves *moves,
                  struct by_problem *problem);
void by_moves_free(struct by_moves *moves);
/* Writes the file: of each host its sends and receives in order. 0 or BY_EIO. */
int by_moves_write(const struct by_moves *moves, const struct by_topology *topology, FILE *file);
/* Whether the text says that it is such a file. */
bool by_moves_suits(const char *text, size_t bytes);
/*
 * Reads such a file and executes it on symbols: every receive has its send in the same round,
 * nobody sends what it does not have yet, no chunk reaches a host twice, and at the end every
 * message is where it belongs. 0; BY_EINVAL when the schedule is wrong, BY_EFORMAT or BY_ELIMIT
 * when there is none to check, with `problem` filled. `moves` is freed by the caller either way.
 */
int by_moves_check(const char *text, size_t bytes, struct by_moves *moves, struct by_problem *problem);

#endif
