/* Routes between alike parts, and how often each is taken. See routes.h. */
#include "control/planner/classes/routes.h"

#include <stdlib.h>
#include <string.h>

#include "control/base/alloc.h"
#include "offload/base/errors.h"

/* Routes of one compute node at one level (count): more than the paths to the core of a Clos
 * network of 64 x 64 switches. */
#define ROUTES_MAX 4096u
/* Edges are distributed in so many steps at most (count). */
#define STEPS_MAX 65536u
/* Loads are compared in units of 1/LOAD_SCALE of a capacity, rounded down; the rate is exact. */
#define LOAD_SCALE ((int64_t)1 << 40)

static const struct by_place nowhere = {0, 0};

/* Extends the route `made`, of which the last node is moved by the level, in all ways that end at
 * a switch in place. */
static void extend(const struct by_routes *routes, uint32_t level, struct by_route *made,
                   struct by_route_list *list)
{
    const struct by_mesh *net = routes->graph->net;
    const struct by_symmetry *symmetry = routes->symmetry;
    uint32_t last = made->node[made->hops];

    for (uint32_t i = net->first[last]; i < net->first[last + 1] && list->count < ROUTES_MAX; i++) {
        uint32_t other = net->near[i].node, half = net->near[i].half, at = 0;

        if (routes->graph->compute[other] || symmetry->of[other] != other || net->capacity[half] == 0 ||
            net->capacity[half ^ 1] == 0)
            continue;
        while (at < made->hops && made->node[at] != other)
            at++;
        if (at < made->hops)
            continue;
        made->half[made->hops] = half ^ 1;
        made->node[++made->hops] = other;
        if (!(symmetry->moved[other] >> level & 1)) {
            BY_GROW(list->routes, list->count, list->room);
            list->routes[list->count++] = *made;
        } else if (made->hops < BY_ROUTE_HOPS_MAX) {
            extend(routes, level, made, list);
        }
        made->hops--;
    }
}

static void find_factors(struct by_routes *routes)
{
    const struct by_mesh *net = routes->graph->net;
    const struct by_symmetry *symmetry = routes->symmetry;
    uint64_t order = by_symmetry_order(symmetry);

    routes->factor = by_alloc(2 * (size_t)net->pair_count, sizeof(*routes->factor));
    routes->cost = by_alloc(2 * (size_t)net->pair_count, sizeof(*routes->cost));
    for (uint32_t i = 0; i < symmetry->representative_count; i++) {
        uint32_t node = symmetry->representatives[i];

        for (uint32_t j = net->first[node]; j < net->first[node + 1]; j++) {
            struct by_near near = net->near[j];

            if (symmetry->of[near.node] != near.node || net->capacity[near.half] == 0)
                continue;
            routes->factor[near.half] = (int64_t)(order / by_symmetry_links(symmetry, near.node, node));
            routes->cost[near.half] = routes->factor[near.half] * LOAD_SCALE / net->capacity[near.half];
        }
    }
}

int by_routes_find(struct by_routes *routes, const struct by_graph *graph, const struct by_symmetry *symmetry,
                   bool both_ways, struct by_problem *problem)
{
    *routes = (struct by_routes){.graph = graph, .symmetry = symmetry, .both_ways = both_ways};
    routes->ranks = by_alloc(symmetry->representative_count, sizeof(*routes->ranks));
    for (uint32_t i = 0; i < symmetry->representative_count; i++)
        if (graph->compute[symmetry->representatives[i]])
            routes->ranks[routes->rank_count++] = symmetry->representatives[i];
    routes->load = by_alloc(2 * (size_t)graph->net->pair_count, sizeof(*routes->load));
    find_factors(routes);
    routes->lists = by_alloc((size_t)symmetry->level_count * routes->rank_count, sizeof(*routes->lists));
    for (uint32_t level = 0; level < symmetry->level_count; level++) {
        routes->turn[level] = level;
        for (uint32_t i = 0; i < routes->rank_count; i++) {
            struct by_route_list *list = &routes->lists[level * routes->rank_count + i];
            struct by_route made = {.node = {routes->ranks[i]}};

            extend(routes, level, &made, list);
            if (list->count == 0)
                return by_problem_set(problem, BY_EUNSUPPORTED, nowhere,
                                      "'%s' reaches its like in other parts of the fabric only through other "
                                      "compute nodes",
                                      graph->topology->nodes[routes->ranks[i]].name);
        }
    }
    return 0;
}

