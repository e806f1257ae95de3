/* Allreduce by trees rooted at compute nodes. See phases.h. */
#include "control/planner/network/phases.h"

#include "control/base/alloc.h"
#include "control/base/fraction.h"
#include "control/fabric/build.h"
#include "control/planner/network/budget.h"
#include "control/planner/optimum/optimum.h"
#include "offload/base/assert.h"
#include "offload/base/errors.h"

static int refuse_range(struct by_problem *problem)
{
    return by_problem_set(problem, BY_ERANGE, (struct by_place){0, 0},
                          "an exact rate or weight needs more than 63 bits; round the bandwidths");
}

static bool is_balanced(const struct by_graph *graph)
{
    for (uint32_t i = 0; i < graph->node_count; i++)
        if (by_graph_entering(graph, i) != by_graph_leaving(graph, i))
            return false;
    return true;
}

/* Reduce-scatter of rate a followed by allgather of rate b requires the time 1/a + 1/b. In
 * parallel, reduce-scatter therefore gets the share b / (a + b) of every link. */
static int find_equal(struct by_phases *phases, struct by_problem *problem)
{
    bool *inside = by_alloc(phases->both->node_count, sizeof(*inside));
    int64_t n = phases->both->compute_count;
    struct by_fraction a, b, sum;
    int error = 0;

    error = by_optimum_allgather(phases->down, &phases->down_p, &phases->down_q, inside, problem);
    if (!error && phases->balanced) {
        phases->up_p = phases->down_p; /* the same capacity leaves a set as enters it */
        phases->up_q = phases->down_q;
    } else if (!error) {
        error = by_optimum_allgather(phases->up, &phases->up_p, &phases->up_q, inside, problem);
    }
    free(inside);
    if (error)
        return error;
    if (by_fraction_set((__int128)n * phases->up_q, phases->up_p, &a) != 0 ||
        by_fraction_set((__int128)n * phases->down_q, phases->down_p, &b) != 0 ||
        by_fraction_add(a, b, &sum) != 0 || by_fraction_divide(b, sum, &phases->up_share) != 0 ||
        by_fraction_divide(a, sum, &phases->down_share) != 0 ||
        by_fraction_multiply(a, phases->up_share, &phases->equal) != 0)
        return refuse_range(problem);
    return 0;
}

int by_phases_find(struct by_graph *both, struct by_graph *up, struct by_graph *down, double deadline,
                   struct by_phases *phases, struct by_problem *problem)
{
    int error;

    *phases = (struct by_phases){.both = both, .up = up, .down = down, .deadline = deadline};
    phases->symmetric = by_graph_is_symmetric(both);
    phases->balanced = is_balanced(both);
    phases->equal = phases->rate = (struct by_fraction){0, 1};
    error = find_equal(phases, problem);
    phases->late = error == BY_ETIMEDOUT;
    if (error)
        return phases->late ? 0 : error;
    phases->rate = phases->equal;
    if (!phases->balanced)
        return 0;
    if (phases->symmetric && both->compute_count == both->node_count) {
        error = by_spanning_find(both, deadline, &phases->spanning, problem);
        if (error)
            by_spanning_free(&phases->spanning);
        else
            error = by_fraction_set(phases->spanning.num, phases->spanning.den, &phases->rate);
    } else {
        error = by_strength_find(down, deadline, &phases->strength, problem);
        if (error)
            by_strength_free(&phases->strength);
        else
            error = by_fraction_set(phases->strength.num, (__int128)phases->strength.den * 2, &phases->rate);
    }
    BY_ASSERT(error || by_fraction_compare(phases->rate, phases->equal) >= 0);
    phases->late = error == BY_ETIMEDOUT;
    return phases->late ? 0 : error;
}

void by_phases_equal(struct by_phases *phases)
{
    by_strength_free(&phases->strength);
    by_spanning_free(&phases->spanning);
    phases->rate = phases->equal;
}

void by_phases_free(struct by_phases *phases)
{
    by_strength_free(&phases->strength);
    by_spanning_free(&phases->spanning);
}

