/* A rank's standbys; see standby.h. Thread: the communicator's. */
#include "host-driver/standby.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host-driver/comm.h"
#include "host-driver/error.h"
#include "host-driver/survive.h"
#include "offload/endpoint/rounds.h"

/* The least time of an attempt (ns). */
#define ATTEMPT_LEAST_NS UINT64_C(200000000)
/* Least patience in a standby whose base the ranks have left (ns). */
#define AGAIN_NS UINT64_C(1000000000)

/* ---- tables ---- */

static void drop(struct banyan_comm *comm, struct by_standby *standby)
{
    by_progress_side_close(&comm->progress, standby->side);
    free(standby->image);
    free(standby->mask);
    *standby = (struct by_standby){0};
}

/* Removes the first `count` standbys. */
static void drop_first(struct banyan_comm *comm, struct by_standbys *standbys, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        drop(comm, &standbys->list[i]);
    standbys->count -= count;
    memmove(standbys->list, standbys->list + count, standbys->count * sizeof(standbys->list[0]));
    memset(standbys->list + standbys->count, 0, count * sizeof(standbys->list[0]));
}

/* Ends the rounds, and closes the trees of rounds of the first `count` standbys: this rank
 * contributes to none of them any more. */
static void leave(struct banyan_comm *comm, struct by_standbys *standbys, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        by_progress_side_close(&comm->progress, standbys->list[i].side);
        standbys->list[i].side = NULL;
    }
    free(standbys->rounds_memory);
    standbys->rounds_memory = NULL;
    standbys->rounds = NULL;
}

void by_standby_end(struct banyan_comm *comm, struct by_standbys *standbys)
{
    leave(comm, standbys, standbys->count);
    standbys->ended = true;
}

void by_standby_clear(struct banyan_comm *comm, struct by_standbys *standbys)
{
    leave(comm, standbys, standbys->count);
    drop_first(comm, standbys, standbys->count);
    memset(standbys, 0, sizeof(*standbys));
}

static uint8_t *copy_of(const uint8_t *bytes, size_t size)
{
    uint8_t *copy = malloc(size > 0 ? size : 1);

    if (copy != NULL && size > 0)
        memcpy(copy, bytes, size);
    return copy;
}

/* Returns whether a is an earlier generation than b, in the order of attempts. */
static bool is_before(uint16_t a, uint16_t b)
{
    return a != b && (uint16_t)(b - a) < 0x8000;
}

/* Returns the place of a generation in the list, where it is or must be inserted. */
static uint32_t place_of(const struct by_standbys *standbys, uint16_t gen)
{
    uint32_t place = 0;

    while (place < standbys->count && is_before(standbys->list[place].gen, gen))
        place++;
    return place;
}

void by_standby_take(struct banyan_comm *comm, struct by_standbys *standbys,
                     const struct by_member_frame *frame)
{
    struct by_standby taken = {.gen = frame->gen, .base = frame->base, .mask_bytes = frame->mask_bytes};
    uint32_t place;

    /* A move is under way: its standbys must stay as they are. Before the rank is complete, it has
     * no generation. */
    if (standbys->move.tried > 0 || standbys->ended ||
        (comm->progress.endpoint != NULL && frame->base != comm->job.gen))
        return;
    if (frame->gen == frame->base ||
        (standbys->count > 0 && standbys->list[0].base != frame->base)) /* of a base that has ended */
        by_standby_clear(comm, standbys);
    if (frame->gen == frame->base)
        return;
    place = place_of(standbys, frame->gen);
    if (place < standbys->count && standbys->list[place].gen == frame->gen) {
        const struct by_standby *had = &standbys->list[place];

        if (had->base == frame->base && had->bytes == frame->bytes - frame->mask_bytes &&
            memcmp(had->image, frame->data + frame->mask_bytes, had->bytes) == 0)
            return;
        drop(comm, &standbys->list[place]);
    } else if (standbys->count == BY_STANDBYS_MAX) {
        return;
    } else {
        memmove(standbys->list + place + 1, standbys->list + place,
                (standbys->count - place) * sizeof(standbys->list[0]));
        standbys->count++;
    }
    taken.bytes = frame->bytes - frame->mask_bytes;
    taken.mask = copy_of(frame->data, frame->mask_bytes);
    taken.image = copy_of(frame->data + frame->mask_bytes, taken.bytes);
    taken.refused = taken.mask == NULL || taken.image == NULL;
    standbys->list[place] = taken;
}

