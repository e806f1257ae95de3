/*
 * The best schedule with a given number of trees for each root: ForestColl, NSDI'26, section 5.5 and
 * algorithm 5. Instead of a binary search, each violated set of nodes gives the least factor U that satisfies
 * it; U only grows, so the first U without a violated set is the least. See optimum.h.
 */
#include "control/flow/flow.h"
#include "control/plan/optimum.h"
#include "control/plan/oracle.h"
#include "control/topology/alloc.h"
#include "control/topology/build.h"
#include "control/topology/fraction.h"
#include "offload/base/errors.h"

/* Whether the capacities entering `inside`, times p/q and rounded down, add up to at least `wanted`. */
static bool satisfies(const struct by_graph *graph, const bool *inside, struct by_fraction u, int64_t wanted)
{
    uint32_t n = graph->node_count;
    __int128 sum = 0;

    for (uint32_t i = 0; i < n * n; i++)
        if (graph->capacity[i] && !inside[i / n] && inside[i % n])
            sum += (__int128)graph->capacity[i] * u.num / u.den;
    return sum >= wanted;
}

/*
 * The least U for one set: a fraction j / b with b an entering capacity. Starts from the U that would do
 * without rounding and moves to the next point where one of the rounded capacities grows, until the sum is
 * reached; each move adds at least one.
 */
static int least_factor(const struct by_graph *graph, const bool *inside, int64_t wanted,
                        struct by_fraction *u)
{
    uint32_t n = graph->node_count;
    int64_t entering = by_graph_entering_set(graph, inside);
    struct by_fraction at;

    if (entering == 0)
        return BY_EINVAL;
    if (by_fraction_set(wanted, entering, &at) != 0)
        return BY_ERANGE;
    /* The first guess is below the answer or equal to it; it need not be a breakpoint. */
    while (!satisfies(graph, inside, at, wanted)) {
        struct by_fraction next = {0, 1};

        for (uint32_t i = 0; i < n * n; i++) {
            struct by_fraction point;

            if (!graph->capacity[i] || inside[i / n] || !inside[i % n])
                continue;
            if (by_fraction_set((__int128)graph->capacity[i] * at.num / at.den + 1, graph->capacity[i],
                                &point) != 0)
                return BY_ERANGE;
            if (next.num == 0 || by_fraction_compare(point, next) < 0)
                next = point;
        }
        at = next;
    }
    *u = at;
    return 0;
}

static int scale_down(const struct by_graph *graph, struct by_fraction u, int64_t *scaled)
{
    uint32_t n = graph->node_count;
    __int128 sum = 0;

    for (uint32_t i = 0; i < n * n; i++) {
        __int128 value = (__int128)graph->capacity[i] * u.num / u.den;

        sum += value;
        if (sum > BY_CAPACITY_SUM_MAX)
            return BY_ERANGE;
        scaled[i] = (int64_t)value;
    }
    return 0;
}

int by_optimum_fixed(const struct by_graph *graph, const int64_t *roots, int64_t *p, int64_t *q,
                     int64_t *scaled, struct by_problem *problem)
{
    uint32_t n = graph->node_count;
    bool *inside = by_alloc(n, sizeof(*inside));
    struct by_fraction u = {0, 1};
    int64_t total = 0, node;
    int error = 0;

    for (uint32_t i = 0; i < n; i++)
        total += roots[i];
    memset(scaled, 0, (size_t)n * n * sizeof(*scaled));
    while (!error && (node = by_oracle_check(n, scaled, roots, graph->compute, inside)) >= 0) {
        int64_t wanted = total;
        struct by_fraction least;

        for (uint32_t i = 0; i < n; i++)
            wanted -= inside[i] ? roots[i] : 0;
        error = least_factor(graph, inside, wanted, &least);
        if (!error && by_fraction_compare(least, u) > 0)
            u = least;
        if (!error)
            error = scale_down(graph, u, scaled);
        if (error == BY_EINVAL)
            by_problem_set(problem, error, (struct by_place){0, 0},
                           "compute node '%s' cannot be reached in the direction that the collective needs",
                           graph->topology->nodes[node].name);
        else if (error)
            by_problem_set(problem, error, (struct by_place){0, 0},
                           "the bandwidths need more than 60 bits in their common unit; round them or use a "
                           "larger unit");
    }
    *p = u.num;
    *q = u.den;
    free(inside);
    return error;
}
