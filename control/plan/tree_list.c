/* Lists of finished trees. See tree_list.h; planner/pack/tree.c makes trees from paths. */
#include "control/plan/tree_list.h"

#include "control/base/alloc.h"
#include "control/base/fraction.h"
#include "offload/base/assert.h"
#include "offload/base/errors.h"

void by_tree_list_free(struct by_tree_list *list)
{
    by_paths_free(&list->paths);
    free(list->trees);
    free(list->edges);
    *list = (struct by_tree_list){0};
}

/* Removes the paths that no tree uses, and numbers the others in the order of their first use in
 * the trees, so that a walk over the trees visits the table almost in order. */
static void number_paths(struct by_tree_list *list)
{
    uint32_t *number = by_alloc(list->paths.count, sizeof(*number)), kept = 0;

    memset(number, 0xff, list->paths.count * sizeof(*number));
    for (uint32_t i = 0; i < list->count; i++)
        for (uint32_t j = 0; j < list->trees[i].edge_count; j++) {
            uint32_t *edge = &list->edges[list->trees[i].first_edge + j];

            if (number[*edge] == UINT32_MAX)
                number[*edge] = kept++;
            *edge = number[*edge];
        }
    by_paths_renumber(&list->paths, number, kept);
    free(number);
}

void by_tree_list_move(struct by_tree_list *list, struct by_plan *plan)
{
    number_paths(list);
    by_tree_list_give(list, plan);
}

void by_tree_list_give(struct by_tree_list *list, struct by_plan *plan)
{
    BY_ASSERT(plan->tree_count == 0 && !plan->trees);
    plan->trees = list->trees;
    plan->tree_count = list->count;
    plan->paths = list->paths;
    plan->edges = list->edges;
    plan->edge_count = list->edge_count;
    *list = (struct by_tree_list){0};
}

void by_tree_list_replace(struct by_tree_list *list, struct by_fraction achieved, struct by_plan *plan)
{
    by_paths_free(&plan->paths);
    free(plan->trees);
    free(plan->edges);
    plan->trees = NULL;
    plan->tree_count = 0;
    plan->packed = (struct by_heights){0, 0};
    plan->k = 0;
    plan->achieved = achieved;
    by_tree_list_move(list, plan);
}

void by_tree_list_append(struct by_tree_list *list, uint32_t root, enum by_tree_use use,
                         struct by_fraction weight, const uint32_t *edges, uint32_t edge_count)
{
    BY_GROW(list->trees, list->count, list->room);
    if (list->edge_count + edge_count > list->edge_room) {
        list->edge_room = 2 * list->edge_room + edge_count;
        list->edges = by_realloc(list->edges, list->edge_room, sizeof(*list->edges));
    }
    list->trees[list->count++] = (struct by_tree){
        .root = root, .use = use, .weight = weight, .edge_count = edge_count, .first_edge = list->edge_count};
    if (edge_count > 0)
        memcpy(list->edges + list->edge_count, edges, edge_count * sizeof(*edges));
    list->edge_count += edge_count;
}

void by_tree_list_copy(struct by_tree_list *list, const struct by_tree_list *from, uint32_t tree,
                       struct by_fraction weight)
{
    const struct by_tree *original = &from->trees[tree];
    uint32_t *edges = by_alloc(original->edge_count, sizeof(*edges));

    for (uint32_t i = 0; i < original->edge_count; i++) {
        struct by_path path = by_paths_get(&from->paths, from->edges[original->first_edge + i]);

        edges[i] = by_paths_add(&list->paths, path.nodes, path.node_count);
    }
    by_tree_list_append(list, original->root, original->use, weight, edges, original->edge_count);
    free(edges);
}

uint32_t by_tree_list_height(const struct by_tree_list *list, uint32_t tree, uint32_t node_count)
{
    uint32_t *depth = by_alloc(node_count, sizeof(*depth)), height = 0;

    for (uint32_t i = 0; i < list->trees[tree].edge_count; i++) {
        uint32_t path = list->edges[list->trees[tree].first_edge + i];
        uint32_t at = depth[by_paths_from(&list->paths, path)] + by_paths_hops(&list->paths, path);

        depth[by_paths_to(&list->paths, path)] = at;
        height = at > height ? at : height;
    }
    free(depth);
    return height;
}

/* Compares by a total order in which equal trees are neighbours, ignoring weights. `context` is the
 * edges. */
static int compare_trees(const void *left, const void *right, void *context)
{
    const struct by_tree *a = left, *b = right;
    const uint32_t *edges = context;

    if (a->root != b->root)
        return a->root < b->root ? -1 : 1;
    if (a->use != b->use)
        return a->use < b->use ? -1 : 1;
    if (a->edge_count != b->edge_count)
        return a->edge_count < b->edge_count ? -1 : 1;
    if (a->edge_count == 0)
        return 0;
    return memcmp(edges + a->first_edge, edges + b->first_edge, a->edge_count * sizeof(*edges));
}

/* The edges of merged trees stay in the array, unused: they are few. */
void by_tree_list_merge(struct by_tree_list *list)
{
    uint32_t kept = 0;

    if (list->count > 1)
        qsort_r(list->trees, list->count, sizeof(*list->trees), compare_trees, list->edges);
    for (uint32_t i = 0; i < list->count; i++) {
        struct by_fraction sum;

        if (kept > 0 && compare_trees(&list->trees[kept - 1], &list->trees[i], list->edges) == 0 &&
            by_fraction_add(list->trees[kept - 1].weight, list->trees[i].weight, &sum) == 0)
            list->trees[kept - 1].weight = sum;
        else
            list->trees[kept++] = list->trees[i];
    }
    list->count = kept;
}

/* Subtracts the common part of two weights from both. */
static int pair_weight(struct by_fraction *up, struct by_fraction *down, struct by_fraction *common)
{
    *common = by_fraction_compare(*up, *down) <= 0 ? *up : *down;
    if (by_fraction_subtract(*up, *common, up) != 0 || by_fraction_subtract(*down, *common, down) != 0)
        return BY_ERANGE;
    return 0;
}

int by_tree_list_pair(struct by_tree_list *up, struct by_tree_list *down, struct by_tree_list *list)
{
    uint32_t i = 0, j = 0;

    while (i < up->count && j < down->count) {
        struct by_fraction common;

        BY_ASSERT(up->trees[i].root == down->trees[j].root);
        if (pair_weight(&up->trees[i].weight, &down->trees[j].weight, &common) != 0)
            return BY_ERANGE;
        by_tree_list_copy(list, up, i, common);
        by_tree_list_copy(list, down, j, common);
        i += up->trees[i].weight.num == 0;
        j += down->trees[j].weight.num == 0;
    }
    return 0;
}
