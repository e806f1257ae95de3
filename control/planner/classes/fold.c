/* Loads of trees by classes, and rotations that leave them as they are. See fold.h. */
#include "control/planner/classes/fold.h"

#include <stdlib.h>
#include <string.h>

#include "control/base/alloc.h"
#include "control/base/fraction.h"
#include "control/planner/classes/class_trees.h"
#include "offload/base/errors.h"

/* Adds the links of a tree, `times` each, to those of the representatives. */
static int add_loads(const struct by_tree_list *list, const struct by_tree *tree,
                     const struct by_routes *routes, int64_t times, int64_t *load)
{
    const struct by_symmetry *symmetry = routes->symmetry;
    const struct by_mesh *net = routes->graph->net;

    for (uint32_t i = 0; i < tree->edge_count; i++) {
        struct by_path path = by_paths_get(&list->paths, list->edges[tree->first_edge + i]);

        for (uint32_t j = 1; j < path.node_count; j++) {
            uint32_t half = by_mesh_find(net, symmetry->of[path.nodes[j - 1]], symmetry->of[path.nodes[j]]);

            if (__builtin_add_overflow(load[half], times, &load[half]) ||
                __builtin_add_overflow(load[half ^ 1], times, &load[half ^ 1]))
                return BY_ERANGE;
        }
    }
    return 0;
}

int by_fold_weight(const struct by_tree_list *list, const struct by_routes *routes, int64_t k,
                   struct by_fraction *weight)
{
    const struct by_mesh *net = routes->graph->net;
    int64_t *load = by_alloc(2 * (size_t)net->pair_count, sizeof(*load));
    int error = 0;

    *weight = (struct by_fraction){0, 1};
    for (uint32_t i = 0; i < list->count && !error; i++)
        error = add_loads(list, &list->trees[i], routes,
                          list->trees[i].weight.num * (k / list->trees[i].weight.den), load);
    for (uint32_t half = 0; half < 2 * net->pair_count && !error; half++) {
        struct by_fraction most;

        if (load[half] == 0)
            continue;
        error = by_fraction_set((__int128)net->capacity[half] * k,
                                (__int128)load[half] * routes->factor[half], &most);
        if (!error && (weight->num == 0 || by_fraction_compare(most, *weight) < 0))
            *weight = most;
    }
    free(load);
    return error;
}

/* The switch of a tree that joins parts and is moved by the fewest levels; the root if there is
 * none. */
static uint32_t find_join(const struct by_tree_list *list, const struct by_tree *tree,
                          const struct by_routes *routes)
{
    uint32_t best = tree->root, fewest = UINT32_MAX;

    for (uint32_t i = 0; i < tree->edge_count; i++) {
        uint32_t node = by_paths_to(&list->paths, list->edges[tree->first_edge + i]);
        uint32_t levels = (uint32_t)__builtin_popcount(routes->symmetry->moved[node]);

        if (levels < fewest && by_class_trees_join(routes->graph, node)) {
            best = node;
            fewest = levels;
        }
    }
    return best;
}

/* Work space of rooting a tree anew. */
struct rooting {
    uint32_t *first, *next; /* lists of edges: by node, and by 2 * edge + end */
    uint32_t *queue, *edges;
    bool *seen;
    uint32_t *nodes;
};

/* Lists the edges of a tree from another root outwards: edges towards it are turned around. */
static void root_at(struct by_tree_list *list, struct by_tree *tree, uint32_t root, uint32_t node_count,
                    struct rooting *work)
{
    uint32_t *edges = list->edges + tree->first_edge, head = 0, tail = 0, done = 0;

