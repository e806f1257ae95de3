/* Grows the trees of a plan by classes. See class_trees.h. */
#include "control/planner/classes/class_trees.h"

#include <stdlib.h>
#include <string.h>

#include "control/base/alloc.h"
#include "offload/base/errors.h"

/* Children of a node at one level (count). More would make the tree lower, but each child takes
 * room in tables. */
#define CHILDREN_MAX 512u
/* Edges of all trees of a plan by classes (count). */
#define EDGES_MAX ((size_t)1 << 25)

void by_class_trees_init(struct by_class_trees *grower, const struct by_routes *routes,
                         const struct by_inner *inner, enum by_tree_use use, bool branching,
                         struct by_tree_list *list)
{
    uint32_t n = routes->graph->node_count;

    *grower = (struct by_class_trees){
        .routes = routes, .inner = inner, .use = use, .branching = branching, .list = list};
    grower->edges = by_alloc(n, sizeof(*grower->edges));
    grower->reached = by_alloc(n, sizeof(*grower->reached));
    grower->nodes = by_alloc(n + 2 * BY_ROUTE_HOPS_MAX, sizeof(*grower->nodes));
    grower->part = by_alloc(n, sizeof(*grower->part));
}

void by_class_trees_free(struct by_class_trees *grower)
{
    free(grower->edges);
    free(grower->reached);
    free(grower->nodes);
    free(grower->part);
}

bool by_class_trees_join(const struct by_graph *graph, uint32_t node)
{
    const struct by_node *kind = &graph->topology->nodes[node];

    return !kind->compute && kind->multicast && kind->aggregate && kind->aggregate_rate.num == 0;
}

static const struct by_route_list *list_of(const struct by_class_trees *grower, uint32_t level)
{
    return &grower->routes->lists[level * grower->routes->rank_count + grower->rank];
}

/* Lists which route each edge of level turn[number] takes, in turn. */
static void list_choices(struct by_class_trees *grower, uint32_t number)
{
    uint32_t level = grower->routes->turn[number];
    const struct by_route_list *list = list_of(grower, level);
    uint64_t count = grower->routes->copies * by_routes_edges(grower->routes, number), at = 0;
    uint64_t *left = by_alloc(list->count, sizeof(*left));

    for (uint32_t i = 0; i < list->count; i++)
        left[i] = list->routes[i].edges;
    grower->choice[level] = by_alloc(count, sizeof(*grower->choice[level]));
    while (at < count)
        for (uint32_t i = 0; i < list->count; i++)
            if (left[i] > 0) {
                left[i]--;
                grower->choice[level][at++] = i;
            }
    free(left);
}

static void add_edge(struct by_class_trees *grower, const uint32_t *nodes, uint32_t count)
{
    grower->edges[grower->edge_count++] = by_paths_add(&grower->list->paths, nodes, count);
    grower->reached[nodes[count - 1]] = true;
}

/* Connects the last of `count` nodes of a path that begins in the tree: from the last of them that
 * is in the tree already, by way of the switches that may branch. */
static void connect_last(struct by_class_trees *grower, const uint32_t *nodes, uint32_t count)
{
    uint32_t start = 0;

    if (!grower->branching) {
        add_edge(grower, nodes, count);
        return;
    }
    for (uint32_t i = 1; i < count; i++)
        start = grower->reached[nodes[i]] ? i : start;
    for (uint32_t i = start + 1; i < count; i++)
        if (i + 1 == count || by_class_trees_join(grower->routes->graph, nodes[i])) {
            add_edge(grower, nodes + start, i + 1 - start);
            start = i;
        }
}

/* Lists the nodes of a route in part `part` of a level, and returns their number. `down`: from the
 * switch in place, without it. */
static uint32_t list_route(struct by_class_trees *grower, const struct by_route *route, uint32_t level,
                           uint32_t part, bool down, uint32_t *nodes)
{
    uint32_t count = 0;

    grower->place[level] = part;
    for (uint32_t i = 0; i < route->hops + !down; i++) {
        uint32_t at = down ? route->hops - 1 - i : i;

        nodes[count++] = by_symmetry_image(grower->routes->symmetry, route->node[at], grower->place);
    }
    grower->place[level] = 0;
    return count;
}

/* Adds the edge of a level from part `from` to part `to`, at the places of the other levels. */
static void add_between(struct by_class_trees *grower, const struct by_route *route, uint32_t level,
                        uint32_t from, uint32_t to)
{
    uint32_t count = list_route(grower, route, level, from, false, grower->nodes);

    count += list_route(grower, route, level, to, true, grower->nodes + count);
    connect_last(grower, grower->nodes, count);
}