/* Opens the tree of rounds, when the rank is complete. */
static void open_standby(struct banyan_comm *comm, struct by_standby *standby)
{
    struct by_progress_config config;
    int error = by_survive_check_coming(comm, standby->gen, standby->image, standby->bytes);

    if (error == 0)
        error = by_comm_progress_config(comm, standby->image, standby->bytes, &config);
    if (error == 0 && by_level_rounds_size(comm->progress.endpoint) == 0)
        error = by_fail(BY_ELIMIT, "the job has too many trees with too long windows");
    if (error == 0)
        error = by_progress_side_open(&comm->progress, &config, &standby->side);
    standby->refused = error != 0;
    if (error != 0 && atoi(comm->context->settings.value[BY_SETTING_LOG]) >= 1)
        fprintf(stderr, "banyan: job %u rank %u of %u (%s): standby generation %u is not used: %s\n",
                comm->job.job, comm->job.rank, comm->job.rank_count, comm->header.name, standby->gen,
                by_fail_text());
}

/* Opens the standbys that are new. */
static void open_all(struct banyan_comm *comm, struct by_standbys *standbys)
{
    for (uint32_t i = 0; i < standbys->count; i++) {
        struct by_standby *standby = &standbys->list[i];

        if (standby->side == NULL && !standby->refused && standby->base == comm->job.gen)
            open_standby(comm, standby);
    }
}

/* ---- a move ---- */

/* Returns the choice as it is now: without standbys whose trees are not open. */
static struct by_standby_move *move_of(const struct banyan_comm *comm, struct by_standbys *standbys)
{
    struct by_standby_move *move = &standbys->move;

    move->again_ns = AGAIN_NS;
    move->attempt_ns = ATTEMPT_LEAST_NS;
    move->left = standbys->list[0].base != comm->job.gen;
    move->broken = standbys->rounds == NULL;
    move->count = standbys->count;
    for (uint32_t s = 0; s < standbys->count; s++) {
        const struct by_standby *standby = &standbys->list[s];

        move->list[s] =
            (struct by_standby_tree){.rounds = standby->side != NULL ? standby->side->endpoint : NULL,
                                     .mask = standby->mask,
                                     .mask_bytes = standby->mask_bytes};
    }
    return move;
}

static int enter(struct banyan_comm *comm, struct by_standbys *standbys, struct by_survive *survive,
                 uint32_t s)
{
    struct by_standby *standby = &standbys->list[s - 1];
    int error;

    leave(comm, standbys, s - 1);
    by_standby_move_begin(&standbys->move, s, by_comm_now(comm));
    error = by_survive_stand(comm, survive, standby->gen, standby->image, standby->bytes,
                             standbys->move.began_ns);
    if (error != 0)
        return error;
    standbys->rounds_memory = aligned_alloc(64, by_level_rounds_size(comm->progress.endpoint));
    if (standbys->rounds_memory == NULL)
        return by_fail(BY_ENOMEM, "no memory to move to standby generation %u: %zu bytes", standby->gen,
                       by_level_rounds_size(comm->progress.endpoint));
    if (by_level_rounds_begin(&standbys->rounds, standbys->rounds_memory, survive->resume,
                              standby->side->endpoint) != 0)
        standbys->rounds = NULL; /* the tree is used up; the next one serves */
    standby->side->busy = true;
    return 1;
}

static int carry(struct banyan_comm *comm, struct by_standbys *standbys, struct by_survive *survive)
{
    int error = by_survive_carry(comm, survive);

    if (error != 0)
        return error;
    leave(comm, standbys, standbys->move.tried);
    drop_first(comm, standbys, standbys->move.tried);
    standbys->move.tried = 0;
    return 2;
}

int by_standby_step(struct banyan_comm *comm, struct by_standbys *standbys, struct by_survive *survive,
                    uint64_t patience_ns, uint64_t now_ns)
{
    uint32_t s;
    int error;

    if (standbys->count == 0 || standbys->ended)
        return 0;
    if (standbys->move.tried == 0)
        open_all(comm, standbys);
    s = by_standby_move_choose(move_of(comm, standbys), comm->progress.endpoint, patience_ns, now_ns);
    if (s > 0)
        return enter(comm, standbys, survive, s);
    if (standbys->rounds == NULL)
        return 0;
    error = by_level_rounds_step(standbys->rounds);
    if (error < 0)
        standbys->rounds = NULL; /* the next standby or the controller serves; the memory stays */
    if (error < 0 || !by_level_rounds_is_over(standbys->rounds))
        return error > 0;
    return carry(comm, standbys, survive);
}

bool by_standby_is_stuck(const struct banyan_comm *comm, struct by_standbys *standbys, uint64_t patience_ns)
{
    return !standbys->ended &&
           by_standby_move_is_stuck(move_of(comm, standbys), patience_ns, by_comm_now(comm));
}

uint64_t by_standby_deadline(const struct banyan_comm *comm, const struct by_standbys *standbys,
                             uint64_t patience_ns)
{
    if (standbys->count == 0 || standbys->ended)
        return UINT64_MAX;
    return by_standby_move_deadline(&standbys->move, comm->progress.endpoint, patience_ns);
}
