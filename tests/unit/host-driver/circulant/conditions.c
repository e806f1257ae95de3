/* Implements conditions.h: the conditions on schedules. */
#include "tests/unit/host-driver/circulant/conditions.h"

#include <stdio.h>
#include <stdlib.h>

static bool fault(struct by_conditions *conditions, const struct by_circulant *c, uint32_t rank, uint32_t k,
                  const char *what)
{
    snprintf(conditions->fault, sizeof(conditions->fault), "p = %u, rank %u, round %u: %s", c->rank_count,
             rank, k, what);
    return false;
}

/* Bit block + q: blocks of the previous and of this phase that the rank has at the beginning of a
 * phase. */
static uint64_t had_of(const struct by_circulant *c, uint32_t rank)
{
    return rank == 0 ? ((UINT64_C(1) << c->phase) - 1) << c->phase
                     : UINT64_C(1) << by_circulant_baseblock(c, rank);
}

/* Bit block + q: blocks that the rank must receive in a phase. */
static uint64_t wanted_of(const struct by_circulant *c, uint32_t rank)
{
    uint64_t all = (UINT64_C(1) << c->phase) - 1;
    uint64_t base = UINT64_C(1) << by_circulant_baseblock(c, rank);

    return rank == 0 ? all : (all & ~base) | base << c->phase;
}

static uint64_t bit_of(const struct by_circulant *c, int8_t block)
{
    return UINT64_C(1) << (block + (int)c->phase);
}

static bool is_block(const struct by_circulant *c, int8_t block)
{
    return block >= -(int)c->phase && block < (int)c->phase;
}

bool by_conditions_one(struct by_conditions *conditions, uint32_t rank_count, uint32_t rank)
{
    struct by_circulant_schedule own = {0};
    struct by_circulant circulant, *c = &circulant;
    uint64_t had, got = 0;

    if (!by_circulant_init(c, rank_count))
        return fault(conditions, c, rank, 0, "no such graph");
    had = had_of(c, rank);
    by_circulant_schedule(c, rank, &own);
    conditions->ranks++;
    for (uint32_t k = 0; k < c->phase; k++) {
        uint32_t from = (uint32_t)(((uint64_t)rank + rank_count - c->skip[k]) % rank_count);
        uint32_t to = (uint32_t)(((uint64_t)rank + c->skip[k]) % rank_count);
        int8_t other[BY_CIRCULANT_PHASE_MAX] = {0};

        by_circulant_send(c, from, other);
        if (other[k] != own.receive[k] && rank != 0)
            return fault(conditions, c, rank, k, "receives what is not sent (1)");
        by_circulant_receive(c, to, other);
        if (other[k] != own.send[k] && (rank != 0 || to != 0) && to != 0)
            return fault(conditions, c, rank, k, "sends what is not received (2)");
        if (!is_block(c, own.receive[k]) || (got & bit_of(c, own.receive[k])) != 0)
            return fault(conditions, c, rank, k, "receives a block twice (3)");
        if (!is_block(c, own.send[k]) || (had & bit_of(c, own.send[k])) == 0)
            return fault(conditions, c, rank, k, "sends what it does not have (4)");
        got |= bit_of(c, own.receive[k]);
        had |= rank > 0 ? bit_of(c, own.receive[k]) : 0;
    }
    return got == wanted_of(c, rank) || fault(conditions, c, rank, c->phase, "misses a block (3)");
}

bool by_conditions_all(struct by_conditions *conditions, uint32_t rank_count)
{
    struct by_circulant circulant, *c = &circulant;
    size_t bytes = (size_t)rank_count * BY_CIRCULANT_PHASE_MAX;
    int8_t *receive;

    if (!by_circulant_init(c, rank_count))
        return fault(conditions, c, 0, 0, "no such graph");
    if (bytes > conditions->bytes) {
        free(conditions->memory);
        conditions->memory = malloc(bytes);
        conditions->bytes = conditions->memory != NULL ? bytes : 0;
        if (conditions->memory == NULL)
            return fault(conditions, c, 0, 0, "no memory for the schedules");
    }
    receive = conditions->memory; /* receive[rank * phase + k] */
    for (uint32_t rank = 0; rank < rank_count; rank++)
        by_circulant_receive(c, rank, receive + (size_t)rank * c->phase);
    for (uint32_t rank = 0; rank < rank_count; rank++) {
        const int8_t *own = receive + (size_t)rank * c->phase;
        int8_t send[BY_CIRCULANT_PHASE_MAX];
        uint64_t had = had_of(c, rank), got = 0;

        by_circulant_send(c, rank, send);
        for (uint32_t k = 0; k < c->phase; k++) {
            uint32_t to = rank + c->skip[k] < rank_count ? rank + c->skip[k] : rank + c->skip[k] - rank_count;

            if (!is_block(c, own[k]) || (got & bit_of(c, own[k])) != 0)
                return fault(conditions, c, rank, k, "receives a block twice (3)");
            if (send[k] != receive[(size_t)to * c->phase + k] && to != 0)
                return fault(conditions, c, rank, k, "sends what is not received (1, 2)");
            if (!is_block(c, send[k]) || (had & bit_of(c, send[k])) == 0)
                return fault(conditions, c, rank, k, "sends what it does not have (4)");
            got |= bit_of(c, own[k]);
            had |= rank > 0 ? bit_of(c, own[k]) : 0;
        }
        if (got != wanted_of(c, rank))
            return fault(conditions, c, rank, c->phase, "misses a block (3)");
    }
    conditions->ranks += rank_count;
    return true;
}