/* Joins all parts of a level at the switch in place of a route. */
static void add_around(struct by_class_trees *grower, const struct by_route *route, uint32_t level)
{
    uint32_t count = list_route(grower, route, level, 0, false, grower->nodes);

    connect_last(grower, grower->nodes, count);
    grower->nodes[0] = grower->nodes[count - 1];
    for (uint32_t to = 1; to < grower->routes->symmetry->levels[level].order; to++) {
        count = 1 + list_route(grower, route, level, to, true, grower->nodes + 1);
        connect_last(grower, grower->nodes, count);
    }
}

/* Sets the places of the first `levels` levels in turn to number `number` of all their
 * combinations. */
static void set_places(struct by_class_trees *grower, uint32_t levels, uint64_t number)
{
    for (uint32_t i = levels; i-- > 0;) {
        uint32_t level = grower->routes->turn[i], order = grower->routes->symmetry->levels[level].order;

        grower->place[level] = (uint32_t)(number % order);
        number /= order;
    }
}

/* Adds the edges between the parts of level turn[number], in each part of the levels before it. */
static void add_level(struct by_class_trees *grower, uint32_t number, uint32_t copy)
{
    const struct by_routes *routes = grower->routes;
    uint32_t level = routes->turn[number], order = routes->symmetry->levels[level].order;
    const struct by_route_list *list = list_of(grower, level);
    uint64_t edges = by_routes_edges(routes, number);
    const uint32_t *choice = grower->choice[level] + copy * edges;
    const struct by_route *first = &list->routes[*choice];
    bool joins = grower->branching && by_class_trees_join(routes->graph, first->node[first->hops]);

    for (uint64_t outer = 0; outer < edges / (order - 1); outer++) {
        set_places(grower, number, outer);
        if (joins) /* the same route everywhere keeps the tree symmetric */
            add_around(grower, first, level);
        for (uint32_t to = 1; to < order && !joins; to++)
            add_between(grower, &list->routes[*choice++], level, (to - 1) / CHILDREN_MAX, to);
    }
    set_places(grower, number, 0);
}

/* Adds a tree of the inner plan in each part of the innermost level. */
static void add_inner(struct by_class_trees *grower, const struct by_tree *tree)
{
    const struct by_symmetry *symmetry = grower->routes->symmetry;

    for (uint64_t part = 0; part < by_symmetry_order(symmetry); part++) {
        set_places(grower, symmetry->level_count, part);
        for (uint32_t i = 0; i < tree->edge_count; i++) {
            struct by_path path = by_plan_edge(grower->inner->plan, tree, i);

            for (uint32_t j = 0; j < path.node_count; j++)
                grower->part[j] =
                    by_symmetry_image(symmetry, grower->inner->whole[path.nodes[j]], grower->place);
            connect_last(grower, grower->part, path.node_count);
        }
    }
    set_places(grower, symmetry->level_count, 0);
}

/* Makes the tree of one copy, with a tree of the inner plan or none. */
static int grow(struct by_class_trees *grower, uint32_t copy, const struct by_tree *inner,
                struct by_fraction weight)
{
    uint32_t root = grower->routes->ranks[grower->rank];

    if (grower->list->edge_count + grower->routes->graph->node_count > EDGES_MAX)
        return BY_ELIMIT;
    grower->edge_count = 0;
    memset(grower->reached, 0, grower->routes->graph->node_count * sizeof(*grower->reached));
    grower->reached[root] = true;
    for (uint32_t i = 0; i < grower->routes->symmetry->level_count; i++)
        add_level(grower, i, copy);
    if (inner)
        add_inner(grower, inner);
    by_tree_list_append(grower->list, root, grower->use, weight, grower->edges, grower->edge_count);
    return 0;
}

static int grow_rank(struct by_class_trees *grower, struct by_fraction weight)
{
    const struct by_plan *plan = grower->inner->plan;
    int error = 0;

    for (uint32_t copy = 0; copy < grower->routes->copies && !error; copy++) {
        if (!plan)
            error = grow(grower, copy, NULL, weight);
        for (uint32_t i = 0; plan && i < plan->tree_count && !error; i++) {
            struct by_fraction part;

            if (grower->inner->whole[plan->trees[i].root] != grower->routes->ranks[grower->rank])
                continue;
            error = by_fraction_multiply(weight, grower->inner->parts[i], &part);
            if (!error)
                error = grow(grower, copy, &plan->trees[i], part);
        }
    }
    return error;
}

int by_class_trees_grow(struct by_class_trees *grower, struct by_fraction weight)
{
    uint32_t levels = grower->routes->symmetry->level_count;
    int error = 0;

    for (grower->rank = 0; grower->rank < grower->routes->rank_count && !error; grower->rank++) {
        for (uint32_t i = 0; i < levels; i++)
            list_choices(grower, i);
        error = grow_rank(grower, weight);
        for (uint32_t level = 0; level < levels; level++)
            free(grower->choice[level]);
    }
    return error;
}
