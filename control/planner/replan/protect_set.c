/*
 * Sets of trees that avoid a failure. See protect_work.h. Weights are brought to one denominator,
 * so that loads are integers.
 */
#include "control/planner/replan/protect_work.h"

#include "control/base/alloc.h"
#include "control/base/fraction.h"
#include "control/plan/merge.h"
#include "offload/base/errors.h"
#include "offload/base/prng.h"
#include "offload/wire/types.h"

/* The largest common denominator of the weights of a set. */
#define DENOMINATOR_MAX ((int64_t)1 << 40)

void by_protect_set_free(struct by_protect_set *set)
{
    free(set->parts);
    *set = (struct by_protect_set){.rate = {0, 1}};
}

/* ---- the list of trees ---- */

/* The order of edges does not matter. */
static uint64_t hash_unit(const struct by_tree *trees, uint32_t width, const uint32_t *edges)
{
    uint64_t hash = width;

    for (uint32_t i = 0; i < width; i++) {
        hash += by_prng_mix((uint64_t)trees[i].root << 3 | trees[i].use) + i;
        for (uint32_t e = 0; e < trees[i].edge_count; e++)
            hash += by_prng_mix((uint64_t)edges[trees[i].first_edge + e] << 32 | (i + 1));
    }
    return hash;
}

static int compare_numbers(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return x < y ? -1 : x > y;
}

static bool same_edges(const uint32_t *a, const uint32_t *b, uint32_t count)
{
    uint32_t *both = by_alloc(2 * (size_t)count, sizeof(*both));
    bool same;

    if (count > 0) {
        memcpy(both, a, count * sizeof(*both));
        memcpy(both + count, b, count * sizeof(*both));
        qsort(both, count, sizeof(*both), compare_numbers);
        qsort(both + count, count, sizeof(*both), compare_numbers);
    }
    same = count == 0 || memcmp(both, both + count, count * sizeof(*both)) == 0;
    free(both);
    return same;
}

static bool is_unit(const struct by_protect *protect, uint32_t unit, const struct by_tree *trees,
                    uint32_t width, const uint32_t *edges)
{
    const struct by_protect_unit *known = &protect->units[unit];
    bool same = known->width == width;

    for (uint32_t i = 0; i < width && same; i++) {
        const struct by_tree *tree = &protect->trees.trees[known->first + i];

        same = tree->root == trees[i].root && tree->use == trees[i].use &&
               tree->edge_count == trees[i].edge_count &&
               same_edges(protect->trees.edges + tree->first_edge, edges + trees[i].first_edge,
                          tree->edge_count);
    }
    return same;
}

static void enter(struct by_protect *protect, uint32_t unit)
{
    uint32_t mask = protect->slot_count - 1, at = (uint32_t)protect->units[unit].hash & mask;

    while (protect->slots[at])
        at = (at + 1) & mask;
    protect->slots[at] = unit + 1;
}

/* Grows the hash table to at least twice the units. */
static void spread(struct by_protect *protect)
{
    protect->slot_count = protect->slot_count ? 2 * protect->slot_count : 256;
    free(protect->slots);
    protect->slots = by_alloc(protect->slot_count, sizeof(*protect->slots));
    for (uint32_t i = 0; i < protect->unit_count; i++)
        enter(protect, i);
}

/* Returns the unit, or UINT32_MAX if it is not in the list. */
static uint32_t find_unit(const struct by_protect *protect, const struct by_tree *trees, uint32_t width,
                          const uint32_t *edges, uint64_t hash)
{
    for (uint32_t at = (uint32_t)hash; protect->slot_count > 0; at++) {
        uint32_t found = protect->slots[at & (protect->slot_count - 1)];

        if (found == 0)
            break;
        if (protect->units[found - 1].hash == hash && is_unit(protect, found - 1, trees, width, edges))
            return found - 1;
    }
    return UINT32_MAX;
}

static uint32_t add_unit(struct by_protect *protect, const struct by_tree *trees, uint32_t width,
                         const uint32_t *edges, uint64_t hash)
{
    BY_GROW(protect->units, protect->unit_count, protect->unit_room);
    protect->units[protect->unit_count] =
        (struct by_protect_unit){.first = protect->trees.count, .width = width, .hash = hash};
    for (uint32_t i = 0; i < width; i++)
        by_tree_list_append(&protect->trees, trees[i].root, trees[i].use, trees[i].weight,
                            edges + trees[i].first_edge, trees[i].edge_count);
    protect->unit_count++;
    if (2 * protect->unit_count > protect->slot_count)
        spread(protect);
    else
        enter(protect, protect->unit_count - 1);
    return protect->unit_count - 1;
}

