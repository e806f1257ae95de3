/* Plans by classes: the images of their trees. See rotations.h. */
#include "control/plan/rotations.h"

#include <stdlib.h>
#include <string.h>

#include "control/base/alloc.h"
#include "control/base/problem.h"
#include "control/plan/plan.h"
#include "offload/base/errors.h"

/* Edges of an expanded plan (count): 800 MB. */
#define EDGES_MAX ((uint64_t)200000000)
/* Edges that a tree counts as, if it has fewer (count). */
#define EDGES_MEAN 8u

static const struct by_place nowhere = {0, 0};

void by_rotations_free(struct by_rotations *rotations)
{
    if (!rotations)
        return;
    for (uint32_t i = 0; i < rotations->count; i++)
        free(rotations->list[i].next);
    free(rotations);
}

uint64_t by_rotations_images(const struct by_rotations *rotations)
{
    uint64_t images = 1;

    for (uint32_t i = 0; rotations && i < rotations->count; i++)
        images *= rotations->list[i].order;
    return images;
}

/* The number of edges of all images of the trees of a plan. */
static uint64_t count_edges(const struct by_plan *plan)
{
    uint64_t edges = 0;

    for (uint32_t i = 0; i < plan->tree_count; i++)
        edges += plan->trees[i].edge_count;
    return edges * by_rotations_images(plan->rotations);
}

uint32_t *by_rotations_orbits(const struct by_rotations *rotations)
{
    uint32_t n = rotations->node_count, *orbit = by_alloc(n, sizeof(*orbit)),
             *stack = by_alloc(n, sizeof(*stack));

    for (uint32_t i = 0; i < n; i++)
        orbit[i] = UINT32_MAX;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t depth = 0;

        if (orbit[i] != UINT32_MAX)
            continue;
        orbit[stack[depth++] = i] = i;
        while (depth > 0) {
            uint32_t node = stack[--depth];

            for (uint32_t r = 0; r < rotations->count; r++) {
                uint32_t to = rotations->list[r].next[node];

                if (orbit[to] == UINT32_MAX)
                    orbit[stack[depth++] = to] = i;
            }
        }
    }
    free(stack);
    return orbit;
}

/* Permutations of the paths of a plan. */
struct moves {
    uint32_t count, room;
    uint32_t *next[BY_ROTATIONS_MAX]; /* by path: where each rotation moves it */
};

/* Adds the images of all paths to the table, and notes where each moves to. */
static void move_paths(struct by_plan *plan, struct moves *moves)
{
    const struct by_rotations *rotations = plan->rotations;
    uint32_t room = 0, *nodes = NULL;

    for (uint32_t path = 0; path < plan->paths.count; path++) {
        if (path == moves->room) {
            moves->room = 2 * plan->paths.count;
            for (uint32_t r = 0; r < rotations->count; r++)
                moves->next[r] = by_realloc(moves->next[r], moves->room, sizeof(*moves->next[r]));
        }
        for (uint32_t r = 0; r < rotations->count; r++) {
            struct by_path old = by_paths_get(&plan->paths, path);

            if (old.node_count > room)
                nodes = by_realloc(nodes, room = old.node_count, sizeof(*nodes));
            for (uint32_t i = 0; i < old.node_count; i++)
                nodes[i] = rotations->list[r].next[old.nodes[i]];
            moves->next[r][path] = by_paths_add(&plan->paths, nodes, old.node_count);
        }
    }
    free(nodes);
}

/* Applies a rotation's `next` to each of `to`. */
static void step(uint32_t *to, const uint32_t *next, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        to[i] = next[to[i]];
}

/* A tree of the result, and where it comes from. */
struct rotations_image {
    struct by_tree tree;
    uint32_t original;
};

static int compare_images(const void *a, const void *b)
{
    const struct rotations_image *x = a, *y = b;

    if (x->tree.root != y->tree.root)
        return x->tree.root < y->tree.root ? -1 : 1;
    return x->original < y->original ? -1 : x->original > y->original;
}

/* The images of all trees under all products. */
struct expansion {
    struct by_plan *plan;
    const struct moves *moves;
    size_t edge_count;
    uint32_t *edges;
    uint32_t count;
    struct rotations_image *images;
};

/* Adds the images of one tree under all products of powers: like an odometer, the last rotation
 * fastest. */
static void add_images(struct expansion *expansion, uint32_t number)
{
    const struct by_rotations *rotations = expansion->plan->rotations;
    const struct by_tree *from = &expansion->plan->trees[number];
    uint32_t turned[BY_ROTATIONS_MAX] = {0}, count = from->edge_count, root = from->root, r;
    uint32_t *paths = by_alloc(count, sizeof(*paths));

    if (count > 0)
        memcpy(paths, expansion->plan->edges + from->first_edge, count * sizeof(*paths));
    do {
        struct rotations_image *image = &expansion->images[expansion->count++];

        *image = (struct rotations_image){*from, number};
        image->tree.root = root;
        image->tree.first_edge = expansion->edge_count;
        if (count > 0)
            memcpy(expansion->edges + expansion->edge_count, paths, count * sizeof(*paths));
        expansion->edge_count += count;
        for (r = rotations->count; r-- > 0;) {
            root = rotations->list[r].next[root];
            step(paths, expansion->moves->next[r], count);
            if (++turned[r] < rotations->list[r].order)
                break;
            turned[r] = 0; /* it is back where it began */
        }
    } while (r != UINT32_MAX);
    free(paths);
}

