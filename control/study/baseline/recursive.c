/*
 * Recursive halving and doubling (Thakur, Rabenseifner, Gropp, "Optimization of collective
 * communication operations in MPICH", 2005). See baseline.h.
 *
 * The ranks form the largest hypercube that fits. If their count is not a power of two, the first
 * ranks form pairs; the odd rank of a pair hands over its data before, and gets the result after.
 * Allreduce is reduce-scatter and allgather; broadcast is scatter and allgather; reduce is the
 * reverse of broadcast.
 */
#include "control/base/alloc.h"
#include "control/study/baseline/baseline.h"
#include "offload/wire/types.h"

/* Numbers are ranks relative to the root. A corner of the cube is one number or a pair. */
struct cube {
    struct by_rounds *rounds;
    uint32_t n;
    uint32_t dimensions;
    uint32_t corners;
    uint32_t pairs;
    uint32_t shift; /* rank of number 0 */
    uint32_t round;
};

static uint32_t rank_of(const struct cube *cube, uint32_t number)
{
    return (number + cube->shift) % cube->n;
}

/* Returns the number that acts for a corner; the corner's shards also begin there. */
static uint32_t begin(const struct cube *cube, uint32_t corner)
{
    return corner < cube->pairs ? 2 * corner : corner + cube->pairs;
}

/* Adds one transfer of the shards of numbers `first` to `last - 1`. */
static void add(const struct cube *cube, uint32_t from, uint32_t to, uint32_t first, uint32_t last,
                bool reduce)
{
    struct by_baseline_transfer transfer = {.from = rank_of(cube, from),
                                            .to = rank_of(cube, to),
                                            .shard = rank_of(cube, first),
                                            .count = last - first,
                                            .reduce = reduce};

    if (last > first)
        by_rounds_add(cube->rounds, cube->round, transfer);
}

/*
 * Doubling: each corner sends all its data to its neighbour. Halving: it sends the neighbour's
 * half.
 */
static void exchange(struct cube *cube, bool halving)
{
    for (uint32_t i = 0; i < cube->dimensions; i++) {
        uint32_t bit = (uint32_t)1 << (halving ? cube->dimensions - 1 - i : i);

        for (uint32_t corner = 0; corner < cube->corners; corner++) {
            uint32_t other = corner ^ bit, block = (halving ? other : corner) & ~(bit - 1);

            add(cube, begin(cube, corner), begin(cube, other), begin(cube, block), begin(cube, block + bit),
                halving);
        }
        cube->round++;
    }
}

/*
 * The odd number of each pair sends to the even one (`in`) or receives from it: all shards, all but
 * its own, or only its own.
 */
enum recursive_part { PART_ALL, PART_BUT_OWN, PART_OWN };

static void fold(struct cube *cube, bool in, enum recursive_part part, bool reduce)
{
    for (uint32_t i = 0; i < cube->pairs; i++) {
        uint32_t odd = 2 * i + 1, from = in ? odd : 2 * i, to = in ? 2 * i : odd;

        if (part == PART_ALL) {
            add(cube, from, to, 0, cube->n, reduce);
        } else if (part == PART_OWN) {
            add(cube, from, to, odd, odd + 1, reduce);
        } else {
            add(cube, from, to, 0, odd, reduce);
            add(cube, from, to, odd + 1, cube->n, reduce);
        }
    }
    cube->round += cube->pairs > 0;
}

/* Adds broadcast's scatter from corner 0, or reduce's gather to it. */
static void spread(struct cube *cube, bool scatter)
{
    for (uint32_t i = 0; i < cube->dimensions; i++) {
        uint32_t bit = (uint32_t)1 << (scatter ? cube->dimensions - 1 - i : i);

        for (uint32_t corner = 0; corner < cube->corners; corner += 2 * bit) {
            uint32_t inner = begin(cube, corner), outer = begin(cube, corner + bit);

            add(cube, scatter ? inner : outer, scatter ? outer : inner, outer, begin(cube, corner + 2 * bit),
                false);
        }
        cube->round++;
    }
}

static void run(struct cube *cube, unsigned collective)
{
    switch ((enum by_collective)collective) {
    case BY_COLLECTIVE_ALLGATHER:
        fold(cube, true, PART_OWN, false);
        exchange(cube, false);
        fold(cube, false, PART_BUT_OWN, false);
        break;
    case BY_COLLECTIVE_REDUCE_SCATTER:
        fold(cube, true, PART_BUT_OWN, true);
        exchange(cube, true);
        fold(cube, false, PART_OWN, true);
        break;
    case BY_COLLECTIVE_BROADCAST:
        spread(cube, true);
        exchange(cube, false);
        fold(cube, false, PART_ALL, false);
        break;
    case BY_COLLECTIVE_REDUCE:
        fold(cube, true, PART_ALL, true);
        exchange(cube, true);
        spread(cube, false);
        break;
    case BY_COLLECTIVE_ALLREDUCE:
    case BY_COLLECTIVE_BARRIER:
    default:
        fold(cube, true, PART_ALL, true);
        exchange(cube, true);
        exchange(cube, false);
        fold(cube, false, PART_ALL, false);
    }
}

int by_baseline_recursive(struct by_baseline_task *task, struct by_rounds **rounds)
{
    struct cube cube = {.n = task->net->compute_count, .corners = 1};
    int64_t root = -1;

    for (uint32_t i = 0; i < cube.n && by_task_rooted(task); i++)
        if (task->net->compute[i] == task->root)
            root = i;
    while (2 * cube.corners <= cube.n) {
        cube.corners *= 2;
        cube.dimensions++;
    }
    cube.pairs = cube.n - cube.corners;
    cube.shift = root >= 0 ? (uint32_t)root : 0;
    cube.rounds = *rounds = by_rounds_new(task->collective, root, cube.n);
    run(&cube, task->collective);
    return by_rounds_lay(*rounds, task->net, task->problem);
}
