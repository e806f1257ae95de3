/* Implements execute.h: collectives executed in memory. */
#include "tests/unit/host-driver/circulant/execute.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The blocks of all ranks in one broadcast or reduction: cells of rank * block_count + block. */
struct execute_world {
    struct by_circulant graph;
    uint32_t block_count, root;
    struct by_circulant_schedule *schedules; /* by the rank's distance from the root */
    uint64_t *value, *incoming;
    uint8_t *has;   /* broadcast: the rank has the block; reduce: it has sent the block */
    uint32_t *left; /* blocks that the rank must still receive or send */
};

__attribute__((format(printf, 2, 3))) static bool fault(struct by_execution *execution, const char *format,
                                                        ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(execution->fault, sizeof(execution->fault), format, arguments);
    va_end(arguments);
    return false;
}

static void *take(size_t count, size_t size)
{
    void *memory = calloc(count, size);

    if (memory == NULL)
        abort();
    return memory;
}

/* Returns a value of a rank and block; all values are different. */
static uint64_t value_of(uint32_t rank, uint32_t block)
{
    return ((uint64_t)rank + 1) * UINT64_C(0x9e3779b97f4a7c15) + ((uint64_t)block << 7 | 1);
}

static void open_world(struct execute_world *world, uint32_t rank_count, uint32_t root, uint32_t block_count)
{
    size_t cells = (size_t)rank_count * block_count;

    memset(world, 0, sizeof(*world));
    by_circulant_init(&world->graph, rank_count);
    world->root = root;
    world->block_count = block_count;
    world->schedules = take(rank_count, sizeof(*world->schedules));
    world->value = take(cells, sizeof(*world->value));
    world->incoming = take(rank_count, sizeof(*world->incoming));
    world->has = take(cells, 1);
    world->left = take(rank_count, sizeof(*world->left));
    for (uint32_t rank = 0; rank < rank_count; rank++) {
        by_circulant_schedule(&world->graph, rank, &world->schedules[rank]);
        world->left[rank] = rank == root ? 0 : block_count;
    }
}

static void close_world(struct execute_world *world)
{
    free(world->schedules);
    free(world->value);
    free(world->incoming);
    free(world->has);
    free(world->left);
}

typedef void step_fn(const struct by_circulant *, const struct by_circulant_schedule *, uint32_t, uint32_t,
                     uint32_t, uint32_t, struct by_circulant_step *);

static void step_of(const struct execute_world *world, step_fn *function, uint32_t rank, uint32_t round,
                    struct by_circulant_step *step)
{
    uint32_t p = world->graph.rank_count;

    function(&world->graph, &world->schedules[(rank + p - world->root) % p], rank, world->root,
             world->block_count, round, step);
}

static size_t cell_of(const struct execute_world *world, uint32_t rank, uint32_t block)
{
    return (size_t)rank * world->block_count + block;
}

/* Checks that each send has a receive of the same block and the reverse, and collects the
 * values. */
static bool exchange(struct by_execution *execution, struct execute_world *world, step_fn *function,
                     uint32_t round)
{
    for (uint32_t rank = 0; rank < world->graph.rank_count; rank++) {
        struct by_circulant_step own, peer;

        step_of(world, function, rank, round, &own);
        step_of(world, function, own.from, round, &peer);
        if (peer.to != rank || peer.send != own.receive)
            return fault(execution, "round %u: rank %u receives %d from %u, which sends %d to %u", round,
                         rank, (int)own.receive, own.from, (int)peer.send, peer.to);
        if (own.receive != BY_CIRCULANT_NONE)
            world->incoming[rank] = world->value[cell_of(world, own.from, own.receive)];
    }
    return true;
}