/* Replaces the trees of a plan, and removes its rotations. */
static void replace(struct by_plan *plan, const struct rotations_image *images, uint32_t count,
                    uint32_t *edges, size_t edge_count)
{
    free(plan->trees);
    free(plan->edges);
    plan->trees = by_alloc(count, sizeof(*plan->trees));
    for (uint32_t i = 0; i < count; i++)
        plan->trees[i] = images[i].tree;
    plan->tree_count = count;
    plan->edges = edges;
    plan->edge_count = edge_count;
    by_rotations_free(plan->rotations);
    plan->rotations = NULL;
}

int by_rotations_expand(struct by_plan *plan, struct by_problem *problem)
{
    uint64_t edges = count_edges(plan), count = by_rotations_images(plan->rotations) * plan->tree_count;
    struct moves moves = {0};
    struct expansion expansion = {.plan = plan, .moves = &moves};

    if (!plan->rotations)
        return 0;
    if (edges > EDGES_MAX || count > EDGES_MAX / EDGES_MEAN)
        return by_problem_set(problem, BY_ELIMIT, nowhere,
                              "the plan is by classes, and all its %llu trees have %llu edges; the limit is "
                              "%llu: `banyan export --format plan --root NODE` writes those of one root",
                              (unsigned long long)count, (unsigned long long)edges,
                              (unsigned long long)EDGES_MAX);
    expansion.edges = by_alloc_table(edges, sizeof(*expansion.edges));
    expansion.images = by_alloc(count, sizeof(*expansion.images));
    move_paths(plan, &moves);
    for (uint32_t i = 0; i < plan->tree_count; i++)
        add_images(&expansion, i);
    for (uint32_t r = 0; r < BY_ROTATIONS_MAX; r++)
        free(moves.next[r]);
    qsort(expansion.images, expansion.count, sizeof(*expansion.images), compare_images);
    replace(plan, expansion.images, expansion.count, expansion.edges, expansion.edge_count);
    free(expansion.images);
    return 0;
}

/* Finds the powers of the rotations that move `from` to `to`. */
static bool find_powers(const struct by_rotations *rotations, uint32_t from, uint32_t to, uint32_t *powers)
{
    uint32_t r;

    memset(powers, 0, BY_ROTATIONS_MAX * sizeof(*powers));
    do {
        if (from == to)
            return true;
        for (r = rotations->count; r-- > 0;) {
            from = rotations->list[r].next[from];
            if (++powers[r] < rotations->list[r].order)
                break;
            powers[r] = 0;
        }
    } while (r != UINT32_MAX);
    return false;
}

/* The permutation that consists of these powers, by squaring. */
static uint32_t *compose(const struct by_rotations *rotations, const uint32_t *powers)
{
    uint32_t n = rotations->node_count, *all = by_alloc(n, sizeof(*all)),
             *square = by_alloc(n, sizeof(*square)), *twice = by_alloc(n, sizeof(*twice));

    for (uint32_t i = 0; i < n; i++)
        all[i] = i;
    for (uint32_t r = 0; r < rotations->count; r++) {
        memcpy(square, rotations->list[r].next, n * sizeof(*square));
        for (uint32_t power = powers[r]; power > 0; power >>= 1) {
            if (power & 1)
                step(all, square, n);
            for (uint32_t i = 0; i < n; i++)
                twice[i] = square[square[i]];
            memcpy(square, twice, n * sizeof(*square));
        }
    }
    free(square);
    free(twice);
    return all;
}

int by_rotations_at_root(struct by_plan *plan, uint32_t node_count, uint32_t root, struct by_problem *problem)
{
    const struct by_rotations none = {.node_count = node_count};
    const struct by_rotations *rotations = plan->rotations ? plan->rotations : &none;
    struct by_paths paths = {0};
    struct rotations_image *images = by_alloc(plan->tree_count, sizeof(*images));
    uint32_t *edges = by_alloc(plan->edge_count, sizeof(*edges)), count = 0, powers[BY_ROTATIONS_MAX];
    size_t edge_count = 0;

    for (uint32_t i = 0; i < plan->tree_count; i++) {
        const struct by_tree *tree = &plan->trees[i];
        uint32_t *moved, *nodes;

        if (!find_powers(rotations, tree->root, root, powers))
            continue;
        moved = compose(rotations, powers);
        nodes = by_alloc(node_count, sizeof(*nodes));
        images[count] = (struct rotations_image){*tree, i};
        images[count].tree.root = root;
        images[count++].tree.first_edge = edge_count;
        for (uint32_t j = 0; j < tree->edge_count; j++) {
            struct by_path path = by_plan_edge(plan, tree, j);

            for (uint32_t k = 0; k < path.node_count; k++)
                nodes[k] = moved[path.nodes[k]];
            edges[edge_count++] = by_paths_add(&paths, nodes, path.node_count);
        }
        free(moved);
        free(nodes);
    }
    if (count > 0) {
        by_paths_free(&plan->paths);
        plan->paths = paths;
        replace(plan, images, count, edges, edge_count);
    } else {
        free(edges);
    }
    free(images);
    return count > 0 ? 0
                     : by_problem_set(problem, BY_EINVAL, nowhere,
                                      "no tree of the plan is rooted there: name a compute node");
}