/* The input for packing the trees of one direction. */
struct packing {
    struct by_graph *graph;
    const int64_t *capacity; /* in trees; NULL: `scale` times that of the graph */
    int64_t scale;           /* trees in one unit of capacity */
    const int64_t *roots;    /* by node; NULL: `equal` at each compute node */
    int64_t equal;
    struct by_fraction share; /* of the links' time */
    enum by_tree_use use;
};

static int pack_trees(const struct by_phases *phases, const struct packing *packing,
                      struct by_tree_list *list, struct by_plan *plan, struct by_problem *problem)
{
    struct by_graph *graph = packing->graph;
    size_t n = graph->node_count;
    const struct by_mesh *net = graph->net;
    int64_t *capacity = by_alloc(2 * (size_t)net->pair_count, sizeof(*capacity)),
            *roots = by_alloc(n, sizeof(*roots));
    struct by_forest forest = {graph, capacity, roots, {0, 1}, packing->use, phases->deadline, phases->stage};
    struct by_fraction unit;
    int error = by_fraction_divide(graph->unit, (struct by_fraction){packing->scale, 1}, &unit);

    for (uint32_t half = 0; half < 2 * net->pair_count; half++)
        capacity[half] = packing->capacity ? packing->capacity[net->tail[half] * n + by_mesh_head(net, half)]
                                           : net->capacity[half] * packing->scale;
    for (size_t i = 0; i < n; i++)
        roots[i] = packing->roots ? packing->roots[i] : graph->compute[i] ? packing->equal : 0;
    if (!error)
        error = by_fraction_multiply(unit, packing->share, &forest.weight);
    if (error)
        error = refuse_range(problem);
    else
        error = by_budget_forest(&forest, graph, list, plan, problem);
    free(capacity);
    free(roots);
    return error;
}

/* Packs trees of a fabric without switches, from roots everywhere, into links that are directed for
 * them. */
static int spanning_trees(const struct by_phases *phases, struct by_tree_list *list, struct by_plan *plan,
                          struct by_problem *problem)
{
    const struct by_spanning *spanning = &phases->spanning;
    size_t n = phases->both->node_count;
    int64_t *directed = by_alloc(n * n, sizeof(*directed)), *roots = by_alloc(n, sizeof(*roots));
    struct packing packing = {phases->both, directed, 2 * spanning->den, roots, 0, {1, 1}, BY_TREE_BOTH};
    int error;

    by_spanning_roots(spanning, (uint32_t)n, roots);
    by_spanning_direct(phases->both, spanning, roots, directed);
    error = pack_trees(phases, &packing, list, plan, problem);
    free(directed);
    free(roots);
    return error;
}

int by_phases_trees(const struct by_phases *phases, struct by_tree_list *list, struct by_plan *plan,
                    struct by_problem *problem)
{
    bool free_roots = by_fraction_compare(phases->rate, phases->equal) > 0;
    const int64_t *roots = free_roots ? phases->strength.roots : NULL;
    int64_t den = phases->strength.den;
    struct by_fraction half = {1, 2};
    struct packing packing[2] = {{phases->up, NULL, free_roots ? den : phases->up_p, roots, phases->up_q,
                                  free_roots ? half : phases->up_share, BY_TREE_UP},
                                 {phases->down, NULL, free_roots ? den : phases->down_p, roots,
                                  phases->down_q, free_roots ? half : phases->down_share, BY_TREE_DOWN}};
    struct by_tree_list up = {0}, down = {0};
    int error;

    if (free_roots && phases->spanning.part)
        return spanning_trees(phases, list, plan, problem);
    if (phases->symmetric) {
        packing[1].graph = phases->both;
        packing[1].use = BY_TREE_BOTH;
        return pack_trees(phases, &packing[1], list, plan, problem);
    }
    error = pack_trees(phases, &packing[0], &up, plan, problem);
    if (!error)
        error = pack_trees(phases, &packing[1], &down, plan, problem);
    if (!error && by_tree_list_pair(&up, &down, list) != 0)
        error = refuse_range(problem);
    by_tree_list_free(&up);
    by_tree_list_free(&down);
    return error;
}