bool by_conditions_some(struct by_conditions *conditions, uint32_t rank_count, uint32_t count, uint64_t seed)
{
    struct by_circulant c;

    if (!by_circulant_init(&c, rank_count))
        return fault(conditions, &c, 0, 0, "no such graph");
    for (uint32_t i = 0; i < count; i++) {
        uint32_t draw;
        int64_t rank;

        seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        draw = (uint32_t)(seed >> 32);
        rank = draw >> 8;
        if (draw % 4 != 0) /* near a skip, from the beginning or from the end */
            rank = (draw % 4 == 1 ? 0 : (int64_t)rank_count) +
                   (draw % 4 == 1 ? 1 : -1) * (int64_t)c.skip[rank % (c.phase + 1)] +
                   (int64_t)(draw / 4 % 5) - 2;
        rank %= rank_count;
        if (!by_conditions_one(conditions, rank_count, (uint32_t)(rank < 0 ? rank + rank_count : rank)))
            return false;
    }
    return true;
}

static bool check_paths(struct by_conditions *conditions, const struct by_circulant *c)
{
    uint64_t moves = 0;

    for (uint32_t distance = 0; distance < c->rank_count; distance++) {
        uint32_t path = by_circulant_path(c, distance);
        uint64_t sum = 0;

        for (uint32_t k = 0; k < c->phase; k++)
            sum += path >> k & 1 ? c->skip[k] : 0;
        if (sum != distance || path >> c->phase != 0)
            return fault(conditions, c, distance, 0, "a path ends elsewhere");
        moves += (uint32_t)__builtin_popcount(path);
    }
    return moves == by_circulant_moves(c) || fault(conditions, c, 0, 0, "moves are counted wrongly");
}

/* One rank of a scatter; `end` receives the end of the range that it has had. */
static bool check_scatter(struct by_conditions *conditions, const struct by_circulant *c, uint32_t rank,
                          uint32_t *end)
{
    uint32_t held_end = rank == 0 ? c->rank_count : 0;

    *end = held_end;
    for (uint32_t round = 0; round < c->phase; round++) {
        struct by_circulant_span own, other;

        by_circulant_scatter(c, rank, round, &own);
        if (!own.sends && !own.receives)
            continue;
        if (own.sends == own.receives || own.peer >= c->rank_count)
            return fault(conditions, c, rank, round, "sends and receives, or to no rank");
        by_circulant_scatter(c, own.peer, round, &other);
        if (other.peer != rank || other.sends != own.receives || other.first != own.first ||
            other.count != own.count || own.count == 0)
            return fault(conditions, c, rank, round, "one rank sends what the other does not receive");
        if (own.receives && (held_end != 0 || own.first != rank))
            return fault(conditions, c, rank, round, "receives twice, or not its own share first");
        if (own.sends && (own.first <= rank || own.first + own.count != held_end))
            return fault(conditions, c, rank, round, "sends what it does not have");
        held_end = own.receives ? own.first + own.count : own.first;
        if (own.receives)
            *end = held_end;
    }
    return held_end == rank + 1 || fault(conditions, c, rank, c->phase, "ends without its share alone");
}

bool by_conditions_exchange(struct by_conditions *conditions, uint32_t rank_count)
{
    struct by_circulant circulant, *c = &circulant;

    if (!by_circulant_init(c, rank_count))
        return fault(conditions, c, 0, 0, "no such graph");
    for (uint32_t rank = 0; rank < rank_count; rank++) {
        uint32_t end;

        if (!check_scatter(conditions, c, rank, &end))
            return false;
        if (end <= rank || end > rank_count)
            return fault(conditions, c, rank, c->phase, "never had its share");
    }
    conditions->ranks += rank_count;
    return check_paths(conditions, c);
}

void by_conditions_free(struct by_conditions *conditions)
{
    free(conditions->memory);
    conditions->memory = NULL;
    conditions->bytes = 0;
}
