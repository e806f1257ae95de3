/* From scaled capacities to finished trees. See forest.h. */
#include "control/plan/forest.h"

#include "control/plan/oracle.h"
#include "control/plan/pack.h"
#include "control/plan/split.h"
#include "control/topology/alloc.h"
#include "control/topology/build.h"
#include "control/topology/fraction.h"
#include "offload/base/assert.h"
#include "offload/base/errors.h"

/* Which nodes trees will span: compute nodes, and branching switches that every tree can reach. Others are to
 * be removed. */
static bool choose_members(const struct by_forest *forest, bool *members, bool *removed)
{
    const struct by_graph *graph = forest->graph;
    uint32_t n = graph->node_count;
    bool any = false, *one = by_alloc(n, sizeof(*one));

    for (uint32_t i = 0; i < n; i++) {
        int64_t touching = 0;

        members[i] = graph->compute[i];
        removed[i] = false;
        if (graph->compute[i])
            continue;
        for (uint32_t j = 0; j < n; j++)
            touching += forest->capacity[(size_t)i * n + j] + forest->capacity[(size_t)j * n + i];
        if (touching == 0)
            continue;
        if (graph->branch[i]) {
            one[i] = true;
            members[i] = by_oracle_check(n, forest->capacity, forest->roots, one, NULL) < 0;
            one[i] = false;
        }
        removed[i] = !members[i];
        any |= removed[i];
    }
    free(one);
    return any;
}

/* Switch removal needs an Eulerian graph: names the first node that is not balanced. */
static int check_balance(const struct by_forest *forest, struct by_problem *problem)
{
    const struct by_graph *graph = forest->graph;
    uint32_t n = graph->node_count;

    for (uint32_t i = 0; i < n; i++) {
        char in_text[BY_FRACTION_TEXT_BYTES], out_text[BY_FRACTION_TEXT_BYTES];
        struct by_fraction bandwidth[2];
        int64_t in = 0, out = 0, unbalanced;

        for (uint32_t j = 0; j < n; j++) {
            in += forest->capacity[(size_t)j * n + i];
            out += forest->capacity[(size_t)i * n + j];
        }
        if (in == out)
            continue;
        bandwidth[0] = (struct by_fraction){in, 1};
        bandwidth[1] = (struct by_fraction){out, 1};
        /* The planner's capacities may be turned round or rounded down: name the sums of the file. */
        unbalanced = by_topology_unbalanced(graph->topology, &bandwidth[0], &bandwidth[1]);
        if (unbalanced < 0)
            unbalanced = i;
        return by_problem_set(problem, BY_EINVAL, (struct by_place){0, 0},
                              "node '%s' has %s %s in and %s %s out: planning around switches that do not "
                              "branch needs equal sums; balance its links, or let the switches branch",
                              graph->topology->nodes[unbalanced].name,
                              by_fraction_text(bandwidth[0], in_text), graph->topology->unit,
                              by_fraction_text(bandwidth[1], out_text), graph->topology->unit);
    }
    return 0;
}

/*
 * Lays one bundle onto physical paths: as many equal trees at a time as the strands under its edges allow.
 * The strands that are next are used up in the same order, so the number of trees grows only with the number
 * of strands.
 */
static void lay_bundle(const struct by_forest *forest, const struct by_bundle *bundle,
                       struct by_strands *strands, struct by_tree_list *list)
{
    struct by_path *paths = by_alloc(bundle->edge_count, sizeof(*paths));
    int64_t left = bundle->count;

    while (left > 0) {
        int64_t amount = left;
        struct by_fraction weight;
        int error;

        for (uint32_t i = 0; i < bundle->edge_count; i++) {
            const struct by_strand *strand =
                by_strands_next(strands, bundle->edges[i].from, bundle->edges[i].to);

            amount = strand->amount < amount ? strand->amount : amount;
            paths[i] = (struct by_path){strand->length, strand->nodes};
        }
        error = by_fraction_multiply(forest->weight, (struct by_fraction){amount, 1}, &weight);
        BY_ASSERT(error == 0);
        by_tree_list_add(list, forest->graph, bundle->root, forest->use, weight, paths, bundle->edge_count);
        for (uint32_t i = 0; i < bundle->edge_count; i++)
            by_strands_take(strands, bundle->edges[i].from, bundle->edges[i].to, amount);
        left -= amount;
    }
    free(paths);
}

int by_forest_make(const struct by_forest *forest, struct by_tree_list *list, struct by_plan *plan,
                   struct by_problem *problem)
{
    uint32_t n = forest->graph->node_count;
    size_t cells = (size_t)n * n;
    bool *members = by_alloc(n, sizeof(*members)), *removed = by_alloc(n, sizeof(*removed));
    int64_t *capacity = by_alloc(cells, sizeof(*capacity));
    struct by_strands *strands = NULL;
    struct by_packing packing = {0};
    double start = by_plan_clock(), split_end, pack_end;
    int error = 0;

    memcpy(capacity, forest->capacity, cells * sizeof(*capacity));
    if (choose_members(forest, members, removed))
        error = check_balance(forest, problem);
    if (!error) {
        struct by_split split = {
            n, capacity, forest->roots, members, removed, forest->graph->compute, NULL, forest->deadline};

        split.strands = strands = by_strands_new(n, capacity);
        error = by_split_run(&split);
        split_end = by_plan_clock();
        if (!error)
            error = by_pack_run(n, capacity, forest->roots, members, forest->deadline, &packing);
        pack_end = by_plan_clock();
        for (uint32_t i = 0; i < packing.count && !error; i++)
            lay_bundle(forest, &packing.bundles[i], strands, list);
        by_tree_list_merge(list);
        plan->seconds.split += split_end - start;
        plan->seconds.pack += pack_end - split_end;
        plan->seconds.in_network += by_plan_clock() - pack_end;
        if (error)
            by_problem_set(problem, error, (struct by_place){0, 0},
                           "the time limit passed before all trees were packed; allow more time");
    }
    by_pack_free(&packing);
    by_strands_free(strands);
    free(capacity);
    free(members);
    free(removed);
    return error;
}
