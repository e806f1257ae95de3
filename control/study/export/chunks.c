/* Divides shares into whole chunks. See chunks.h. */
#include "control/study/export/chunks.h"

#include "control/base/alloc.h"
#include "control/base/fraction.h"
#include "control/fabric/build.h"
#include "offload/base/assert.h"
#include "offload/base/errors.h"
#include "offload/wire/types.h"

static const struct by_place nowhere = {0, 0};

bool by_chunks_second(const struct by_plan *plan, uint32_t tree)
{
    return tree > 0 && by_collective_way(plan->collective) == BY_DATA_BOTH &&
           plan->trees[tree].use == BY_TREE_DOWN && plan->trees[tree - 1].use == BY_TREE_UP;
}

/* Checks that the trees branch at compute nodes only. */
static int check_trees(const struct by_plan *plan, const struct by_topology *topology,
                       struct by_problem *problem)
{
    for (uint32_t t = 0; t < plan->tree_count; t++) {
        const struct by_tree *tree = &plan->trees[t];
        uint32_t node = tree->root;

        for (uint32_t e = 0; e < tree->edge_count && topology->nodes[node].compute; e++) {
            struct by_path path = by_plan_edge(plan, tree, e);

            node = path.nodes[topology->nodes[path.nodes[0]].compute ? path.node_count - 1 : 0];
        }
        if (!topology->nodes[node].compute)
            return by_problem_set(problem, BY_EUNSUPPORTED, nowhere,
                                  "tree %u branches at switch '%s'; these formats support only compute "
                                  "nodes: plan again with --in-network none",
                                  t, topology->nodes[node].name);
    }
    return 0;
}

/* Converts the weights to integers without a common divisor. */
static int find_counts(struct by_chunks *chunks, const struct by_plan *plan)
{
    int64_t scale = 1, divisor = 0;

    for (uint32_t t = 0; t < plan->tree_count; t++) {
        int64_t den = plan->trees[t].weight.den;

        if (__builtin_mul_overflow(scale, den / by_gcd(scale, den), &scale))
            return BY_ERANGE;
    }
    for (uint32_t t = 0; t < plan->tree_count; t++) {
        const struct by_fraction *weight = &plan->trees[t].weight;

        if (__builtin_mul_overflow(weight->num, scale / weight->den, &chunks->count[t]))
            return BY_ERANGE;
        divisor = by_gcd(divisor, chunks->count[t]);
    }
    for (uint32_t t = 0; t < plan->tree_count && divisor > 0; t++)
        chunks->count[t] /= divisor;
    return 0;
}

/* Computes the first chunk of each tree. */
static int find_firsts(struct by_chunks *chunks, const struct by_plan *plan)
{
    int64_t *used = by_alloc(chunks->rank_count, sizeof(*used));
    int error = 0;

    for (uint32_t t = 0; t < plan->tree_count && !error; t++) {
        uint32_t rank = by_collective_is_sharded(plan->collective) ? chunks->rank_of[plan->trees[t].root] : 0;

        if (by_chunks_second(plan, t)) {
            chunks->count[t] = chunks->count[t - 1];
            chunks->first[t] = chunks->first[t - 1];
            continue;
        }
        chunks->first[t] = used[rank];
        if (__builtin_add_overflow(used[rank], chunks->count[t], &used[rank]) ||
            __builtin_add_overflow(chunks->total, chunks->count[t], &chunks->total))
            error = BY_ERANGE;
    }
    chunks->each = by_collective_is_sharded(plan->collective) ? used[0] : 0;
    for (uint32_t t = 0; t < plan->tree_count && chunks->each > 0; t++)
        chunks->first[t] += chunks->rank_of[plan->trees[t].root] * chunks->each;
    free(used);
    return error;
}

int by_chunks_make(struct by_chunks *chunks, const struct by_plan *plan, const struct by_topology *topology,
                   struct by_problem *problem)
{
    int error = check_trees(plan, topology, problem);

    *chunks = (struct by_chunks){.tree_count = plan->tree_count};
    if (error)
        return error;
    chunks->count = by_alloc(plan->tree_count, sizeof(*chunks->count));
    chunks->first = by_alloc(plan->tree_count, sizeof(*chunks->first));
    chunks->rank_of = by_alloc(topology->node_count, sizeof(*chunks->rank_of));
    chunks->compute = by_alloc(topology->node_count, sizeof(*chunks->compute));
    for (uint32_t i = 0; i < topology->node_count; i++) {
        chunks->rank_of[i] = UINT32_MAX;
        if (topology->nodes[i].compute) {
            chunks->compute[chunks->rank_count] = i;
            chunks->rank_of[i] = chunks->rank_count++;
        }
    }
    error = find_counts(chunks, plan);
    if (!error)
        error = find_firsts(chunks, plan);
    if (error)
        by_problem_set(problem, error, nowhere, "the shares of the trees need more than 63 bits in chunks");
    if (!error && chunks->each * chunks->rank_count != chunks->total && chunks->each > 0)
        error = by_problem_set(problem, BY_EINVAL, nowhere,
                               "the trees of the compute nodes carry different shares; plan again");
    return error;
}

void by_chunks_free(struct by_chunks *chunks)
{
    free(chunks->count);
    free(chunks->first);
    free(chunks->rank_of);
    free(chunks->compute);
    *chunks = (struct by_chunks){0};
}
