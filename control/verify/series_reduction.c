/*
 * The least cost of a reduction at given prices, in integers. See series_inside.h.
 *
 * The cost of having each partial result at each node follows from those with fewer values: it is
 * combined where both parts are, and moves over links until no cost decreases. If a file of a
 * commutative operator does not list all sets, series_sets.c prices them.
 */
#include "control/study/series/rational.h"
#include "control/verify/series_inside.h"
#include "offload/base/assert.h"

/* Costs of having a message at each node; unknown nodes have no cost yet. */
struct series_reduction_costs {
    bool *known;
    mpz_t *cost;
};

struct series_reduction {
    struct by_series_checker *checker;
    const struct by_series_prices *prices;
    struct by_series_costs costs;
    uint32_t *order;                     /* messages by their values */
    struct series_reduction_costs *have; /* by message */
    mpz_t sum;
};

/* Sets the denominators: of all times at their prices, and of all sizes. */
static void find_units(struct series_reduction *work)
{
    const struct by_series *series = work->checker->series;
    uint32_t links = work->checker->links->count, n = work->checker->topology->node_count;
    mpq_t time, one;

    mpq_inits(time, one, NULL);
    mpq_set_ui(one, 1, 1);
    mpz_set_ui(work->costs.time_unit, 1);
    mpz_set_ui(work->costs.size_unit, 1);
    for (uint32_t l = 0; l < links; l++)
        mpz_lcm(work->costs.time_unit, work->costs.time_unit, mpq_denref(work->prices->length[l]));
    for (uint32_t i = 0; i < n; i++)
        if (by_series_task_time(work->checker, i, one, time)) {
            mpq_mul(time, time, work->prices->computes[i]);
            mpz_lcm(work->costs.time_unit, work->costs.time_unit, mpq_denref(time));
        }
    for (uint32_t m = 0; m < series->message_count; m++)
        if (m == 0 || !mpq_equal(series->messages[m].size, series->messages[m - 1].size))
            mpz_lcm(work->costs.size_unit, work->costs.size_unit, mpq_denref(series->messages[m].size));
    for (uint32_t l = 0; l < links; l++) {
        mpz_divexact(work->costs.length[l], work->costs.time_unit, mpq_denref(work->prices->length[l]));
        mpz_mul(work->costs.length[l], work->costs.length[l], mpq_numref(work->prices->length[l]));
    }
    mpq_clears(time, one, NULL);
}

/* Prices transfers and combinations for messages of `size`. */
static void set_size(struct series_reduction *work, const mpq_t size)
{
    struct by_series_costs *costs = &work->costs;
    mpq_t time, unit;
    mpz_t factor;

    mpq_inits(time, unit, NULL);
    mpz_init(factor);
    mpq_set(costs->size, size);
    mpz_divexact(factor, costs->size_unit, mpq_denref(size));
    mpz_mul(factor, factor, mpq_numref(size));
    for (uint32_t l = 0; l < work->checker->links->count; l++)
        mpz_mul(costs->moved[l], costs->length[l], factor);
    mpz_mul(mpq_numref(unit), costs->time_unit, costs->size_unit);
    for (uint32_t i = 0; i < work->checker->topology->node_count; i++) {
        mpz_set_si(costs->task[i], -1);
        if (!by_series_task_time(work->checker, i, size, time))
            continue;
        mpq_mul(time, time, work->prices->computes[i]);
        mpq_mul(time, time, unit);
        BY_ASSERT(mpz_cmp_ui(mpq_denref(time), 1) == 0);
        mpz_set(costs->task[i], mpq_numref(time));
    }
    mpq_clears(time, unit, NULL);
    mpz_clear(factor);
}

/* Propagates known costs of a message over links until no cost decreases. */
static void spread(struct series_reduction *work, struct series_reduction_costs *have)
{
    const struct by_links *links = work->checker->links;
    bool changed = true;

    while (changed) {
        changed = false;
        for (uint32_t l = 0; l < links->count; l++) {
            uint32_t from = links->from[l], to = links->to[l];

            if (!have->known[from])
                continue;
            mpz_add(work->sum, have->cost[from], work->costs.moved[l]);
            if (have->known[to] && mpz_cmp(work->sum, have->cost[to]) >= 0)
                continue;
            mpz_set(have->cost[to], work->sum);
            have->known[to] = changed = true;
        }
    }
}

static uint32_t find_message(const struct series_reduction *work, uint64_t values)
{
    const struct by_series *series = work->checker->series;
    uint32_t low = 0, high = series->message_count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (series->messages[work->order[middle]].values < values)
            low = middle + 1;
        else
            high = middle;
    }
    BY_ASSERT(low < series->message_count); /* all partial results exist: checked before */
    return work->order[low];
}

