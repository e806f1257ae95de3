/*
 * The strength of a fabric. See strength.h.
 *
 * For a rate X, the least number x(v) of trees that must start at each node is found greedily, one
 * flow each: x(v) = max over sets T with v of X - entering(T) - x(T without v), the deficit of the
 * node's sets. The demand X - entering(T) is supermodular on sets that share a compute node, so the
 * greedy sum is minimal, and the tight sets, merged where they intersect, are a family that proves
 * it (Frank, Tardos). When the sum exceeds X, that family yields the next, strictly smaller, X
 * (Newton's method); when it equals X, the rate is exact. Nodes not yet processed are contracted
 * into the source, which keeps the flows local.
 */
#include "control/planner/optimum/strength.h"

#include "control/base/alloc.h"
#include "control/base/clock.h"
#include "control/base/fraction.h"
#include "control/fabric/build.h"
#include "control/planner/flow/reach.h"
#include "offload/base/assert.h"
#include "offload/base/errors.h"

static const struct by_place nowhere = {0, 0};

struct strength_search {
    const struct by_graph *graph;
    struct by_strength *strength;
    struct by_reach *reach;
    uint32_t *proof; /* by node: its set in the family that has given the rate */
    uint32_t proof_count;
    double deadline; /* a time of by_plan_clock, 0 for none */
};

static void search_make(struct strength_search *search, const struct by_graph *graph,
                        struct by_strength *strength)
{
    uint32_t n = graph->node_count;

    *search = (struct strength_search){.graph = graph, .strength = strength};
    search->reach = by_reach_new(graph->net);
    search->proof = by_alloc(n, sizeof(*search->proof));
    strength->roots = by_alloc(n, sizeof(*strength->roots));
    strength->part = by_alloc(n, sizeof(*strength->part));
}

static void search_free(struct strength_search *search)
{
    by_reach_free(search->reach);
    free(search->proof);
}

static bool is_late(const struct strength_search *search)
{
    return search->reach->late || by_plan_late(search->deadline);
}

/* Starts with an empty family. */
static void clear_parts(struct strength_search *search)
{
    for (uint32_t i = 0; i < search->graph->node_count; i++)
        search->strength->part[i] = BY_PART_NONE;
    search->strength->part_count = 0;
}

/* Adds the set behind the cut of the last query to the family, merged with the sets that share a
 * compute node with it. Switches that belong to another set stay there: without them the set is no
 * worse, since the graph is balanced. */
static void add_part(struct strength_search *search)
{
    const struct by_graph *graph = search->graph;
    uint32_t n = graph->node_count, *part = search->strength->part, number = search->strength->part_count++;
    bool *joined = by_alloc(number + 1, sizeof(*joined));

    for (uint32_t i = 0; i < n; i++)
        if (by_reach_inside(search->reach, i) && graph->compute[i] && part[i] != BY_PART_NONE)
            joined[part[i]] = true;
    for (uint32_t i = 0; i < n; i++)
        if (part[i] == BY_PART_NONE ? by_reach_inside(search->reach, i) : joined[part[i]])
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
    for (uint32_t half = 0; half < 2 * graph->net->pair_count; half++) {
        uint32_t to = strength->part[by_mesh_head(graph->net, half)];

        if (to != BY_PART_NONE && to != strength->part[graph->net->tail[half]])
            entering += graph->net->capacity[half];
    }
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
        search->proof[i] = graph->compute[i] ? search->proof_count++ : BY_PART_NONE;
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
    for (uint32_t half = 0; half < 2 * graph->net->pair_count; half++)
        by_reach_set(search->reach, half, graph->net->capacity[half] * strength->den);
    for (uint32_t i = 0; i < graph->node_count; i++) {
        by_reach_set_root(search->reach, i, 0);
        search->reach->contracted[i] = graph->compute[i];
    }
    for (uint32_t i = 0; i < graph->node_count && !is_late(search); i++) {
        if (!graph->compute[i])
            continue;
        search->reach->contracted[i] = false;
        strength->roots[i] = strength->num - by_reach_flow(search->reach, i, strength->num);
        sum += strength->roots[i];
        if (strength->roots[i] > 0)
            add_part(search);
        by_reach_set_root(search->reach, i, strength->roots[i]);
    }
    return sum;
}

/* Completes the tight sets for the final roots: they hold all compute nodes if the graph is
 * symmetric. The family that has given the rate is tight: its sets require the rate's number of
 * roots in all. */
static void find_parts(struct strength_search *search)
{
    const struct by_graph *graph = search->graph;
    struct by_strength *strength = search->strength;
    bool all = true;

    memcpy(strength->part, search->proof, graph->node_count * sizeof(*strength->part));
    strength->part_count = search->proof_count;
    for (uint32_t i = 0; i < graph->node_count && all && !is_late(search); i++) {
        if (!graph->compute[i] || strength->part[i] != BY_PART_NONE)
            continue;
        all = by_reach_flow(search->reach, i, strength->num + 1) == strength->num;
        if (all)
            add_part(search);
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

        if (is_late(&search))
            error = refuse_late(problem);
        if (error || sum <= num)
            break;
        entering = count_parts(&search);
        BY_ASSERT(strength->part_count > 1);
        set_rate(&search, entering, strength->part_count - 1);
        memcpy(search.proof, strength->part, graph->node_count * sizeof(*search.proof));
        search.proof_count = strength->part_count;
        BY_ASSERT((__int128)strength->num * den < (__int128)num * strength->den);
    }
    if (!error)
        find_parts(&search);
    if (!error && is_late(&search))
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
