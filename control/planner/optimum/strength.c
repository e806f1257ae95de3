/*
 * The strength of a fabric. See strength.h.
 *
 * For a rate X, the least number x(v) of trees that must start at each node is found greedily, one
 * flow each: x(v) = max over sets T with v of X - entering(T) - x(T without v), the deficit of the
 * node's sets. The demand X - entering(T) is supermodular on sets that share a compute node, so the
 * greedy sum is minimal, and the tight sets, merged where they intersect, are a family that proves
 * it (Frank, Tardos). When the sum exceeds X, that family yields the next, strictly smaller, X
 * (Newton's method); when it equals X, the rate is exact. Nodes not yet processed count as
 * unlimited sources, which keeps the flows local.
 */
#include "control/planner/optimum/strength.h"

#include "control/base/alloc.h"
#include "control/base/clock.h"
#include "control/base/fraction.h"
#include "control/fabric/build.h"
#include "control/planner/flow/flow.h"
#include "offload/base/assert.h"
#include "offload/base/errors.h"

static const struct by_place nowhere = {0, 0};

/* The graph with a source (node number node_count) that has an arc to each compute node, and the
 * family. */
struct strength_search {
    const struct by_graph *graph;
    struct by_strength *strength;
    struct by_flow *flow;
    uint32_t *arc; /* the flow's arc, by number of arc */
    int64_t *base; /* capacity, by number of arc */
    uint32_t arc_count;
    uint32_t *source; /* by node: the arc from the source */
    bool *side;
    double deadline; /* a time of by_plan_clock, 0 for none */
};

static void search_make(struct strength_search *search, const struct by_graph *graph,
                        struct by_strength *strength)
{
    uint32_t n = graph->node_count, count = 0;

    *search = (struct strength_search){.graph = graph, .strength = strength};
    for (size_t i = 0; i < (size_t)n * n; i++)
        count += graph->capacity[i] > 0;
    search->flow = by_flow_new(n + 1);
    search->arc = by_alloc(count, sizeof(*search->arc));
    search->base = by_alloc(count, sizeof(*search->base));
    search->source = by_alloc(n, sizeof(*search->source));
    search->side = by_alloc(n + 1, sizeof(*search->side));
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = 0; j < n; j++)
            if (by_graph_capacity(graph, i, j)) {
                search->base[search->arc_count] = by_graph_capacity(graph, i, j);
                search->arc[search->arc_count++] = by_flow_add(search->flow, i, j, 0);
            }
    for (uint32_t i = 0; i < n; i++)
        search->source[i] = graph->compute[i] ? by_flow_add(search->flow, n, i, 0) : UINT32_MAX;
    strength->roots = by_alloc(n, sizeof(*strength->roots));
    strength->part = by_alloc(n, sizeof(*strength->part));
}

static void search_free(struct strength_search *search)
{
    by_flow_free(search->flow);
    free(search->arc);
    free(search->base);
    free(search->source);
    free(search->side);
}

/* Starts with an empty family. */
static void clear_parts(struct strength_search *search)
{
    for (uint32_t i = 0; i < search->graph->node_count; i++)
        search->strength->part[i] = BY_PART_NONE;
    search->strength->part_count = 0;
}

/* Adds the set `side` to the family, merged with the sets that share a compute node with it.
 * Switches that belong to another set stay there: without them the set is no worse, since the graph
 * is balanced. */
static void add_part(struct strength_search *search)
{
    const struct by_graph *graph = search->graph;
    uint32_t n = graph->node_count, *part = search->strength->part, number = search->strength->part_count++;
    bool *joined = by_alloc(number + 1, sizeof(*joined));

    for (uint32_t i = 0; i < n; i++)
        if (search->side[i] && graph->compute[i] && part[i] != BY_PART_NONE)
            joined[part[i]] = true;
    for (uint32_t i = 0; i < n; i++)
        if (part[i] == BY_PART_NONE ? search->side[i] : joined[part[i]])
            part[i] = number;
    free(joined);
}

/* Numbers the remaining sets from 0, and adds up the capacity that enters them. */
static int64_t count_parts(struct strength_search *search)
{
    const struct by_graph *graph = search->graph;
    struct by_strength *strength = search->strength;
    uint32_t n = graph->node_count, next = 0, *number = by_alloc(strength->part_count, sizeof(*number));
    int64_t entering = 0;

    for (uint32_t i = 0; i < strength->part_count; i++)
        number[i] = BY_PART_NONE;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t old = strength->part[i];

        if (old == BY_PART_NONE)
            continue;
        if (number[old] == BY_PART_NONE)
            number[old] = next++;
        strength->part[i] = number[old];
    }
    strength->part_count = next;
    free(number);
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = 0; j < n; j++)
            if (strength->part[j] != BY_PART_NONE && strength->part[i] != strength->part[j])
                entering += by_graph_capacity(graph, i, j);
    return entering;
}