/* Adds a weight to the part of this unit, or a part. `place` is by unit: its part + 1. */
static int add_part(struct by_protect_set *set, uint32_t *place, uint32_t unit, struct by_fraction weight)
{
    if (place[unit] > 0)
        return by_fraction_add(set->parts[place[unit] - 1].weight, weight,
                               &set->parts[place[unit] - 1].weight);
    set->parts[set->count++] = (struct by_protect_part){unit, weight};
    place[unit] = set->count;
    return 0;
}

/* Writes, by edge of the plan, the number of its path in the list. */
static uint32_t *map_edges(struct by_protect *protect, const struct by_plan *plan, const uint32_t *number)
{
    uint32_t *path_of = by_alloc(plan->paths.count, sizeof(*path_of));
    uint32_t *edges = by_alloc(plan->edge_count, sizeof(*edges)), room = 0, *nodes = NULL;

    for (uint32_t p = 0; p < plan->paths.count; p++) {
        struct by_path path = by_paths_get(&plan->paths, p);

        if (path.node_count > room) {
            room = 2 * path.node_count;
            nodes = by_realloc(nodes, room, sizeof(*nodes));
        }
        for (uint32_t i = 0; i < path.node_count; i++)
            nodes[i] = number ? number[path.nodes[i]] : path.nodes[i];
        path_of[p] = by_paths_add(&protect->trees.paths, nodes, path.node_count);
    }
    for (uint32_t t = 0; t < plan->tree_count; t++) { /* plan->edges may hold numbers of no tree */
        const struct by_tree *tree = &plan->trees[t];

        for (size_t e = tree->first_edge; e < tree->first_edge + tree->edge_count; e++)
            edges[e] = path_of[plan->edges[e]];
    }
    free(nodes);
    free(path_of);
    return edges;
}

int by_protect_add(struct by_protect *protect, const struct by_plan *plan, const uint32_t *number,
                   struct by_protect_set *set)
{
    uint32_t width = by_plan_is_pairs(plan) ? 2 : 1;
    uint32_t *edges = map_edges(protect, plan, number);
    uint32_t *place = by_alloc(protect->unit_count + plan->tree_count, sizeof(*place));
    int error = 0;

    *set = (struct by_protect_set){.rate = plan->achieved};
    set->parts = by_alloc(plan->tree_count, sizeof(*set->parts));
    for (uint32_t t = 0; t + width <= plan->tree_count && !error; t += width) {
        struct by_tree trees[2];
        uint64_t hash;
        uint32_t unit;

        for (uint32_t i = 0; i < width; i++) {
            trees[i] = plan->trees[t + i];
            trees[i].root = number ? number[trees[i].root] : trees[i].root;
        }
        hash = hash_unit(trees, width, edges);
        unit = find_unit(protect, trees, width, edges, hash);
        if (unit == UINT32_MAX)
            unit = add_unit(protect, trees, width, edges, hash);
        error = add_part(set, place, unit, trees[0].weight);
    }
    free(place);
    free(edges);
    return error;
}

uint32_t by_protect_new(const struct by_protect *protect, const struct by_protect_set *set)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < set->count; i++)
        count += set->parts[i].unit >= protect->own_units && protect->units[set->parts[i].unit].users == 0;
    return count;
}

/* ---- what avoids a failure ---- */

/* The directions of the data of a tree along its edges. */
static bool goes_up(const struct by_protect *protect, const struct by_tree *tree)
{
    return by_collective_way(protect->options->collective) != BY_DATA_DOWN && tree->use != BY_TREE_DOWN;
}

static bool goes_down(const struct by_protect *protect, const struct by_tree *tree)
{
    return by_collective_way(protect->options->collective) != BY_DATA_UP && tree->use != BY_TREE_UP;
}

static bool has_way(const struct by_protect *protect, const struct by_protect_left *left,
                    const struct by_tree *tree)
{
    const struct by_mesh *net = left->graph->net;

    if (left->number[tree->root] == UINT32_MAX)
        return false;
    for (uint32_t e = 0; e < tree->edge_count; e++) {
        struct by_path path = by_paths_get(&protect->trees.paths, protect->trees.edges[tree->first_edge + e]);

        for (uint32_t i = 1; i < path.node_count; i++) {
            uint32_t a = left->number[path.nodes[i - 1]], b = left->number[path.nodes[i]];
            uint32_t half = a == UINT32_MAX || b == UINT32_MAX ? UINT32_MAX : by_mesh_find(net, a, b);

            if (half == UINT32_MAX || (goes_down(protect, tree) && net->capacity[half] == 0) ||
                (goes_up(protect, tree) && net->capacity[half ^ 1] == 0))
                return false;
        }
    }
    return true;
}

