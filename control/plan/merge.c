/* Merges equal trees. See merge.h. Trees are compared by a hash of their paths that does not depend
 * on the order of the edges; trees with equal hashes are compared path by path. */
#include "control/plan/merge.h"

#include <stdlib.h>
#include <string.h>

#include "control/base/alloc.h"
#include "control/base/fraction.h"
#include "offload/base/prng.h"
#include "offload/wire/types.h"

/* A tree, or a pair: the number of its first tree. */
struct merge_entry {
    uint64_t hash;
    uint32_t first;
};

struct merge_work {
    struct by_plan *plan;
    uint32_t width;           /* trees in one entry: 2 for pairs */
    uint32_t *mark, mark_now; /* by path */
};

static uint64_t hash_of(const struct by_plan *plan, const struct by_tree *tree)
{
    uint64_t sum = by_prng_mix((uint64_t)tree->root << 32 | (uint32_t)tree->use);

    for (uint32_t i = 0; i < tree->edge_count; i++)
        sum += by_prng_mix(plan->edges[tree->first_edge + i]);
    return by_prng_mix(sum);
}

static int compare_entries(const void *left, const void *right)
{
    const struct merge_entry *a = left, *b = right;

    if (a->hash != b->hash)
        return a->hash < b->hash ? -1 : 1;
    return a->first < b->first ? -1 : a->first > b->first;
}

/* A tree enters each node once, so a path occurs once in it. */
static bool are_equal(struct merge_work *work, const struct by_tree *a, const struct by_tree *b)
{
    const uint32_t *edges = work->plan->edges;

    if (a->root != b->root || a->use != b->use || a->edge_count != b->edge_count)
        return false;
    work->mark_now++;
    for (uint32_t i = 0; i < a->edge_count; i++)
        work->mark[edges[a->first_edge + i]] = work->mark_now;
    for (uint32_t i = 0; i < b->edge_count; i++)
        if (work->mark[edges[b->first_edge + i]] != work->mark_now)
            return false;
    return true;
}

/* Merges entry `from` into `into` if they are equal. */
static bool merge(struct merge_work *work, uint32_t into, uint32_t from)
{
    struct by_tree *trees = work->plan->trees;
    struct by_fraction sum;

    for (uint32_t i = 0; i < work->width; i++)
        if (!are_equal(work, &trees[into + i], &trees[from + i]))
            return false;
    if (by_fraction_add(trees[into].weight, trees[from].weight, &sum) != 0)
        return false;
    for (uint32_t i = 0; i < work->width; i++)
        trees[into + i].weight = sum;
    return true;
}

/* Removes the trees with gone[tree], and their edges. */
static void remove_trees(struct by_plan *plan, const bool *gone)
{
    uint32_t *edges = by_alloc(plan->edge_count, sizeof(*edges)), kept = 0;
    size_t count = 0;

    for (uint32_t i = 0; i < plan->tree_count; i++) {
        struct by_tree *tree = &plan->trees[kept];

        if (gone[i])
            continue;
        *tree = plan->trees[i];
        if (tree->edge_count > 0)
            memcpy(edges + count, plan->edges + tree->first_edge, tree->edge_count * sizeof(*edges));
        tree->first_edge = count;
        count += tree->edge_count;
        kept++;
    }
    free(plan->edges);
    plan->edges = edges;
    plan->edge_count = count;
    plan->tree_count = kept;
}

bool by_plan_is_pairs(const struct by_plan *plan)
{
    return by_collective_way(plan->collective) == BY_DATA_BOTH && plan->tree_count > 0 &&
           plan->trees[0].use != BY_TREE_BOTH;
}

uint32_t by_plan_merge(struct by_plan *plan)
{
    struct merge_work work = {.plan = plan, .width = by_plan_is_pairs(plan) ? 2 : 1};
    uint32_t count = plan->tree_count / work.width, removed = 0;
    struct merge_entry *entries = by_alloc(count, sizeof(*entries));
    bool *gone = by_alloc(plan->tree_count, sizeof(*gone));

    work.mark = by_alloc(plan->paths.count, sizeof(*work.mark));
    for (uint32_t i = 0; i < count; i++) {
        entries[i].first = i * work.width;
        for (uint32_t j = 0; j < work.width; j++)
            entries[i].hash = by_prng_mix(entries[i].hash) + hash_of(plan, &plan->trees[i * work.width + j]);
    }
    if (count > 1)
        qsort(entries, count, sizeof(*entries), compare_entries);
    for (uint32_t start = 0, end; start < count; start = end) {
        for (end = start + 1; end < count && entries[end].hash == entries[start].hash; end++)
            for (uint32_t i = start; i < end && !gone[entries[end].first]; i++)
                if (!gone[entries[i].first] && merge(&work, entries[i].first, entries[end].first))
                    for (uint32_t j = 0; j < work.width; j++, removed++)
                        gone[entries[end].first + j] = true;
    }
    if (removed > 0)
        remove_trees(plan, gone);
    free(work.mark);
    free(gone);
    free(entries);
    return removed;
}

uint32_t by_plan_trees_each(const struct by_plan *plan, uint32_t node_count)
{
    uint32_t *count = by_alloc(node_count, sizeof(*count)), most = 0;

    if (by_collective_way(plan->collective) == BY_DATA_BOTH)
        most = by_plan_is_pairs(plan) ? plan->tree_count / 2 : plan->tree_count;
    else
        for (uint32_t i = 0; i < plan->tree_count; i++)
            if (++count[plan->trees[i].root] > most)
                most = count[plan->trees[i].root];
    free(count);
    return most;
}