static void set_rate(struct strength_search *search, int64_t entering, int64_t over)
{
    int64_t divisor = by_gcd(entering, over);

    search->strength->num = entering / divisor;
    search->strength->den = over / divisor;
}

/* The first rate: every compute node is its own set. */
static int first_rate(struct strength_search *search, struct by_problem *problem)
{
    const struct by_graph *graph = search->graph;
    int64_t entering = 0;

    for (uint32_t i = 0; i < graph->node_count; i++) {
        int64_t own = graph->compute[i] ? by_graph_entering(graph, i) : 1;

        if (own == 0)
            return by_problem_set(problem, BY_EINVAL, nowhere,
                                  "compute node '%s' cannot be reached from the others; add a link to it",
                                  graph->topology->nodes[i].name);
        entering += graph->compute[i] ? own : 0;
    }
    set_rate(search, entering, graph->compute_count - 1);
    return 0;
}

/* Finds the least number of trees that must start at each node for the rate; returns their sum and
 * the family that requires them. */
static int64_t spread_roots(struct strength_search *search)
{
    const struct by_graph *graph = search->graph;
    struct by_strength *strength = search->strength;
    int64_t sum = 0;

    clear_parts(search);
    for (uint32_t i = 0; i < search->arc_count; i++)
        by_flow_set(search->flow, search->arc[i], search->base[i] * strength->den);
    for (uint32_t i = 0; i < graph->node_count; i++)
        if (graph->compute[i])
            by_flow_set(search->flow, search->source[i], strength->num);
    for (uint32_t i = 0; i < graph->node_count && !by_plan_late(search->deadline); i++) {
        int64_t reached;

        if (!graph->compute[i])
            continue;
        by_flow_set(search->flow, search->source[i], 0);
        reached = by_flow_run(search->flow, graph->node_count, i, strength->num);
        strength->roots[i] = strength->num - reached;
        sum += strength->roots[i];
        if (strength->roots[i] > 0) {
            by_flow_sink_side(search->flow, search->side);
            add_part(search);
        }
        by_flow_set(search->flow, search->source[i], strength->roots[i]);
    }
    return sum;
}

/* Finds the tight sets for the final roots: they hold all compute nodes if the graph
 * is symmetric. */
static void find_parts(struct strength_search *search)
{
    const struct by_graph *graph = search->graph;
    struct by_strength *strength = search->strength;
    bool all = true;

    clear_parts(search);
    for (uint32_t i = 0; i < graph->node_count && all && !by_plan_late(search->deadline); i++) {
        if (!graph->compute[i] || strength->part[i] != BY_PART_NONE)
            continue;
        all = by_flow_run(search->flow, graph->node_count, i, strength->num + 1) == strength->num;
        if (all) {
            by_flow_sink_side(search->flow, search->side);
            add_part(search);
        }
    }
    count_parts(search);
    if (!all || strength->part_count < 2)
        strength->part_count = 0;
}

static int refuse_late(struct by_problem *problem)
{
    return by_problem_set(problem, BY_ETIMEDOUT, nowhere,
                          "the time limit passed before the bound was found; allow more time");
}

int by_strength_find(const struct by_graph *graph, double deadline, struct by_strength *strength,
                     struct by_problem *problem)
{
    struct strength_search search;
    int error;

    *strength = (struct by_strength){0};
    if (by_graph_sum(graph) > BY_CAPACITY_SUM_MAX / graph->compute_count)
        return by_problem_set(
            problem, BY_ERANGE, nowhere,
            "the bandwidths need more than 60 bits in their common unit; round them or use a larger unit");
    search_make(&search, graph, strength);
    search.deadline = deadline;
    error = first_rate(&search, problem);
    while (!error) {
        int64_t num = strength->num, den = strength->den, sum = spread_roots(&search), entering;

        if (by_plan_late(deadline))
            error = refuse_late(problem);
        if (error || sum <= num)
            break;
        entering = count_parts(&search);
        BY_ASSERT(strength->part_count > 1);
        set_rate(&search, entering, strength->part_count - 1);
        BY_ASSERT((__int128)strength->num * den < (__int128)num * strength->den);
    }
    if (!error)
        find_parts(&search);
    if (!error && by_plan_late(deadline))
        error = refuse_late(problem);
    search_free(&search);
    return error;
}

void by_strength_free(struct by_strength *strength)
{
    free(strength->roots);
    free(strength->part);
    *strength = (struct by_strength){0};
}