static bool avoids(const struct by_protect *protect, struct by_protect_left *left, uint32_t unit)
{
    const struct by_protect_unit *known = &protect->units[unit];

    if (left->avoids[unit] == 0) {
        left->avoids[unit] = 1;
        for (uint32_t i = 0; i < known->width; i++)
            if (!has_way(protect, left, &protect->trees.trees[known->first + i]))
                left->avoids[unit] = -1;
    }
    return left->avoids[unit] > 0;
}

/* Returns the root whose share of the data the unit carries, or 0 where any root will do. */
static uint32_t owner(const struct by_protect *protect, uint32_t unit)
{
    return by_collective_is_sharded(protect->options->collective)
               ? protect->trees.trees[protect->units[unit].first].root
               : 0;
}

/* Adds up the weights of a set by owner. */
static bool sum_owners(const struct by_protect *protect, const struct by_protect_set *set,
                       struct by_fraction *sums)
{
    bool right = true;

    for (uint32_t i = 0; i < protect->topology->node_count; i++)
        sums[i] = (struct by_fraction){0, 1};
    for (uint32_t i = 0; i < set->count && right; i++) {
        struct by_fraction *sum = &sums[owner(protect, set->parts[i].unit)];

        right = by_fraction_add(*sum, set->parts[i].weight, sum) == 0;
    }
    return right;
}

/* Scales the weights of each root to those of the plan. False if a root has no tree left. */
static bool level_roots(const struct by_protect *protect, struct by_protect_set *set)
{
    uint32_t n = protect->topology->node_count;
    struct by_fraction *plan = by_alloc(n, sizeof(*plan)), *now = by_alloc(n, sizeof(*now));
    bool right = sum_owners(protect, &protect->own, plan) && sum_owners(protect, set, now);

    for (uint32_t i = 0; i < n && right; i++) {
        if (plan[i].num == 0)
            continue;
        right = now[i].num > 0 && by_fraction_divide(plan[i], now[i], &now[i]) == 0;
    }
    for (uint32_t i = 0; i < set->count && right; i++)
        right = by_fraction_multiply(set->parts[i].weight, now[owner(protect, set->parts[i].unit)],
                                     &set->parts[i].weight) == 0;
    free(plan);
    free(now);
    return right;
}

/* Loads of a set on the fabric that remains, in `1 / denominator` of the unit of capacity. */
struct protect_loads {
    int64_t denominator;
    __int128 *halves;    /* by half of the net */
    __int128 *additions; /* by node: of trees that carry up */
    uint32_t *children;  /* by node, zero before and after each tree */
};

static void load_tree(const struct by_protect *protect, const struct by_protect_left *left,
                      const struct by_tree *tree, int64_t amount, struct protect_loads *loads)
{
    const struct by_tree_list *list = &protect->trees;
    bool up = goes_up(protect, tree), down = goes_down(protect, tree);

    for (uint32_t e = 0; e < tree->edge_count; e++) {
        struct by_path path = by_paths_get(&list->paths, list->edges[tree->first_edge + e]);

        loads->children[left->number[path.nodes[0]]]++;
        for (uint32_t i = 1; i < path.node_count; i++) {
            uint32_t half =
                by_mesh_find(left->graph->net, left->number[path.nodes[i - 1]], left->number[path.nodes[i]]);

            loads->halves[half] += down ? amount : 0;
            loads->halves[half ^ 1] += up ? amount : 0;
        }
    }
    for (uint32_t e = 0; e < tree->edge_count; e++) {
        uint32_t node = left->number[by_paths_from(&list->paths, list->edges[tree->first_edge + e])];

        if (up && loads->children[node] > 1)
            loads->additions[node] += (__int128)amount * (loads->children[node] - 1);
        loads->children[node] = 0;
    }
}

/* Finds the least common denominator of the weights in units of capacity. */
static bool find_denominator(const struct by_protect_set *set, struct by_fraction unit, int64_t *denominator)
{
    *denominator = 1;
    for (uint32_t i = 0; i < set->count; i++) {
        struct by_fraction weight;
        int64_t factor;

        if (by_fraction_divide(set->parts[i].weight, unit, &weight) != 0)
            return false;
        factor = weight.den / by_gcd(*denominator, weight.den);
        if (factor > DENOMINATOR_MAX / *denominator)
            return false;
        *denominator *= factor;
    }
    return true;
}

/* Lowers `*factor` to limit x denominator / load, if there is a load. */
static bool fit(struct by_fraction limit, int64_t denominator, __int128 load, struct by_fraction *factor)
{
    struct by_fraction most;

    if (load == 0)
        return true;
    if (load > INT64_MAX || by_fraction_multiply(limit, (struct by_fraction){denominator, 1}, &most) != 0 ||
        by_fraction_divide(most, (struct by_fraction){(int64_t)load, 1}, &most) != 0)
        return false;
    if (factor->num == 0 || by_fraction_compare(most, *factor) < 0)
        *factor = most;
    return true;
}

