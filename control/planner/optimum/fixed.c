/*
 * The best schedule with a given number of trees for each root: ForestColl, NSDI'26, section 5.5
 * and algorithm 5. Instead of a binary search, each violated set of nodes yields the least factor U
 * that satisfies it. U only grows, so the first U without a violated set is the least, and nodes
 * that have passed stay passed. See optimum.h.
 */
#include "control/base/alloc.h"
#include "control/base/fraction.h"
#include "control/fabric/build.h"
#include "control/planner/optimum/optimum.h"
#include "control/planner/optimum/oracle.h"
#include "offload/base/errors.h"

/* Candidates of by_optimum_least_k that the oracle checks (count). */
#define LEAST_K_TRIES 12u

/* Equal capacities that enter the set. */
struct fixed_kind {
    int64_t capacity;
    int64_t count;
};

static int compare_kinds(const void *left, const void *right)
{
    const struct fixed_kind *a = left, *b = right;

    return a->capacity < b->capacity ? -1 : a->capacity > b->capacity;
}

/* The capacities entering the side of the last query, by kind. */
static struct fixed_kind *entering_kinds(const struct by_graph *graph, const struct by_reach *reach,
                                         uint32_t *count)
{
    const struct by_mesh *net = graph->net;
    struct fixed_kind *kinds = NULL;
    uint32_t all = 0, room = 0, kept = 0;

    for (uint32_t i = 0; i < by_reach_side(reach); i++) {
        uint32_t node = reach->queue[i];

        for (uint32_t j = net->first[node]; j < net->first[node + 1]; j++) {
            int64_t capacity = net->capacity[net->near[j].half];

            if (capacity == 0 || by_reach_inside(reach, net->near[j].node))
                continue;
            BY_GROW(kinds, all, room);
            kinds[all++] = (struct fixed_kind){capacity, 1};
        }
    }
    if (all > 1)
        qsort(kinds, all, sizeof(*kinds), compare_kinds);
    for (uint32_t i = 0; i < all; i++) {
        if (kept > 0 && kinds[kept - 1].capacity == kinds[i].capacity)
            kinds[kept - 1].count++;
        else
            kinds[kept++] = kinds[i];
    }
    *count = kept;
    return kinds;
}

/*
 * The least U for one set: a fraction j / b with b an entering capacity. Starts from the U that
 * would suffice without rounding, and moves to the next point where one of the rounded capacities
 * grows, until the sum is reached. Each move adds at least one.
 */
static int least_factor(const struct fixed_kind *kinds, uint32_t count, int64_t wanted, struct by_fraction *u)
{
    struct by_fraction at;
    __int128 entering = 0;

    for (uint32_t i = 0; i < count; i++)
        entering += (__int128)kinds[i].capacity * kinds[i].count;
    if (entering == 0)
        return BY_EINVAL;
    if (by_fraction_set(wanted, entering, &at) != 0)
        return BY_ERANGE;
    for (;;) {
        struct by_fraction next = {0, 1};
        __int128 sum = 0;

        for (uint32_t i = 0; i < count; i++) {
            __int128 whole = (__int128)kinds[i].capacity * at.num / at.den;
            struct by_fraction point;

            sum += whole * kinds[i].count;
            if (by_fraction_set(whole + 1, kinds[i].capacity, &point) != 0)
                return BY_ERANGE;
            if (next.num == 0 || by_fraction_compare(point, next) < 0)
                next = point;
        }
        /* The first value is at or below the answer; it need not be a breakpoint. */
        if (sum >= wanted)
            break;
        at = next;
    }
    *u = at;
    return 0;
}

/* Rounds capacities down to U times the graph's. */
static int scale_down(const struct by_graph *graph, struct by_fraction u, int64_t *scaled)
{
    __int128 sum = 0;

    for (uint32_t half = 0; half < 2 * graph->net->pair_count; half++) {
        __int128 value = (__int128)graph->net->capacity[half] * u.num / u.den;

        sum += value;
        if (sum > BY_CAPACITY_SUM_MAX)
            return BY_ERANGE;
        scaled[half] = (int64_t)value;
    }
    return 0;
}

static void set_capacities(struct by_reach *reach, const int64_t *scaled)
{
    for (uint32_t half = 0; half < 2 * reach->net->pair_count; half++)
        by_reach_set(reach, half, scaled[half]);
}

/* Sets the roots; returns their sum. */
static int64_t set_roots(struct by_reach *reach, const int64_t *roots, int64_t factor)
{
    int64_t total = 0;

    for (uint32_t i = 0; i < reach->net->node_count; i++) {
        by_reach_set_root(reach, i, roots[i] * factor);
        total += roots[i] * factor;
    }
    return total;
}

/* Raises U to satisfy the side of the last query. */
static int raise_factor(const struct by_graph *graph, struct by_reach *reach, int64_t total,
                        struct by_fraction *u, int64_t *scaled)
{
    uint32_t count;
    struct fixed_kind *kinds = entering_kinds(graph, reach, &count);
    int64_t wanted = total;
    struct by_fraction least;
    int error;