static bool broadcast_round(struct by_execution *execution, struct execute_world *world, uint32_t round)
{
    struct by_circulant_step step;

    for (uint32_t rank = 0; rank < world->graph.rank_count; rank++) {
        step_of(world, by_circulant_broadcast, rank, round, &step);
        if (step.send != BY_CIRCULANT_NONE && !world->has[cell_of(world, rank, step.send)])
            return fault(execution, "round %u: rank %u sends block %u, which it has not", round, rank,
                         step.send);
    }
    if (!exchange(execution, world, by_circulant_broadcast, round))
        return false;
    for (uint32_t rank = 0; rank < world->graph.rank_count; rank++) {
        step_of(world, by_circulant_broadcast, rank, round, &step);
        if (step.receive == BY_CIRCULANT_NONE)
            continue;
        if (world->has[cell_of(world, rank, step.receive)]++)
            return fault(execution, "round %u: rank %u gets block %u again", round, rank, step.receive);
        world->value[cell_of(world, rank, step.receive)] = world->incoming[rank];
        world->left[rank]--;
    }
    return true;
}

static bool broadcast(struct by_execution *execution, struct execute_world *world)
{
    uint32_t rounds = by_circulant_rounds(&world->graph, world->block_count);

    if (world->graph.rank_count > 1 && rounds != world->block_count - 1 + world->graph.phase)
        return fault(execution, "%u rounds", rounds);
    for (uint32_t block = 0; block < world->block_count; block++) {
        world->value[cell_of(world, world->root, block)] = value_of(world->root, block);
        world->has[cell_of(world, world->root, block)] = 1;
    }
    for (uint32_t round = 0; round < rounds; round++)
        if (!broadcast_round(execution, world, round))
            return false;
    for (uint32_t rank = 0; rank < world->graph.rank_count; rank++)
        for (uint32_t block = 0; block < world->block_count; block++)
            if (world->left[rank] != 0 ||
                world->value[cell_of(world, rank, block)] != value_of(world->root, block))
                return fault(execution, "rank %u lacks block %u", rank, block);
    return true;
}

static bool reduce_round(struct by_execution *execution, struct execute_world *world, uint32_t round)
{
    struct by_circulant_step step;

    if (!exchange(execution, world, by_circulant_reduce, round))
        return false;
    for (uint32_t rank = 0; rank < world->graph.rank_count; rank++) {
        step_of(world, by_circulant_reduce, rank, round, &step);
        if (step.send != BY_CIRCULANT_NONE) {
            if (world->has[cell_of(world, rank, step.send)]++)
                return fault(execution, "round %u: rank %u sends block %u again", round, rank, step.send);
            world->left[rank]--;
        }
        if (step.receive != BY_CIRCULANT_NONE) {
            if (world->has[cell_of(world, rank, step.receive)] && step.receive != step.send)
                return fault(execution, "round %u: rank %u gets block %u after it was sent", round, rank,
                             step.receive);
            world->value[cell_of(world, rank, step.receive)] += world->incoming[rank];
        }
    }
    return true;
}

static bool reduce(struct by_execution *execution, struct execute_world *world)
{
    uint32_t rounds = by_circulant_rounds(&world->graph, world->block_count);

    for (uint32_t rank = 0; rank < world->graph.rank_count; rank++)
        for (uint32_t block = 0; block < world->block_count; block++)
            world->value[cell_of(world, rank, block)] = value_of(rank, block);
    for (uint32_t round = 0; round < rounds; round++)
        if (!reduce_round(execution, world, round))
            return false;
    for (uint32_t block = 0; block < world->block_count; block++) {
        uint64_t sum = 0;

        for (uint32_t rank = 0; rank < world->graph.rank_count; rank++) {
            sum += value_of(rank, block);
            if (world->left[rank] != 0)
                return fault(execution, "rank %u has not sent all", rank);
        }
        if (world->value[cell_of(world, world->root, block)] != sum)
            return fault(execution, "block %u has a wrong sum", block);
    }
    return true;
}

bool by_execute_broadcast(struct by_execution *execution, uint32_t rank_count, uint32_t root,
                          uint32_t block_count)
{
    struct execute_world world;
    bool right;

    open_world(&world, rank_count, root, block_count);
    right = broadcast(execution, &world);
    close_world(&world);
    return right;
}

bool by_execute_reduce(struct by_execution *execution, uint32_t rank_count, uint32_t root,
                       uint32_t block_count)
{
    struct execute_world world;
    bool right;

    open_world(&world, rank_count, root, block_count);
    right = reduce(execution, &world);
    close_world(&world);
    return right;
}

/* The peers of a rank in each round are the same for all roots, so that calls can run side by
 * side. */