/* Finds the factor by which all weights of the set can be multiplied. */
static bool find_factor(const struct by_protect *protect, const struct by_protect_left *left,
                        const struct by_protect_set *set, struct by_fraction *factor)
{
    const struct by_graph *graph = left->graph;
    uint32_t halves = 2 * graph->net->pair_count, n = graph->node_count;
    struct protect_loads loads = {0};
    bool right = find_denominator(set, graph->unit, &loads.denominator);

    loads.halves = by_alloc(halves, sizeof(*loads.halves));
    loads.additions = by_alloc(n, sizeof(*loads.additions));
    loads.children = by_alloc(n, sizeof(*loads.children));
    *factor = (struct by_fraction){0, 1};
    for (uint32_t i = 0; i < set->count && right; i++) {
        const struct by_protect_unit *unit = &protect->units[set->parts[i].unit];
        struct by_fraction weight;

        right = by_fraction_divide(set->parts[i].weight, graph->unit, &weight) == 0 &&
                !__builtin_mul_overflow(weight.num, loads.denominator / weight.den, &weight.num);
        for (uint32_t j = 0; j < unit->width && right; j++)
            load_tree(protect, left, &protect->trees.trees[unit->first + j], weight.num, &loads);
    }
    for (uint32_t h = 0; h < halves && right; h++)
        right =
            fit((struct by_fraction){graph->net->capacity[h], 1}, loads.denominator, loads.halves[h], factor);
    for (uint32_t i = 0; i < n && right; i++) {
        struct by_fraction limit = left->topology->nodes[i].aggregate_rate;

        if (limit.num > 0 && loads.additions[i] > 0)
            right = by_fraction_divide(limit, graph->unit, &limit) == 0 &&
                    fit(limit, loads.denominator, loads.additions[i], factor);
    }
    free(loads.halves);
    free(loads.additions);
    free(loads.children);
    return right && factor->num > 0;
}

/* Gives the trees of a set, all of which avoid the failure, the greatest weights that fit in their
 * proportions. Frees the set and returns false if there are none. */
static bool fill(const struct by_protect *protect, const struct by_protect_left *left,
                 struct by_protect_set *set)
{
    struct by_fraction factor;
    bool right = set->count > 0 && level_roots(protect, set) && find_factor(protect, left, set, &factor);

    for (uint32_t i = 0; i < set->count && right; i++)
        right = by_fraction_multiply(set->parts[i].weight, factor, &set->parts[i].weight) == 0 &&
                by_fraction_add(set->rate, set->parts[i].weight, &set->rate) == 0;
    if (!right)
        by_protect_set_free(set);
    return right;
}

bool by_protect_rest(const struct by_protect *protect, struct by_protect_left *left,
                     const struct by_protect_set *from, struct by_protect_set *set)
{
    *set = (struct by_protect_set){.rate = {0, 1}};
    set->parts = by_alloc(from->count, sizeof(*set->parts));
    for (uint32_t i = 0; i < from->count; i++)
        if (avoids(protect, left, from->parts[i].unit))
            set->parts[set->count++] = from->parts[i];
    return fill(protect, left, set);
}

bool by_protect_patch(const struct by_protect *protect, struct by_protect_left *left,
                      const struct by_protect_set *more, struct by_protect_set *set)
{
    enum { NONE, BY_PLAN, BY_SETS, BY_MORE };
    uint8_t *source = by_alloc(protect->topology->node_count, sizeof(*source));
    uint32_t more_count = more ? more->count : 0;

    *set = (struct by_protect_set){.rate = {0, 1}};
    set->parts = by_alloc((size_t)protect->unit_count + more_count, sizeof(*set->parts));
    for (uint32_t i = 0; i < protect->own.count; i++)
        if (avoids(protect, left, protect->own.parts[i].unit)) {
            set->parts[set->count++] = protect->own.parts[i];
            source[owner(protect, protect->own.parts[i].unit)] = BY_PLAN;
        }
    for (uint32_t i = protect->own_units; i < protect->unit_count; i++) {
        uint8_t *from = &source[owner(protect, i)];

        if (protect->units[i].users == 0 || (*from != NONE && *from != BY_SETS) || !avoids(protect, left, i))
            continue;
        set->parts[set->count++] =
            (struct by_protect_part){i, protect->trees.trees[protect->units[i].first].weight};
        *from = BY_SETS;
    }
    for (uint32_t i = 0; i < more_count; i++) {
        uint8_t *from = &source[owner(protect, more->parts[i].unit)];

        if (*from != NONE && *from != BY_MORE)
            continue;
        set->parts[set->count++] = more->parts[i];
        *from = BY_MORE;
    }
    free(source);
    return fill(protect, left, set);
}
