/* The partial results of a reduction. See partials.h. */
#include "control/study/steady/partials.h"

#include "control/base/alloc.h"

/* Slots of an empty table (count, a power of 2). */
#define SLOTS 256u

static uint32_t first_slot(const struct by_partials *partials, uint64_t values)
{
    return (uint32_t)(values * UINT64_C(0x9e3779b97f4a7c15) >> 32) & partials->mask;
}

/* Returns the slot of these values, or the free one where they belong. */
static uint32_t find_slot(const struct by_partials *partials, uint64_t values)
{
    uint32_t slot = first_slot(partials, values);

    while (partials->slots[slot] && partials->values[partials->slots[slot] - 1] != values)
        slot = (slot + 1) & partials->mask;
    return slot;
}

static void grow_slots(struct by_partials *partials, uint32_t slots)
{
    free(partials->slots);
    partials->slots = by_alloc(slots, sizeof(*partials->slots));
    partials->mask = slots - 1;
    for (uint32_t m = 0; m < partials->count; m++)
        partials->slots[find_slot(partials, partials->values[m])] = m + 1;
}

uint32_t by_partials_add(struct by_partials *partials, uint64_t values)
{
    uint32_t slot = find_slot(partials, values);

    if (partials->slots[slot])
        return partials->slots[slot] - 1;
    if (2 * (partials->count + 1) > partials->mask) {
        grow_slots(partials, 2 * (partials->mask + 1));
        slot = find_slot(partials, values);
    }
    BY_GROW(partials->values, partials->count, partials->room);
    partials->values[partials->count++] = values;
    partials->slots[slot] = partials->count;
    return partials->count - 1;
}

uint32_t by_partials_interval(uint32_t count, uint32_t length, uint32_t first)
{
    return (length - 1) * count - (length - 1) * (length - 2) / 2 + first;
}

void by_partials_make(struct by_partials *partials, const struct by_steady_problem *problem)
{
    uint32_t n = problem->holder_count;
    uint64_t all = UINT64_MAX >> (64 - n);

    *partials = (struct by_partials){.count = 0};
    grow_slots(partials, SLOTS);
    for (uint32_t length = 1; length <= n && !problem->commutative; length++)
        for (uint32_t first = 0; first + length <= n; first++)
            by_partials_add(partials, (all >> (n - length)) << first);
}

void by_partials_free(struct by_partials *partials)
{
    free(partials->values);
    free(partials->slots);
}

void by_partials_list(const struct by_steady_problem *problem, const uint64_t *values, uint32_t count,
                      struct by_series *series)
{
    series->target = problem->targets[0];
    series->commutative = problem->commutative;
    series->holder_count = problem->holder_count;
    series->holders = by_alloc(problem->holder_count, sizeof(*series->holders));
    memcpy(series->holders, problem->holders, problem->holder_count * sizeof(*series->holders));
    series->message_count = count;
    series->messages = by_alloc(count, sizeof(*series->messages));
    for (uint32_t m = 0; m < count; m++) {
        series->messages[m].from = series->messages[m].to = BY_SERIES_NONE;
        series->messages[m].values = values[m];
        mpq_init(series->messages[m].size);
        by_steady_message_size(problem, (uint32_t)__builtin_ctzll(values[m]),
                               63 - (uint32_t)__builtin_clzll(values[m]), series->messages[m].size);
    }
}