static bool peers_agree(struct by_execution *execution, uint32_t rank_count, uint32_t block_count)
{
    struct execute_world world;
    bool right = true;

    open_world(&world, rank_count, 0, block_count);
    for (uint32_t round = 0; right && round < by_circulant_rounds(&world.graph, block_count); round++)
        for (uint32_t rank = 0; right && rank < rank_count; rank++) {
            struct by_circulant_step first, other;

            world.root = 0;
            step_of(&world, by_circulant_broadcast, rank, round, &first);
            for (world.root = 1; right && world.root < rank_count; world.root++) {
                step_of(&world, by_circulant_broadcast, rank, round, &other);
                if (other.to != first.to || other.from != first.from)
                    right = fault(execution, "round %u: rank %u has other peers for root %u", round, rank,
                                  world.root);
            }
        }
    close_world(&world);
    return right;
}

bool by_execute_allgather(struct by_execution *execution, uint32_t rank_count, uint32_t root,
                          uint32_t block_count)
{
    (void)root;
    for (uint32_t r = 0; r < rank_count; r++)
        if (!by_execute_broadcast(execution, rank_count, r, block_count))
            return false;
    return peers_agree(execution, rank_count, block_count);
}

bool by_execute_reduce_scatter(struct by_execution *execution, uint32_t rank_count, uint32_t root,
                               uint32_t block_count)
{
    (void)root;
    for (uint32_t r = 0; r < rank_count; r++)
        if (!by_execute_reduce(execution, rank_count, r, block_count))
            return false;
    return peers_agree(execution, rank_count, block_count);
}

/* Rank r must have the shards of the ranks from r on, counted from its own. */
bool by_execute_gather(struct by_execution *execution, uint32_t rank_count, uint32_t root,
                       uint32_t block_count)
{
    struct by_circulant c;
    uint32_t held = 1; /* shards at each rank */

    (void)root;
    (void)block_count;
    by_circulant_init(&c, rank_count);
    for (uint32_t round = 0; round < c.phase; round++) {
        struct by_circulant_fold own = {0}, peer = {0};

        for (uint32_t rank = 0; rank < rank_count; rank++) {
            by_circulant_gather(&c, rank, round, &own);
            by_circulant_gather(&c, own.from, round, &peer);
            if (peer.to != rank || peer.count != own.count || peer.count > held)
                return fault(execution, "round %u: rank %u gets %u of %u shards", round, rank, peer.count,
                             held);
            if (own.from != (rank + held) % rank_count)
                return fault(execution, "round %u: rank %u gets shards from %u on", round, rank, own.from);
        }
        held += own.count;
    }
    return held == rank_count || fault(execution, "%u shards at the end", held);
}

bool by_execute_census(struct by_execution *execution, uint32_t rank_count, uint32_t root,
                       uint32_t block_count)
{
    struct by_circulant c;
    uint64_t *sum = take(rank_count, sizeof(*sum));
    uint64_t *next = take(rank_count, sizeof(*next));
    uint64_t total = 0;
    bool right = true;

    (void)root;
    (void)block_count;
    by_circulant_init(&c, rank_count);
    for (uint32_t round = 0; round < c.phase; round++) {
        for (uint32_t rank = 0; rank < rank_count; rank++) {
            struct by_circulant_fold own, peer;

            by_circulant_census(&c, rank, round, &own);
            by_circulant_census(&c, own.from, round, &peer);
            if (peer.to != rank || (round == 0 && peer.count == 0))
                right = fault(execution, "round %u: rank %u receives from %u in vain", round, rank, own.from);
            next[rank] = sum[rank] + sum[own.from] + (peer.count > 0 ? value_of(own.from, 0) : 0);
        }
        memcpy(sum, next, rank_count * sizeof(*sum));
    }
    for (uint32_t rank = 0; rank < rank_count; rank++)
        total += value_of(rank, 0);
    for (uint32_t rank = 0; rank < rank_count && right; rank++)
        if (sum[rank] + value_of(rank, 0) != total)
            right = fault(execution, "rank %u has a wrong sum", rank);
    free(next);
    free(sum);
    return right;
}