    for (uint32_t i = 0; i < by_reach_side(reach); i++)
        wanted -= reach->root[reach->queue[i]];
    error = least_factor(kinds, count, wanted, &least);
    free(kinds);
    if (!error && by_fraction_compare(least, *u) > 0)
        *u = least;
    if (!error)
        error = scale_down(graph, *u, scaled);
    if (!error)
        set_capacities(reach, scaled);
    return error;
}

int by_optimum_fixed(const struct by_graph *graph, const int64_t *roots, struct by_fraction start, int64_t *p,
                     int64_t *q, int64_t *scaled, struct by_problem *problem)
{
    uint32_t *order = by_alloc(graph->node_count, sizeof(*order));
    struct by_reach *reach = by_reach_new(graph->net);
    int64_t total = set_roots(reach, roots, 1), node = 0;
    struct by_fraction u = start;
    int error = scale_down(graph, u, scaled);

    by_oracle_order(graph->net, order);
    if (!error)
        set_capacities(reach, scaled);
    while (!error && (node = by_oracle_ask(reach, order, total, graph->compute)) >= 0)
        error = raise_factor(graph, reach, total, &u, scaled);
    if (!error && reach->late)
        error = by_problem_set(problem, BY_ETIMEDOUT, (struct by_place){0, 0},
                               "the time limit passed before the scale of k trees was found; allow more "
                               "time");
    else if (error == BY_EINVAL)
        by_problem_set(problem, error, (struct by_place){0, 0},
                       "compute node '%s' cannot be reached in the direction that the collective needs",
                       graph->topology->nodes[node].name);
    else if (error)
        by_problem_set(problem, error, (struct by_place){0, 0},
                       "the bandwidths need more than 60 bits in their common unit; round them or use a "
                       "larger unit");
    *p = u.num;
    *q = u.den;
    by_reach_free(reach);
    free(order);
    return error;
}

bool by_optimum_balanced(const struct by_mesh *net, const int64_t *scaled)
{
    for (uint32_t i = 0; i < net->node_count; i++) {
        int64_t sum = 0;

        for (uint32_t j = net->first[i]; j < net->first[i + 1]; j++)
            sum += scaled[net->near[j].half] - scaled[net->near[j].half ^ 1];
        if (sum != 0)
            return false;
    }
    return true;
}

/* k * p/q times the capacity must be an integer on every half that enters a bottleneck, so k is a
 * multiple of q over their common divisor. */
static int64_t step_of(int64_t q, int64_t divisor)
{
    return q / by_gcd(q, divisor);
}

/* The common divisor of the capacities that enter the side of the last query if the side is a
 * bottleneck as well, else 0. */
static int64_t tight_divisor(const struct by_graph *graph, const struct by_reach *reach,
                             const int64_t *shares, int64_t share_sum, int64_t p, int64_t q)
{
    uint32_t count;
    struct fixed_kind *kinds = entering_kinds(graph, reach, &count);
    __int128 entering = 0, wanted = share_sum;
    int64_t divisor = 0;

    for (uint32_t i = 0; i < count; i++) {
        entering += (__int128)kinds[i].capacity * kinds[i].count;
        divisor = by_gcd(divisor, kinds[i].capacity);
    }
    for (uint32_t i = 0; i < by_reach_side(reach); i++)
        wanted -= shares[reach->queue[i]];
    free(kinds);
    return entering * p == wanted * q ? divisor : 0;
}

int64_t by_optimum_least_k(const struct by_graph *graph, const int64_t *shares, int64_t p, int64_t q,
                           const bool *inside, bool balanced, int64_t *scaled)
{
    const struct by_mesh *net = graph->net;
    uint32_t *order = by_alloc(graph->node_count, sizeof(*order));
    struct by_reach *reach = by_reach_new(net);
    int64_t divisor = 0, step, k, share_sum = 0;
    bool found = false;

    by_oracle_order(net, order);
    for (uint32_t half = 0; half < 2 * net->pair_count; half++)
        if (!inside[net->tail[half]] && inside[by_mesh_head(net, half)])
            divisor = by_gcd(divisor, net->capacity[half]);
    for (uint32_t i = 0; i < graph->node_count; i++)
        share_sum += shares[i];
    step = k = step_of(q, divisor);
    for (uint32_t tries = 0; tries < LEAST_K_TRIES && k < q && !found && !reach->late; tries++) {
        struct by_fraction u;

        if (by_fraction_set((__int128)p * k, q, &u) != 0 || scale_down(graph, u, scaled) != 0)
            break;
        if (balanced && !by_optimum_balanced(net, scaled)) {
            k += step;
            continue;
        }
        memset(reach->contracted, 0, graph->node_count * sizeof(*reach->contracted));
        set_capacities(reach, scaled);
        found = by_oracle_ask(reach, order, set_roots(reach, shares, k), graph->compute) < 0 && !reach->late;
        if (!found) {
            divisor = tight_divisor(graph, reach, shares, share_sum, p, q);
            if (divisor > 0) {
                int64_t other = step_of(q, divisor);

                /* both divide q, so does their least common multiple */
                step = step / by_gcd(step, other) * other;
            }
            k = (k / step + 1) * step;
        }
    }
    if (!found) {
        k = q;
        for (uint32_t half = 0; half < 2 * net->pair_count; half++)
            scaled[half] = net->capacity[half] * p;
    }
    by_reach_free(reach);
    free(order);
    return k;
}
