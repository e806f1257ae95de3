/*
 * Whole numbers of operations in a given period. See room.h.
 *
 * Rounding down wastes time: if two trees run half a time each, neither runs, although one of them
 * could. Optimal rounding is an integer program. This code uses a greedy heuristic instead: it adds
 * one operation at a time to the lanes that rounding reduced most. The result is never worse than
 * rounding down.
 */
#include "control/study/steady/room.h"

#include "control/study/series/rational.h"

struct room {
    const struct by_series *series;
    const struct by_platform *platform;
    mpq_t *left; /* remaining time: sending ports by node, receiving ports, processors, then links */
};

/* Finds the indices in `left` of the resources that a task uses; returns their count. */
static uint32_t find_places(const struct room *room, const struct by_series_task *task, uint32_t *place,
                            uint32_t *link)
{
    uint32_t n = room->platform->topology->node_count, count = 0;

    if (task->to == BY_SERIES_NONE) {
        place[count++] = 2 * n + task->node;
        return count;
    }
    *link = by_links_find(room->platform->links, task->node, task->to);
    if (by_series_shares(room->platform->topology, room->platform->ports, task->node))
        place[count++] = task->node;
    if (by_series_shares(room->platform->topology, room->platform->ports, task->to))
        place[count++] = n + task->to;
    place[count++] = 3 * n + *link;
    return count;
}

/*
 * Subtracts `amount` runs of a lane from the remaining time; adds them back if `amount` is
 * negative. Returns whether no resource of the lane is overloaded.
 */
static bool take(struct room *room, uint32_t lane, const mpz_t amount)
{
    const struct by_series_lane *from = &room->series->lanes[lane];
    bool fits = true;
    mpq_t time, runs;

    mpq_inits(time, runs, NULL);
    mpq_set_z(runs, amount);
    for (uint32_t t = 0; t < from->task_count; t++) {
        const struct by_series_task *task = &from->tasks[t];
        mpq_t *size = &room->series->messages[task->message].size;
        uint32_t place[3], link = 0, count = find_places(room, task, place, &link);

        if (task->to == BY_SERIES_NONE)
            by_platform_task_time(room->platform, task->node, *size, time);
        else
            mpq_mul(time, room->platform->cost[link], *size);
        mpq_mul(time, time, runs);
        for (uint32_t i = 0; i < count; i++) {
            mpq_sub(room->left[place[i]], room->left[place[i]], time);
            fits = fits && mpq_sgn(room->left[place[i]]) >= 0;
        }
    }
    mpq_clears(time, runs, NULL);
    return fits;
}

/*
 * Adds one run of the class to the lane with room that lacks most; returns false if no lane has
 * room.
 */
static bool raise_class(struct room *room, struct by_series *series, const uint32_t *class_of, uint32_t class,
                        mpz_t *lack, const mpz_t wanted_period)
{
    bool *tried = by_alloc(series->lane_count, sizeof(*tried)), raised = false;
    mpz_t one;

    mpz_init_set_si(one, 1);
    for (uint32_t best = 0; !raised && best != UINT32_MAX;) {
        best = UINT32_MAX;
        for (uint32_t l = 0; l < series->lane_count; l++)
            if (class_of[l] == class && !tried[l] && (best == UINT32_MAX || mpz_cmp(lack[l], lack[best]) > 0))
                best = l;
        if (best == UINT32_MAX)
            break;
        tried[best] = true;
        raised = take(room, best, one);
        if (raised) {
            mpz_add(series->lanes[best].amount, series->lanes[best].amount, one);
            mpz_sub(lack[best], lack[best], wanted_period);
        } else {
            mpz_neg(one, one);
            take(room, best, one);
            mpz_neg(one, one);
        }
    }
    mpz_clear(one);
    free(tried);
    return raised;
}

void by_room_fill(struct by_series *series, const struct by_series *wanted,
                  const struct by_platform *platform, const uint32_t *class_of, uint32_t class_count,
                  mpz_t operations)
{
    uint32_t places = 3 * platform->topology->node_count + platform->links->count, lanes = series->lane_count;
    struct room room = {.series = series, .platform = platform, .left = by_rationals_new(places)};
    mpz_t *lack = by_alloc(lanes, sizeof(*lack)), *before = by_alloc(lanes, sizeof(*before));
    bool raised = true;

    for (uint32_t i = 0; i < places; i++)
        mpq_set_z(room.left[i], series->period);
    for (uint32_t l = 0; l < lanes; l++) {
        take(&room, l, series->lanes[l].amount);
        mpz_init_set(before[l], series->lanes[l].amount);
        mpz_init(lack[l]); /* in units of 1 / wanted->period */
        mpz_mul(lack[l], wanted->lanes[l].amount, series->period);
        mpz_submul(lack[l], before[l], wanted->period);
    }
    while (raised) {
        for (uint32_t l = 0; l < lanes; l++)
            mpz_set(before[l], series->lanes[l].amount);
        for (uint32_t c = 0; c < class_count && raised; c++)
            raised = raise_class(&room, series, class_of, c, lack, wanted->period);
        if (raised)
            mpz_add_ui(operations, operations, 1);
    }
    for (uint32_t l = 0; l < lanes; l++) { /* excludes fractions of an operation */
        mpz_set(series->lanes[l].amount, before[l]);
        mpz_clears(before[l], lack[l], NULL);
    }
    by_rationals_free(room.left, places);
    free(before);
    free(lack);
}
