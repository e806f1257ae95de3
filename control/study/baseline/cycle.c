/*
 * Finds rings: cycles through all compute nodes whose neighbours are joined through switches only.
 * See baseline.h.
 *
 * The search is depth-first. It prefers the widest way, then the shortest, then the neighbour with
 * the fewest onward ways (Warnsdorff's rule, which works well on tori and cubes), then the next
 * rank. Inside a box Warnsdorff's rule comes first, and the search visits the whole box before it
 * leaves. It backtracks within a limit.
 */
#include "control/base/alloc.h"
#include "control/study/baseline/baseline.h"

/* Most ways that are tried at one node (count). */
#define WAYS_MAX 8u

/* Steps of the search before it gives up (count), plus eight for each node. */
#define STEPS_MIN 20000u

struct cycle_way {
    uint32_t node;
    uint32_t hops;
    int64_t width;
    uint32_t onward;
    uint32_t distance; /* distance in ranks on the circle */
};

/* The search. */
struct cycle_walk {
    struct by_baseline_net *net;
    const struct by_boxes *boxes; /* NULL: ignore boxes */
    uint32_t *rank_of;            /* by node */
    bool *visited;                /* by node */
    uint32_t *unvisited;          /* by box */
};

struct cycle_level {
    uint32_t count, next;
    uint32_t nodes[WAYS_MAX];
};

static bool is_better(const struct cycle_way *a, const struct cycle_way *b, bool inside)
{
    if (inside && a->onward != b->onward)
        return a->onward < b->onward;
    if (a->width != b->width)
        return a->width > b->width;
    if (a->hops != b->hops)
        return a->hops < b->hops;
    if (a->onward != b->onward)
        return a->onward < b->onward;
    return a->distance < b->distance;
}

/* Counts the unvisited compute nodes that `node` can reach directly. */
static uint32_t count_onward(const struct by_baseline_net *net, uint32_t node, const bool *visited)
{
    uint32_t count = 0;

    for (uint32_t i = net->first[node]; i < net->first[node + 1]; i++) {
        const struct by_net_arc *arc = &net->arcs[i];

        count += arc->left > 0 && net->topology->nodes[arc->to].compute && !visited[arc->to];
    }
    return count;
}

/* Finds the best onward ways of a node, best first. */
static void find_ways(struct cycle_walk *walk, uint32_t rank, struct cycle_level *level)
{
    struct cycle_way ways[WAYS_MAX + 1] = {{0}};
    const struct by_boxes *boxes = walk->boxes;
    struct by_baseline_net *net = walk->net;
    uint32_t n = net->compute_count;
    bool inside = boxes && walk->unvisited[boxes->box_of[rank]] > 0;

    by_net_reach(net, net->compute[rank]);
    *level = (struct cycle_level){0};
    for (uint32_t step = 1; step < n; step++) {
        uint32_t to = (rank + step) % n, node = net->compute[to], at = level->count;
        struct cycle_way way = {.node = node, .hops = net->hops[node], .distance = step};

        if (walk->visited[node] || way.hops == UINT32_MAX)
            continue;
        way.width = net->width[node];
        if (inside && (boxes->box_of[to] != boxes->box_of[rank] || way.width <= boxes->floor))
            continue;
        if (!inside && at == WAYS_MAX &&
            (way.width < ways[at - 1].width ||
             (way.width == ways[at - 1].width && way.hops > ways[at - 1].hops)))
            continue;
        way.onward = way.hops == 1 ? count_onward(net, node, walk->visited) : 0;
        for (; at > 0 && is_better(&way, &ways[at - 1], inside); at--)
            ways[at] = ways[at - 1];
        ways[at] = way;
        level->count += level->count < WAYS_MAX;
    }
    for (uint32_t i = 0; i < level->count; i++)
        level->nodes[i] = ways[i].node;
}

static void visit(struct cycle_walk *walk, uint32_t node, bool visited)
{
    walk->visited[node] = visited;
    if (walk->boxes && visited)
        walk->unvisited[walk->boxes->box_of[walk->rank_of[node]]]--;
    else if (walk->boxes)
        walk->unvisited[walk->boxes->box_of[walk->rank_of[node]]]++;
}

static bool search(struct cycle_walk *walk, struct cycle_level *levels, uint32_t start, uint32_t *order)
{
    uint32_t n = walk->net->compute_count, depth = 0, steps = 0;

    order[0] = walk->net->compute[start];
    visit(walk, order[0], true);
    find_ways(walk, start, &levels[0]);
    while (steps < STEPS_MIN + 8 * n) {
        struct cycle_level *level = &levels[depth];

        if (depth + 1 == n && walk->net->hops[order[0]] != UINT32_MAX)
            return true;
        if (level->next == level->count) {
            if (depth == 0)
                return false;
            visit(walk, order[depth--], false);
            continue;
        }
        order[++depth] = level->nodes[level->next++];
        visit(walk, order[depth], true);
        find_ways(walk, walk->rank_of[order[depth]], &levels[depth]);
        steps++;
    }
    return false;
}

bool by_cycle_find(struct by_baseline_net *net, const struct by_boxes *boxes, uint32_t start, uint32_t *order)
{
    uint32_t n = net->compute_count;
    struct cycle_walk walk = {.net = net,
                              .rank_of = by_alloc(net->node_count, sizeof(*walk.rank_of)),
                              .visited = by_alloc(net->node_count, sizeof(*walk.visited)),
                              .unvisited = by_alloc(n, sizeof(*walk.unvisited))};
    struct cycle_level *levels = by_alloc(n, sizeof(*levels));
    bool found = false;

    for (uint32_t i = 0; i < n; i++)
        walk.rank_of[net->compute[i]] = i;
    for (unsigned attempt = boxes->floor > 0 ? 0 : 1; attempt < 2 && !found; attempt++) {
        walk.boxes = attempt == 0 ? boxes : NULL;
        memset(walk.visited, 0, net->node_count * sizeof(*walk.visited));
        memset(walk.unvisited, 0, n * sizeof(*walk.unvisited));
        for (uint32_t i = 0; i < n; i++)
            walk.unvisited[boxes->box_of[i]]++;
        found = search(&walk, levels, start, order);
    }
    free(levels);
    free(walk.rank_of);
    free(walk.visited);
    free(walk.unvisited);
    return found;
}