/* Computes the cost, at each node, of having both parts of a message. */
static void join_parts(struct series_reduction *work, struct series_reduction_costs *have, uint64_t left,
                       uint64_t right)
{
    const struct series_reduction_costs *a = &work->have[find_message(work, left)],
                                        *b = &work->have[find_message(work, right)];

    for (uint32_t i = 0; i < work->checker->topology->node_count; i++) {
        if (mpz_sgn(work->costs.task[i]) < 0 || !a->known[i] || !b->known[i])
            continue;
        mpz_add(work->sum, a->cost[i], b->cost[i]);
        if (have->known[i] && mpz_cmp(work->sum, have->cost[i]) >= 0)
            continue;
        mpz_set(have->cost[i], work->sum);
        have->known[i] = true;
    }
}

static void price_message(struct series_reduction *work, uint32_t message)
{
    const struct by_series *series = work->checker->series;
    uint64_t values = series->messages[message].values, lowest = values & -values;
    struct series_reduction_costs *have = &work->have[message];

    if (!mpq_equal(work->costs.size, series->messages[message].size))
        set_size(work, series->messages[message].size);
    if (values == lowest)
        have->known[series->holders[__builtin_ctzll(values)]] = true;
    else if (series->commutative)
        for (uint64_t left = (values - 1) & values; left; left = (left - 1) & values) {
            if (left & lowest)
                join_parts(work, have, left, values ^ left);
        }
    else
        for (uint64_t left = lowest; left != values; left |= left << 1)
            join_parts(work, have, left, values ^ left);
    for (uint32_t i = 0; i < work->checker->topology->node_count && values != lowest; i++)
        if (have->known[i])
            mpz_add(have->cost[i], have->cost[i], work->costs.task[i]);
    spread(work, have);
}

/* Prices all partial results, those with few values first. `total` is that of the last one. */
static bool price_all(struct series_reduction *work, mpz_t total)
{
    const struct by_series *series = work->checker->series;
    uint32_t n = work->checker->topology->node_count, whole = 0;
    bool right;

    work->have = by_alloc(series->message_count, sizeof(*work->have));
    for (uint32_t m = 0; m < series->message_count; m++)
        work->have[m] = (struct series_reduction_costs){by_alloc(n, sizeof(bool)), by_integers_new(n)};
    for (int count = 1; count <= (int)series->holder_count; count++)
        for (uint32_t m = 0; m < series->message_count; m++)
            if (__builtin_popcountll(series->messages[m].values) == count) {
                price_message(work, m);
                whole = m;
            }
    BY_ASSERT(work->have[whole].known != NULL);
    right = work->have[whole].known[series->target] ||
            by_series_violate(work->checker, "the result cannot reach the target");
    mpz_set(total, work->have[whole].cost[series->target]);
    for (uint32_t m = 0; m < series->message_count; m++) {
        free(work->have[m].known);
        by_integers_free(work->have[m].cost, n);
    }
    free(work->have);
    return right;
}

/* Sorts the messages by their values. */
static void sort_messages(struct series_reduction *work)
{
    const struct by_series *series = work->checker->series;

    for (uint32_t m = 0; m < series->message_count; m++) {
        uint32_t at = m;

        for (; at > 0 && series->messages[work->order[at - 1]].values > series->messages[m].values; at--)
            work->order[at] = work->order[at - 1];
        work->order[at] = m;
    }
}

bool by_series_price_reduction(struct by_series_checker *checker, const struct by_series_prices *prices,
                               mpq_t total)
{
    const struct by_series *series = checker->series;
    uint32_t n = checker->topology->node_count, links = checker->links->count;
    struct series_reduction work = {.checker = checker,
                                    .prices = prices,
                                    .costs = {.length = by_integers_new(links),
                                              .moved = by_integers_new(links),
                                              .task = by_integers_new(n)},
                                    .order = by_alloc(series->message_count, sizeof(*work.order))};
    bool right;

    mpz_inits(work.costs.time_unit, work.costs.size_unit, work.sum, NULL);
    mpq_init(work.costs.size);
    find_units(&work);
    sort_messages(&work);
    set_size(&work, series->messages[0].size);
    right = by_series_lists_few_sets(series) ? by_series_price_sets(checker, &work.costs, mpq_numref(total))
                                             : price_all(&work, mpq_numref(total));
    mpz_mul(mpq_denref(total), work.costs.time_unit, work.costs.size_unit);
    mpq_canonicalize(total);
    by_integers_free(work.costs.length, links);
    by_integers_free(work.costs.moved, links);
    by_integers_free(work.costs.task, n);
    mpz_clears(work.costs.time_unit, work.costs.size_unit, work.sum, NULL);
    mpq_clear(work.costs.size);
    free(work.order);
    return right;
}
