/* Trees within one part. See inner.h. */
#include "control/planner/classes/inner.h"

#include <stdlib.h>

#include "control/base/alloc.h"
#include "control/base/fraction.h"
#include "control/fabric/build.h"
#include "offload/base/errors.h"

static const struct by_place nowhere = {0, 0};

void by_inner_free(struct by_inner *inner)
{
    by_plan_free(inner->plan);
    free(inner->whole);
    free(inner->parts);
    free(inner->load);
    *inner = (struct by_inner){0};
}

/* What routes leave of a link while each compute node has the rate `each`; 0 if nothing. */
static struct by_fraction left_of(const struct by_routes *routes, uint32_t half, struct by_fraction each)
{
    struct by_fraction all = {routes->graph->net->capacity[half], 1}, used, left = {0, 1};

    if (by_fraction_set((__int128)routes->load[half] * routes->factor[half], routes->copies, &used) != 0 ||
        by_fraction_multiply(used, each, &used) != 0 || by_fraction_subtract(all, used, &left) != 0)
        return (struct by_fraction){0, 1};
    return left;
}

/* Makes the fabric of one part: representatives that all levels move. */
static int make_part(struct by_inner *inner, const struct by_routes *routes, struct by_fraction each,
                     struct by_topology **part, struct by_problem *problem)
{
    const struct by_graph *graph = routes->graph;
    const struct by_symmetry *symmetry = routes->symmetry;
    struct by_builder *builder = by_builder_new("part", graph->topology->unit);
    uint32_t count = 0, *number = by_alloc(graph->node_count, sizeof(*number));
    int error;

    inner->whole = by_alloc(symmetry->representative_count, sizeof(*inner->whole));
    for (uint32_t i = 0; i < symmetry->representative_count; i++) {
        uint32_t node = symmetry->representatives[i];
        struct by_node kind = {.name = graph->topology->nodes[node].name, .compute = graph->compute[node]};

        number[node] = UINT32_MAX;
        if (symmetry->moved[node] + 1 != 1u << symmetry->level_count)
            continue;
        inner->whole[count++] = node;
        number[node] = by_builder_node(builder, &kind);
    }
    for (uint32_t half = 0; half < 2 * graph->net->pair_count; half++) {
        uint32_t from = graph->net->tail[half], to = graph->net->tail[half ^ 1];
        struct by_fraction left;

        if (routes->factor[half] == 0 || number[from] == UINT32_MAX || number[to] == UINT32_MAX)
            continue;
        left = left_of(routes, half, each);
        if (left.num > 0)
            by_builder_link(builder, number[from], number[to], false, left, nowhere);
    }
    error = by_builder_finish(builder, part, problem);
    by_builder_free(builder);
    free(number);
    return error;
}

/* Sets the parts of the data that the trees carry, k, and the loads. */
static int weigh(struct by_inner *inner, const struct by_graph *graph, bool both)
{
    const struct by_plan *plan = inner->plan;

    inner->k = 1;
    inner->parts = by_alloc(plan->tree_count, sizeof(*inner->parts));
    inner->load = by_alloc(2 * (size_t)graph->net->pair_count, sizeof(*inner->load));
    for (uint32_t half = 0; half < 2 * graph->net->pair_count; half++)
        inner->load[half] = (struct by_fraction){0, 1};
    for (uint32_t i = 0; i < plan->tree_count; i++) {
        const struct by_tree *tree = &plan->trees[i];
        struct by_fraction *part = &inner->parts[i];

        if (by_fraction_multiply(tree->weight, (struct by_fraction){plan->compute_count, 1}, part) != 0 ||
            by_fraction_divide(*part, plan->achieved, part) != 0 ||
            __builtin_mul_overflow(inner->k, part->den / by_gcd(inner->k, part->den), &inner->k))
            return BY_ERANGE;
        for (uint32_t j = 0; j < tree->edge_count; j++) {
            struct by_path path = by_plan_edge(plan, tree, j);

            for (uint32_t k = 1; k < path.node_count; k++) {
                uint32_t half =
                    by_mesh_find(graph->net, inner->whole[path.nodes[k - 1]], inner->whole[path.nodes[k]]);

                if (by_fraction_add(inner->load[half], *part, &inner->load[half]) != 0 ||
                    (both && by_fraction_add(inner->load[half ^ 1], *part, &inner->load[half ^ 1]) != 0))
                    return BY_ERANGE;
            }
        }
    }
    return 0;
}

int by_inner_make(struct by_inner *inner, const struct by_routes *routes, struct by_fraction each,
                  by_inner_plan_fn *plan_part, struct by_problem *problem)
{
    struct by_topology *part;
    int error;

    by_inner_free(inner);
    inner->k = 1;
    if (routes->rank_count == 1)
        return 0;
    error = make_part(inner, routes, each, &part, problem);
    if (!error) {
        error = plan_part(part, &inner->plan, problem);
        by_topology_free(part);
    }
    if (error)
        return by_problem_set(problem, BY_EUNSUPPORTED, nowhere,
                              "one of %u alike parts has no trees of its own beside those to other parts",
                              (uint32_t)by_symmetry_order(routes->symmetry));
    if (weigh(inner, routes->graph, routes->both_ways) != 0)
        return by_problem_set(problem, BY_ERANGE, nowhere,
                              "the load of a link needs more than 63 bits; round the bandwidths");
    return 0;
}
