/* Schedules of rounds: computes their times and executes them symbolically. See rounds.h. */
#include "control/study/baseline/rounds.h"

#include "control/base/alloc.h"
#include "control/base/fraction.h"
#include "control/fabric/build.h"
#include "offload/base/assert.h"
#include "offload/base/errors.h"
#include "offload/wire/types.h"

static const struct by_place nowhere = {0, 0};

struct by_rounds *by_rounds_new(unsigned collective, int64_t root, uint32_t shard_count)
{
    struct by_rounds *rounds = by_alloc(1, sizeof(*rounds));

    rounds->collective = collective;
    rounds->root = root;
    rounds->shard_count = shard_count;
    return rounds;
}

void by_rounds_free(struct by_rounds *rounds)
{
    if (!rounds)
        return;
    free(rounds->transfers);
    free(rounds->nodes);
    free(rounds->seconds);
    free(rounds);
}

void by_rounds_add(struct by_rounds *rounds, uint32_t round, struct by_baseline_transfer transfer)
{
    BY_ASSERT(round == rounds->round_count || round + 1 == rounds->round_count);
    BY_GROW(rounds->transfers, rounds->transfer_count, rounds->transfer_room);
    transfer.round = round;
    transfer.shard %= rounds->shard_count;
    rounds->transfers[rounds->transfer_count++] = transfer;
    rounds->round_count = round + 1;
}

static int lay_transfer(struct by_rounds *rounds, struct by_baseline_net *net,
                        struct by_baseline_transfer *transfer, uint32_t *nodes, struct by_problem *problem)
{
    uint32_t from = net->compute[transfer->from], to = net->compute[transfer->to];
    uint32_t count = by_net_route(net, from, to, transfer->count, false, nodes);

    if (count == 0)
        return by_problem_set(problem, BY_EINVAL, nowhere, "node '%s' cannot reach node '%s'; add a link",
                              net->topology->nodes[from].name, net->topology->nodes[to].name);
    if (rounds->node_room - rounds->node_count < count) {
        rounds->node_room = 2 * rounds->node_room + count + 64;
        rounds->nodes = by_realloc(rounds->nodes, rounds->node_room, sizeof(*rounds->nodes));
    }
    transfer->path_first = rounds->node_count;
    transfer->path_count = count;
    memcpy(rounds->nodes + rounds->node_count, nodes, count * sizeof(*nodes));
    rounds->node_count += count;
    rounds->hops_max = count - 1 > rounds->hops_max ? count - 1 : rounds->hops_max;
    return 0;
}

/* Computes the time of the net's current loads, for data of size 1 in `shard_count` shards. */
static int find_time(const struct by_rounds *rounds, const struct by_baseline_net *net,
                     struct by_fraction *time)
{
    uint32_t slowest = BY_NET_NO_ARC;

    for (uint32_t i = 0; i < net->arc_count; i++)
        if (net->arcs[i].load > 0 &&
            (slowest == BY_NET_NO_ARC || (__int128)net->arcs[i].load * net->arcs[slowest].capacity >
                                             (__int128)net->arcs[slowest].load * net->arcs[i].capacity))
            slowest = i;
    if (slowest == BY_NET_NO_ARC) {
        *time = (struct by_fraction){0, 1};
        return 0;
    }
    return by_fraction_set((__int128)net->arcs[slowest].load * net->topology->scale,
                           (__int128)net->arcs[slowest].capacity * rounds->shard_count, time);
}

int by_rounds_lay(struct by_rounds *rounds, struct by_baseline_net *net, struct by_problem *problem)
{
    uint32_t *nodes = by_alloc(net->node_count, sizeof(*nodes)), next = 0;
    int error = 0, range = 0;

    rounds->seconds = by_alloc(rounds->round_count, sizeof(*rounds->seconds));
    rounds->time = (struct by_fraction){0, 1};
    for (uint32_t round = 0; round < rounds->round_count && !error && !range; round++) {
        by_net_clear(net);
        for (; next < rounds->transfer_count && rounds->transfers[next].round == round && !error; next++)
            error = lay_transfer(rounds, net, &rounds->transfers[next], nodes, problem);
        range = find_time(rounds, net, &rounds->seconds[round]);
        if (!range)
            range = by_fraction_add(rounds->time, rounds->seconds[round], &rounds->time);
    }
    free(nodes);
    if (!error && !range)
        range = by_fraction_divide((struct by_fraction){1, 1}, rounds->time, &rounds->achieved);
    if (!error && range)
        error = by_problem_set(problem, BY_ERANGE, nowhere,
                               "the time of the rounds needs more than 63 bits; round the bandwidths");
    return error;
}

/* ---- symbolic execution ---- */

