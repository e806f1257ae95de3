/*
 * Bine butterflies (De Sensi et al., "Bine Trees: Enhancing Collective Operations by Optimizing
 * Communication Locality", SC 2025). See baseline.h.
 *
 * In step k an even rank r meets r + d and an odd rank r - d, with d = (1 - (-2)^(k + 1)) / 3: 1,
 * -1, 3, -5, 11, ... The distances are two thirds of those of recursive doubling. Reduce-scatter
 * takes the steps in descending order: a rank keeps the shards of the ranks that it can still reach
 * and sends those that its partner can reach. Allgather is the reverse, allreduce is both;
 * broadcast is scatter along the same tree and allgather, reduce is its reverse.
 */
#include "control/base/alloc.h"
#include "control/fabric/build.h"
#include "control/study/baseline/baseline.h"
#include "offload/base/errors.h"
#include "offload/wire/types.h"

/* Numbers are ranks relative to the root. */
struct bine {
    struct by_rounds *rounds;
    uint32_t n;
    uint32_t steps;
    uint32_t shift; /* rank of number 0 */
    uint32_t round;
    bool *reached; /* by number */
    uint32_t *list;
};

static uint32_t partner(const struct bine *bine, uint32_t number, uint32_t step)
{
    int64_t power = (int64_t)1 << (step + 1), distance = (1 - (step % 2 ? power : -power)) / 3;

    return (uint32_t)((int64_t)number + (number % 2 ? -distance : distance)) & (bine->n - 1);
}

/* Sends the shards of all numbers that `number` reaches by the steps below `step`, in runs. */
static void send_reached(struct bine *bine, uint32_t from, uint32_t to, uint32_t number, uint32_t step,
                         bool reduce)
{
    uint32_t count = 1, start;

    bine->list[0] = number;
    bine->reached[number] = true;
    while (step-- > 0)
        for (uint32_t i = 0, before = count; i < before; i++) {
            bine->list[count] = partner(bine, bine->list[i], step);
            bine->reached[bine->list[count++]] = true;
        }
    for (uint32_t i = 0; i < count; i++) {
        uint32_t length = 1;

        start = bine->list[i];
        if (bine->reached[(start - 1) & (bine->n - 1)])
            continue; /* inside a run; not all numbers are reached, so runs have a start */
        while (bine->reached[(start + length) & (bine->n - 1)])
            length++;
        by_rounds_add(bine->rounds, bine->round,
                      (struct by_baseline_transfer){.from = (from + bine->shift) % bine->n,
                                                    .to = (to + bine->shift) % bine->n,
                                                    .shard = (start + bine->shift) % bine->n,
                                                    .count = length,
                                                    .reduce = reduce});
    }
    for (uint32_t i = 0; i < count; i++)
        bine->reached[bine->list[i]] = false;
}

/* All ranks exchange: what the partner reaches (halving) or what the rank itself reaches. */
static void exchange(struct bine *bine, bool halving)
{
    for (uint32_t i = 0; i < bine->steps; i++) {
        uint32_t step = halving ? bine->steps - 1 - i : i;

        for (uint32_t number = 0; number < bine->n; number++) {
            uint32_t other = partner(bine, number, step);

            send_reached(bine, number, other, halving ? other : number, step, halving);
        }
        bine->round++;
    }
}

/* Broadcast's scatter from number 0, or reduce's gather to it, along the tree of the exchange. */
static void spread(struct bine *bine, bool scatter)
{
    uint32_t *holders = by_alloc(bine->n, sizeof(*holders)), count = 1;

    for (uint32_t step = bine->steps; step-- > 0;) /* numbers in the order in which they get data */
        for (uint32_t i = 0, before = count; i < before; i++)
            holders[count++] = partner(bine, holders[i], step);
    for (uint32_t i = 0; i < bine->steps; i++) {
        uint32_t step = scatter ? bine->steps - 1 - i : i;
        uint32_t before = (uint32_t)1 << (bine->steps - 1 - step);

        for (uint32_t h = 0; h < before; h++) {
            uint32_t inner = holders[h], outer = partner(bine, inner, step);

            send_reached(bine, scatter ? inner : outer, scatter ? outer : inner, outer, step, false);
        }
        bine->round++;
    }
    free(holders);
}

int by_baseline_bine(struct by_baseline_task *task, struct by_rounds **rounds)
{
    struct bine bine = {.n = task->net->compute_count};
    int64_t root = -1;

    *rounds = NULL;
    if (bine.n < 2 || (bine.n & (bine.n - 1)) != 0)
        return by_problem_say(task->problem, BY_EUNSUPPORTED,
                              "bine pairs ranks by powers of two, and there are %u; use recursive", bine.n);
    for (uint32_t i = 0; i < bine.n && by_task_rooted(task); i++)
        if (task->net->compute[i] == task->root)
            root = i;
    while ((uint32_t)1 << bine.steps < bine.n)
        bine.steps++;
    bine.shift = root >= 0 ? (uint32_t)root : 0;
    bine.rounds = *rounds = by_rounds_new(task->collective, root, bine.n);
    bine.reached = by_alloc(bine.n, sizeof(*bine.reached));
    bine.list = by_alloc(bine.n, sizeof(*bine.list));
    if (task->collective == BY_COLLECTIVE_BROADCAST)
        spread(&bine, true);
    if (task->collective != BY_COLLECTIVE_ALLGATHER && task->collective != BY_COLLECTIVE_BROADCAST)
        exchange(&bine, true);
    if (task->collective == BY_COLLECTIVE_REDUCE)
        spread(&bine, false);
    if (task->collective != BY_COLLECTIVE_REDUCE_SCATTER && task->collective != BY_COLLECTIVE_REDUCE)
        exchange(&bine, false);
    free(bine.reached);
    free(bine.list);
    return by_rounds_lay(*rounds, task->net, task->problem);
}
