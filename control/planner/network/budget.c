/* Enforces limits of addition for trees that were packed without them. See budget.h. */
#include "control/planner/network/budget.h"

#include <gmp.h>

#include "control/base/alloc.h"

static bool has_limits(const struct by_topology *topology)
{
    for (uint32_t i = 0; i < topology->node_count; i++)
        if (topology->nodes[i].aggregate_rate.num > 0)
            return true;
    return false;
}

/* Adds (children - 1) x weight at each limited switch of one tree; `children` is all zero before
 * and after.
 */
static void add_tree(const struct by_tree_list *list, const struct by_tree *tree,
                     const struct by_topology *topology, uint32_t *children, mpq_t *sums)
{
    const uint32_t *edges = list->edges + tree->first_edge;
    mpq_t part;

    mpq_init(part);
    for (uint32_t i = 0; i < tree->edge_count; i++)
        children[by_paths_from(&list->paths, edges[i])]++;
    for (uint32_t i = 0; i < tree->edge_count; i++) {
        uint32_t parent = by_paths_from(&list->paths, edges[i]);

        if (children[parent] > 1 && topology->nodes[parent].aggregate_rate.num > 0) {
            mpq_set_si(part, tree->weight.num, (unsigned long)tree->weight.den);
            mpz_mul_ui(mpq_numref(part), mpq_numref(part), children[parent] - 1);
            mpq_canonicalize(part);
            mpq_add(sums[parent], sums[parent], part);
        }
        children[parent] = 0;
    }
    mpq_clear(part);
}

bool by_budget_kept(const struct by_tree_list *list, const struct by_topology *topology, bool *over)
{
    uint32_t n = topology->node_count, *children;
    bool kept = true;
    mpq_t *sums, limit;

    if (!has_limits(topology))
        return true;
    children = by_alloc(n, sizeof(*children));
    sums = by_alloc(n, sizeof(*sums));
    mpq_init(limit);
    for (uint32_t i = 0; i < n; i++)
        mpq_init(sums[i]);
    for (uint32_t i = 0; i < list->count; i++)
        if (list->trees[i].use != BY_TREE_DOWN)
            add_tree(list, &list->trees[i], topology, children, sums);
    for (uint32_t i = 0; i < n; i++) {
        struct by_fraction rate = topology->nodes[i].aggregate_rate;
        bool too_much = rate.num > 0;

        if (too_much) {
            mpq_set_si(limit, rate.num, (unsigned long)rate.den);
            too_much = mpq_cmp(sums[i], limit) > 0;
        }
        kept = kept && !too_much;
        if (over)
            over[i] = too_much;
        mpq_clear(sums[i]);
    }
    mpq_clear(limit);
    free(children);
    free(sums);
    return kept;
}

int by_budget_forest(const struct by_forest *forest, struct by_graph *graph, struct by_tree_list *list,
                     struct by_plan *plan, struct by_problem *problem)
{
    bool *over = by_alloc(graph->node_count, sizeof(*over));
    int error = by_forest_make(forest, list, plan, problem);

    while (!error && !by_budget_kept(list, graph->topology, over)) {
        for (uint32_t i = 0; i < graph->node_count; i++)
            graph->branch[i] = graph->branch[i] && !over[i];
        by_tree_list_free(list);
        error = by_forest_make(forest, list, plan, problem);
    }
    free(over);
    return error;
}
