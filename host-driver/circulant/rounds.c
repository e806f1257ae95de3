/*
 * Turns schedules into each rank's action in each round, and computes the best number of blocks;
 * see circulant.h. Any thread.
 */
#include "host-driver/circulant/circulant.h"

#include "offload/base/assert.h"

uint32_t by_circulant_rounds(const struct by_circulant *circulant, uint32_t block_count)
{
    BY_ASSERT(block_count >= 1 && block_count <= BY_CIRCULANT_BLOCKS_MAX);
    return circulant->phase > 0 ? block_count - 1 + circulant->phase : 0;
}

static uint32_t after(const struct by_circulant *circulant, uint32_t rank, uint32_t distance)
{
    uint32_t sum = rank + distance;

    return sum >= circulant->rank_count ? sum - circulant->rank_count : sum;
}

static uint32_t before(const struct by_circulant *circulant, uint32_t rank, uint32_t distance)
{
    return after(circulant, rank, circulant->rank_count - distance);
}

/* Returns the block of an entry in a phase whose first block is `first`. Blocks before 0 do not
 * exist. Blocks beyond the last one represent the last one: a rank gets exactly one of them, in the
 * last phase. */
static uint32_t block_of(int8_t entry, int64_t first, uint32_t block_count)
{
    int64_t block = first + entry;

    if (block < 0)
        return BY_CIRCULANT_NONE;
    return block < block_count ? (uint32_t)block : block_count - 1;
}

void by_circulant_broadcast(const struct by_circulant *circulant,
                            const struct by_circulant_schedule *schedule, uint32_t rank, uint32_t root,
                            uint32_t block_count, uint32_t round, struct by_circulant_step *step)
{
    uint32_t phase = circulant->phase;
    uint32_t rounds = by_circulant_rounds(circulant, block_count);
    uint32_t dummies, k;
    int64_t first;

    BY_ASSERT(round < rounds);
    /* Empty rounds are placed before the first round, so that the last phase is complete. */
    dummies = (phase - rounds % phase) % phase;
    k = (round + dummies) % phase;
    first = (int64_t)(round + dummies) - k - dummies;
    step->to = after(circulant, rank, circulant->skip[k]);
    step->from = before(circulant, rank, circulant->skip[k]);
    step->send = step->to == root ? BY_CIRCULANT_NONE : block_of(schedule->send[k], first, block_count);
    step->receive = rank == root ? BY_CIRCULANT_NONE : block_of(schedule->receive[k], first, block_count);
}

void by_circulant_reduce(const struct by_circulant *circulant, const struct by_circulant_schedule *schedule,
                         uint32_t rank, uint32_t root, uint32_t block_count, uint32_t round,
                         struct by_circulant_step *step)
{
    struct by_circulant_step forth;

    by_circulant_broadcast(circulant, schedule, rank, root, block_count,
                           by_circulant_rounds(circulant, block_count) - 1 - round, &forth);
    *step = (struct by_circulant_step){
        .to = forth.from, .from = forth.to, .send = forth.receive, .receive = forth.send};
}

void by_circulant_gather(const struct by_circulant *circulant, uint32_t rank, uint32_t round,
                         struct by_circulant_fold *fold)
{
    const uint32_t *skip = circulant->skip;

    BY_ASSERT(round < circulant->phase);
    fold->to = before(circulant, rank, skip[round]);
    fold->from = after(circulant, rank, skip[round]);
    fold->count = skip[round + 1] - skip[round];
}

/* S holds the values of the skip[round] - 1 ranks after this rank. To cover skip[round + 1] - 1
 * ranks, it needs the same number again, plus one if skip[round + 1] is even. */
void by_circulant_census(const struct by_circulant *circulant, uint32_t rank, uint32_t round,
                         struct by_circulant_fold *fold)
{
    const uint32_t *skip = circulant->skip;
    uint32_t distance;

    BY_ASSERT(round < circulant->phase);
    fold->count = skip[round + 1] % 2 == 0;
    distance = fold->count == 1 ? skip[round] : skip[round] - 1;
    fold->to = before(circulant, rank, distance);
    fold->from = after(circulant, rank, distance);
}

uint32_t by_circulant_path(const struct by_circulant *circulant, uint32_t distance)
{
    uint32_t path = 0;

    BY_ASSERT(distance < circulant->rank_count);
    for (uint32_t k = circulant->phase; k-- > 0;)
        if (distance >= circulant->skip[k]) {
            distance -= circulant->skip[k];
            path |= UINT32_C(1) << k;
        }
    return path;
}

uint64_t by_circulant_moves(const struct by_circulant *circulant)
{
    uint64_t moves = 0;

    for (uint32_t distance = 1; distance < circulant->rank_count; distance++)
        for (uint32_t path = by_circulant_path(circulant, distance); path != 0; path &= path - 1)
            moves++;
    return moves;
}

/* Before the round of skip[k], a rank that has shares has `held` <= skip[k + 1] of them, its own
 * first. The round takes away those from skip[k] on. */
void by_circulant_scatter(const struct by_circulant *circulant, uint32_t distance, uint32_t round,
                          struct by_circulant_span *span)
{
    uint32_t path = by_circulant_path(circulant, distance);
    uint32_t last = circulant->phase - 1 - round;
    uint32_t held = circulant->rank_count;

    BY_ASSERT(round < circulant->phase);
    *span = (struct by_circulant_span){0};
    for (uint32_t k = circulant->phase; k-- > last;) {
        uint32_t skip = circulant->skip[k];
        bool moves = path >> k & 1;

        if (k == last && moves && (path & ((UINT32_C(1) << k) - 1)) == 0)
            *span = (struct by_circulant_span){
                .receives = true, .peer = distance - skip, .first = distance, .count = held - skip};
        if (k == last && (path & ((UINT32_C(2) << k) - 1)) == 0 && held > skip)
            *span = (struct by_circulant_span){
                .sends = true, .peer = distance + skip, .first = distance + skip, .count = held - skip};
        held = moves ? held - skip : held < skip ? held : skip;
    }
}

/* Returns the largest integer whose square is at most `square`. */
static uint64_t root_of(unsigned __int128 square)
{
    uint64_t root = 0;

    for (uint64_t bit = UINT64_C(1) << 63; bit > 0; bit >>= 1)
        if ((unsigned __int128)(root | bit) * (root | bit) <= square)
            root |= bit;
    return root;
}

uint32_t by_circulant_block_count(const struct by_circulant *circulant, uint64_t bytes, uint64_t latency_ns,
                                  uint64_t gap_ps, uint32_t block_count_max)
{
    unsigned __int128 product = (unsigned __int128)bytes * gap_ps;
    unsigned __int128 latency_ps = (unsigned __int128)(latency_ns > 0 ? latency_ns : 1) * 1000u;
    uint64_t best;

    if (circulant->phase < 2)
        return 1; /* two ranks: a single message is best */
    best = root_of(product / latency_ps * (circulant->phase - 1) +
                   product % latency_ps * (circulant->phase - 1) / latency_ps);
    if (best > block_count_max)
        best = block_count_max;
    return best > 0 ? (uint32_t)best : 1;
}