    memset(work->first, 0xff, node_count * sizeof(*work->first));
    memset(work->seen, 0, node_count * sizeof(*work->seen));
    for (uint32_t i = tree->edge_count; i-- > 0;)
        for (uint32_t end = 0; end < 2; end++) {
            uint32_t node = end ? by_paths_to(&list->paths, edges[i]) : by_paths_from(&list->paths, edges[i]);

            work->next[2 * i + end] = work->first[node];
            work->first[node] = 2 * i + end;
        }
    work->seen[work->queue[tail++] = root] = true;
    while (head < tail) {
        uint32_t node = work->queue[head++];

        for (uint32_t at = work->first[node]; at != UINT32_MAX; at = work->next[at]) {
            struct by_path path = by_paths_get(&list->paths, edges[at / 2]);
            uint32_t other = at % 2 ? path.nodes[0] : path.nodes[path.node_count - 1];

            if (work->seen[other])
                continue;
            work->seen[work->queue[tail++] = other] = true;
            for (uint32_t i = 0; i < path.node_count; i++)
                work->nodes[i] = path.nodes[at % 2 ? path.node_count - 1 - i : i];
            work->edges[done++] = by_paths_add(&list->paths, work->nodes, path.node_count);
        }
    }
    memcpy(edges, work->edges, done * sizeof(*edges));
    tree->root = root;
}

/* Whether a rotation leaves a tree as it is. `above` is by node, for the path to it. */
static bool stays(const struct by_tree_list *list, const struct by_tree *tree, const uint32_t *next,
                  uint32_t *above, uint32_t *nodes)
{
    if (next[tree->root] != tree->root)
        return false;
    for (uint32_t i = 0; i < tree->edge_count; i++)
        above[by_paths_to(&list->paths, list->edges[tree->first_edge + i])] =
            list->edges[tree->first_edge + i];
    for (uint32_t i = 0; i < tree->edge_count; i++) {
        struct by_path path = by_paths_get(&list->paths, list->edges[tree->first_edge + i]);
        uint32_t at = above[next[path.nodes[path.node_count - 1]]];

        for (uint32_t j = 0; j < path.node_count; j++)
            nodes[j] = next[path.nodes[j]];
        if (at == UINT32_MAX || !by_paths_are(&list->paths, at, nodes, path.node_count))
            return false;
    }
    return true;
}

/* Removes the rotations that leave every tree as it is. */
static int64_t remove_rotations(const struct by_tree_list *list, struct by_rotations *rotations)
{
    uint32_t n = rotations->node_count, *above = by_alloc(n, sizeof(*above)), kept = 0;
    uint32_t *nodes = by_alloc(n, sizeof(*nodes));
    int64_t factor = 1;

    for (uint32_t r = 0; r < rotations->count; r++) {
        struct by_rotation rotation = rotations->list[r];
        bool all = true;

        for (uint32_t i = 0; i < list->count && all; i++) {
            memset(above, 0xff, n * sizeof(*above));
            all = stays(list, &list->trees[i], rotation.next, above, nodes);
        }
        if (all) {
            factor *= rotation.order;
            free(rotation.next);
        } else {
            rotations->list[kept++] = rotation;
        }
    }
    rotations->count = kept;
    free(above);
    free(nodes);
    return factor;
}

int64_t by_fold_trees(struct by_tree_list *list, const struct by_routes *routes,
                      struct by_rotations *rotations)
{
    uint32_t n = rotations->node_count;
    struct rooting work;

    work.first = by_alloc(n, sizeof(*work.first));
    work.next = by_alloc(2 * (size_t)n, sizeof(*work.next));
    work.queue = by_alloc(n, sizeof(*work.queue));
    work.edges = by_alloc(n, sizeof(*work.edges));
    work.seen = by_alloc(n, sizeof(*work.seen));
    work.nodes = by_alloc(n, sizeof(*work.nodes));
    for (uint32_t i = 0; i < list->count; i++)
        root_at(list, &list->trees[i], find_join(list, &list->trees[i], routes), n, &work);
    free(work.first);
    free(work.next);
    free(work.queue);
    free(work.edges);
    free(work.seen);
    free(work.nodes);
    return remove_rotations(list, rotations);
}
