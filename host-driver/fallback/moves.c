/* Rounds of collectives between hosts; see moves.h. */
#include "host-driver/fallback/moves.h"

#include <string.h>

#include "host-driver/fallback/exchange.h"

/* per vector: with more blocks, message heads cost more than rounds */
#define BLOCKS_MAX 4096u

uint32_t by_team_pieces(const struct by_team *team)
{
    return team->circulant.rank_count + 1;
}

void by_phase_shard(const struct by_team *team, const struct by_phase *phase, uint32_t shard, uint64_t *first,
                    uint64_t *end)
{
    unsigned __int128 count = phase->count;
    uint32_t p = team->circulant.rank_count;

    if (phase->offsets != NULL) {
        *first = phase->offsets[shard];
        *end = phase->offsets[shard + 1];
        return;
    }
    *first = (uint64_t)(count * shard / p);
    *end = (uint64_t)(count * (shard + 1u) / p);
}

/* Appends the elements [first, end) to the pieces. */
static void add(const struct by_phase *phase, uint64_t first, uint64_t end, struct iovec *pieces,
                uint32_t *count, uint64_t *bytes)
{
    if (first == end)
        return;
    pieces[(*count)++] = (struct iovec){phase->base + first * phase->element_bytes,
                                        (size_t)((end - first) * phase->element_bytes)};
    *bytes += (end - first) * phase->element_bytes;
}

/* Appends block `block` of the elements [first, end). */
static void add_block(const struct by_phase *phase, uint64_t first, uint64_t end, uint32_t block,
                      struct iovec *pieces, uint32_t *count, uint64_t *bytes)
{
    unsigned __int128 length = end - first;

    add(phase, first + (uint64_t)(length * block / phase->block_count),
        first + (uint64_t)(length * (block + 1u) / phase->block_count), pieces, count, bytes);
}

/* Appends shards [first, first + shard_count), modulo p: one or two pieces. */
static void add_shards(const struct by_team *team, const struct by_phase *phase, uint32_t first,
                       uint32_t shard_count, struct iovec *pieces, uint32_t *count, uint64_t *bytes)
{
    uint32_t p = team->circulant.rank_count;
    uint32_t straight = first + shard_count <= p ? shard_count : p - first;
    uint64_t begin, end, unused;

    by_phase_shard(team, phase, first, &begin, &unused);
    by_phase_shard(team, phase, first + straight - 1, &unused, &end);
    add(phase, begin, end, pieces, count, bytes);
    if (straight == shard_count)
        return;
    by_phase_shard(team, phase, shard_count - straight - 1, &unused, &end);
    add(phase, 0, end, pieces, count, bytes);
}

static bool is_cube(const struct by_team *team)
{
    uint32_t p = team->circulant.rank_count;

    return team->way == BY_WAY_CUBE && (p & (p - 1)) == 0;
}

void by_phase_plan(const struct by_team *team, struct by_phase *phase)
{
    const struct by_circulant *circulant = &team->circulant;
    uint32_t p = circulant->rank_count;
    bool rooted = phase->kind == BY_PHASE_BROADCAST || phase->kind == BY_PHASE_REDUCE;

    phase->block_count = 1;
    if (p == 1) {
        phase->round_count = 0;
        return;
    }
    if (phase->kind == BY_PHASE_DIRECT) {
        phase->round_count = p - 1;
        return;
    }
    if (phase->kind > BY_PHASE_SCATTER) {
        phase->round_count = circulant->phase;
        return;
    }
    if (team->way == BY_WAY_RING && !rooted) {
        phase->round_count = p - 1;
        return;
    }
    if (is_cube(team) && !rooted) {
        phase->round_count = circulant->phase;
        return;
    }
    /* The hypercube broadcast sends the whole vector: a binomial tree. */
    if (team->way != BY_WAY_CUBE || !rooted)
        phase->block_count = by_circulant_block_count(circulant, phase->count * phase->element_bytes,
                                                      team->latency_ns, team->gap_ps, BLOCKS_MAX);
    phase->round_count = team->way == BY_WAY_RING ? phase->block_count + p - 2
                                                  : by_circulant_rounds(circulant, phase->block_count);
}

/* ---- circulant */

/* A broadcast from `root` of [first, end), or its reversal. */
static void add_rooted(const struct by_team *team, const struct by_phase *phase, uint32_t root,
                       uint64_t first, uint64_t end, uint32_t index, struct by_round *round)
{
    uint32_t p = team->circulant.rank_count;
    const struct by_circulant_schedule *schedule = &team->schedules[(team->rank + p - root) % p];
    struct by_circulant_step step;

    if (round->fold)
        by_circulant_reduce(&team->circulant, schedule, team->rank, root, phase->block_count, index, &step);
    else
        by_circulant_broadcast(&team->circulant, schedule, team->rank, root, phase->block_count, index,
                               &step);
    round->to = step.to;
    round->from = step.from;
    if (step.send != BY_CIRCULANT_NONE)
        add_block(phase, first, end, step.send, round->send, &round->send_count, &round->send_bytes);
    if (step.receive != BY_CIRCULANT_NONE)
        add_block(phase, first, end, step.receive, round->receive, &round->receive_count,
                  &round->receive_bytes);
}