void by_routes_free(struct by_routes *routes)
{
    for (uint32_t i = 0; routes->lists && i < routes->symmetry->level_count * routes->rank_count; i++)
        free(routes->lists[i].routes);
    free(routes->lists);
    free(routes->ranks);
    free(routes->load);
    free(routes->factor);
    free(routes->cost);
}

uint64_t by_routes_edges(const struct by_routes *routes, uint32_t number)
{
    uint64_t parts = 1;

    for (uint32_t i = 0; i < number; i++)
        parts *= routes->symmetry->levels[routes->turn[i]].order;
    return parts * (routes->symmetry->levels[routes->turn[number]].order - 1);
}

/* The next permutation in lexicographic order. */
bool by_routes_turn(struct by_routes *routes)
{
    uint32_t n = routes->symmetry->level_count, *turn = routes->turn, at = n, last = n;

    for (uint32_t i = 1; i < n; i++)
        at = turn[i - 1] < turn[i] ? i - 1 : at;
    if (at < n) {
        while (turn[--last] < turn[at])
            ;
        turn[at] ^= turn[last];
        turn[last] ^= turn[at];
        turn[at] ^= turn[last];
    }
    for (uint32_t i = at < n ? at + 1 : 0, j = n - 1; i < j; i++, j--) {
        uint32_t other = turn[i];

        turn[i] = turn[j];
        turn[j] = other;
    }
    return at < n;
}

/* The greatest load on a route if `edges` more take it; `*sum` adds up the loads. */
static __int128 weigh(const struct by_routes *routes, const struct by_route *route, uint64_t edges,
                      __int128 *sum)
{
    __int128 most = 0;

    edges *= routes->both_ways ? 2 : 1;
    *sum = 0;
    for (uint32_t i = 0; i < route->hops; i++) {
        for (uint32_t way = 0; way < 2; way++) {
            uint32_t half = route->half[i] ^ way;
            __int128 load = (__int128)(routes->load[half] + edges) * routes->cost[half];

            *sum += load;
            most = load > most ? load : most;
        }
    }
    return most;
}

static void take(struct by_routes *routes, struct by_route *route, uint64_t edges)
{
    route->edges += edges;
    for (uint32_t i = 0; i < route->hops; i++)
        for (uint32_t way = 0; way < 2; way++)
            routes->load[route->half[i] ^ way] += routes->both_ways ? 2 * edges : edges;
}

/* Distributes `edges` over the routes of a list, a few at a time: each time those take the route
 * whose links are loaded least. */
static void share_list(struct by_routes *routes, struct by_route_list *list, uint64_t edges)
{
    uint64_t step = 1 + edges / STEPS_MAX;
    uint32_t last = 0;

    if (list->count == 1)
        step = edges;
    while (edges > 0) {
        uint32_t best = 0;
        __int128 least = 0, least_sum = 0;

        step = step < edges ? step : edges;
        for (uint32_t i = 0; i < list->count; i++) {
            uint32_t number = (last + i) % list->count; /* equal ones in turn */
            __int128 sum, most = weigh(routes, &list->routes[number], step, &sum);

            if (i == 0 || most < least || (most == least && sum < least_sum)) {
                best = number;
                least = most;
                least_sum = sum;
            }
        }
        take(routes, &list->routes[best], step);
        last = best + 1;
        edges -= step;
    }
}

void by_routes_share(struct by_routes *routes, uint32_t copies)
{
    uint32_t ranks = routes->rank_count, lists = routes->symmetry->level_count * ranks;

    routes->copies = copies;
    memset(routes->load, 0, 2 * (size_t)routes->graph->net->pair_count * sizeof(*routes->load));
    for (uint32_t i = 0; i < lists; i++)
        for (uint32_t j = 0; j < routes->lists[i].count; j++)
            routes->lists[i].routes[j].edges = 0;
    for (int choice = 0; choice < 2; choice++) /* first those that have none */
        for (uint32_t i = 0; i < lists; i++) {
            struct by_route_list *list = &routes->lists[routes->turn[i / ranks] * ranks + i % ranks];

            if ((list->count > 1) == choice)
                share_list(routes, list, copies * by_routes_edges(routes, i / ranks));
        }
}