/* A value is the set of ranks that have contributed to it; all zero: no data. */
struct rounds_machine {
    const struct by_rounds *rounds;
    uint32_t n;
    uint32_t words;
    uint64_t *now;    /* [(rank * n + shard) * words] */
    uint64_t *before; /* `now` at the start of the round; all sends of the round read it */
};

static uint64_t *cell(const struct rounds_machine *machine, uint64_t *values, uint32_t rank, uint32_t shard)
{
    return values + ((size_t)rank * machine->n + shard) * machine->words;
}

static bool has(const uint64_t *value, uint32_t rank)
{
    return value[rank / 64] >> (rank % 64) & 1;
}

static bool is_empty(const struct rounds_machine *machine, const uint64_t *value)
{
    for (uint32_t i = 0; i < machine->words; i++)
        if (value[i])
            return false;
    return true;
}

static void start(struct rounds_machine *machine)
{
    unsigned collective = machine->rounds->collective;

    for (uint32_t rank = 0; rank < machine->n; rank++)
        for (uint32_t shard = 0; shard < machine->n; shard++) {
            bool mine = collective == BY_COLLECTIVE_ALLGATHER   ? rank == shard
                        : collective == BY_COLLECTIVE_BROADCAST ? rank == machine->rounds->root
                                                                : true;

            if (mine)
                cell(machine, machine->now, rank, shard)[rank / 64] |= (uint64_t)1 << (rank % 64);
        }
}

static bool execute(struct rounds_machine *machine, const struct by_baseline_transfer *transfer,
                    struct by_problem *problem)
{
    for (uint32_t i = 0; i < transfer->count; i++) {
        uint32_t shard = (transfer->shard + i) % machine->n;
        const uint64_t *sent = cell(machine, machine->before, transfer->from, shard);
        uint64_t *there = cell(machine, machine->now, transfer->to, shard);

        if (is_empty(machine, sent)) {
            by_problem_set(problem, BY_EINVAL, nowhere,
                           "round %u: rank %u sends shard %u, which it does not have", transfer->round,
                           transfer->from, shard);
            return false;
        }
        for (uint32_t w = 0; w < machine->words; w++) {
            if (transfer->reduce && (there[w] & sent[w])) {
                by_problem_set(problem, BY_EINVAL, nowhere,
                               "round %u: rank %u adds a contribution to shard %u twice", transfer->round,
                               transfer->to, shard);
                return false;
            }
            there[w] = transfer->reduce ? there[w] | sent[w] : sent[w];
        }
    }
    return true;
}

static bool is_done(struct rounds_machine *machine, struct by_problem *problem)
{
    unsigned collective = machine->rounds->collective;
    int64_t root = machine->rounds->root;

    for (uint32_t rank = 0; rank < machine->n; rank++)
        for (uint32_t shard = 0; shard < machine->n; shard++) {
            const uint64_t *value = cell(machine, machine->now, rank, shard);
            bool wanted = collective == BY_COLLECTIVE_REDUCE           ? rank == root
                          : collective == BY_COLLECTIVE_REDUCE_SCATTER ? rank == shard
                                                                       : true;
            uint32_t count = 0;
            bool right;

            if (!wanted)
                continue;
            for (uint32_t w = 0; w < machine->words; w++)
                count += (uint32_t)__builtin_popcountll(value[w]);
            if (collective == BY_COLLECTIVE_ALLGATHER)
                right = count == 1 && has(value, shard);
            else if (collective == BY_COLLECTIVE_BROADCAST)
                right = count == 1 && has(value, (uint32_t)root);
            else
                right = count == machine->n;
            if (!right) {
                by_problem_set(
                    problem, BY_EINVAL, nowhere,
                    "after the last round rank %u has %u contributions in shard %u, which are not the "
                    "required ones",
                    rank, count, shard);
                return false;
            }
        }
    return true;
}

bool by_rounds_check(const struct by_rounds *rounds, struct by_problem *problem)
{
    struct rounds_machine machine = {.rounds = rounds, .n = rounds->shard_count};
    size_t cells;
    uint32_t next = 0;
    bool right = true;

    BY_ASSERT(machine.n <= BY_ROUNDS_CHECK_MAX);
    machine.words = (machine.n + 63) / 64;
    cells = (size_t)machine.n * machine.n * machine.words;
    machine.now = by_alloc(cells, sizeof(*machine.now));
    machine.before = by_alloc(cells, sizeof(*machine.before));
    start(&machine);
    for (uint32_t round = 0; round < rounds->round_count && right; round++) {
        memcpy(machine.before, machine.now, cells * sizeof(*machine.now));
        for (; next < rounds->transfer_count && rounds->transfers[next].round == round && right; next++)
            right = execute(&machine, &rounds->transfers[next], problem);
    }
    right = right && is_done(&machine, problem);
    free(machine.now);
    free(machine.before);
    return right;
}