static void circulant_round(const struct by_team *team, const struct by_phase *phase, uint32_t index,
                            struct by_round *round)
{
    uint64_t first, end;

    if (phase->kind == BY_PHASE_BROADCAST || phase->kind == BY_PHASE_REDUCE) {
        add_rooted(team, phase, phase->root, 0, phase->count, index, round);
        return;
    }
    for (uint32_t root = 0; root < team->circulant.rank_count; root++) {
        by_phase_shard(team, phase, root, &first, &end);
        add_rooted(team, phase, root, first, end, index, round);
    }
}

static void fold_round(const struct by_team *team, const struct by_phase *phase, uint32_t index,
                       struct by_round *round)
{
    struct by_circulant_fold fold;

    if (phase->kind == BY_PHASE_SMALL)
        by_circulant_gather(&team->circulant, team->rank, index, &fold);
    else
        by_circulant_census(&team->circulant, team->rank, index, &fold);
    round->to = fold.to;
    round->from = fold.from;
    if (phase->kind == BY_PHASE_SMALL) {
        add_shards(team, phase, team->rank, fold.count, round->send, &round->send_count, &round->send_bytes);
        add_shards(team, phase, fold.from, fold.count, round->receive, &round->receive_count,
                   &round->receive_bytes);
        return;
    }
    round->sends = round->receives = true;
    if (phase->kind == BY_PHASE_TOKEN)
        return;
    add(phase, 0, phase->count, round->receive, &round->receive_count, &round->receive_bytes);
    add(phase, 0, phase->count, round->send, &round->send_count, &round->send_bytes);
    round->send[0].iov_base = phase->census;
    round->fold = index > 0; /* S is initially empty */
}

/* ---- ring */

static void ring_round(const struct by_team *team, const struct by_phase *phase, uint32_t index,
                       struct by_round *round)
{
    uint32_t p = team->circulant.rank_count;
    uint32_t rank = team->rank;
    /* p ranks further around the ring is the starting rank. */
    uint32_t sent = phase->kind == BY_PHASE_GATHER ? (rank + p - index) % p : (rank + 2 * p - 1 - index) % p;

    round->to = (rank + 1) % p;
    round->from = (rank + p - 1) % p;
    add_shards(team, phase, sent, 1, round->send, &round->send_count, &round->send_bytes);
    add_shards(team, phase, (sent + p - 1) % p, 1, round->receive, &round->receive_count,
               &round->receive_bytes);
}

/* A chain from the root, or to it, in blocks; `place` is the distance from the start. */
static void chain_round(const struct by_team *team, const struct by_phase *phase, uint32_t index,
                        struct by_round *round)
{
    uint32_t p = team->circulant.rank_count;
    uint32_t distance = (team->rank + p - phase->root) % p;
    bool forth = phase->kind == BY_PHASE_BROADCAST;
    uint32_t place = forth ? distance : p - 1 - distance;
    uint32_t next = (team->rank + 1) % p, previous = (team->rank + p - 1) % p;

    round->to = forth ? next : previous;
    round->from = forth ? previous : next;
    if (place < p - 1 && index >= place && index - place < phase->block_count)
        add_block(phase, 0, phase->count, index - place, round->send, &round->send_count, &round->send_bytes);
    if (place > 0 && index + 1 >= place && index + 1 - place < phase->block_count)
        add_block(phase, 0, phase->count, index + 1 - place, round->receive, &round->receive_count,
                  &round->receive_bytes);
}

/* ---- hypercube: recursive doubling; reversed: recursive halving */

static void cube_round(const struct by_team *team, const struct by_phase *phase, uint32_t index,
                       struct by_round *round)
{
    bool doubling = phase->kind == BY_PHASE_GATHER;
    uint32_t k = doubling ? index : phase->round_count - 1 - index;
    uint32_t side = 1u << k;
    uint32_t partner = team->rank ^ side;
    uint32_t own = team->rank & ~(side - 1), other = partner & ~(side - 1);

    round->to = round->from = partner;
    add_shards(team, phase, doubling ? own : other, side, round->send, &round->send_count,
               &round->send_bytes);
    add_shards(team, phase, doubling ? other : own, side, round->receive, &round->receive_count,
               &round->receive_bytes);
}

void by_phase_round(const struct by_team *team, const struct by_phase *phase, uint32_t index,
                    struct by_round *round)
{
    bool rooted = phase->kind == BY_PHASE_BROADCAST || phase->kind == BY_PHASE_REDUCE;

    round->send_count = round->receive_count = 0;
    round->send_bytes = round->receive_bytes = 0;
    round->sends = round->receives = false;
    round->fold = phase->kind == BY_PHASE_REDUCE || phase->kind == BY_PHASE_SCATTER;
    if (phase->kind >= BY_PHASE_DIRECT)
        by_exchange_round(team, phase, index, round);
    else if (phase->kind > BY_PHASE_SCATTER)
        fold_round(team, phase, index, round);
    else if (team->way == BY_WAY_RING && rooted)
        chain_round(team, phase, index, round);
    else if (team->way == BY_WAY_RING)
        ring_round(team, phase, index, round);
    else if (is_cube(team) && !rooted)
        cube_round(team, phase, index, round);
    else
        circulant_round(team, phase, index, round);
    round->sends |= round->send_bytes > 0;
    round->receives |= round->receive_bytes > 0;
}
