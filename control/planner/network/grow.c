/* Grows one tree. See grow.h. */
#include "control/planner/network/grow.h"

#include "control/base/alloc.h"
#include "offload/base/assert.h"

/* Scales of secondary criteria: a hop costs 1 / HOP_SCALE of a unit of price, and depth costs 1 /
 * DEPTH_SCALE of a hop. */
#define HOP_SCALE   ((int64_t)1 << 18)
#define DEPTH_SCALE ((int64_t)1 << 8)
/* The price of a hop if depth is the first criterion: more than all prices of a path. */
#define DEPTH_FIRST ((int64_t)1 << 46)

struct by_grow_entry {
    int64_t distance;
    uint32_t node;
};

static void find_arcs(struct by_grower *grower, const struct by_graph *graph)
{
    const struct by_mesh *net = graph->net;
    uint32_t n = graph->node_count, count = net->first[n];

    memcpy(grower->first, net->first, ((size_t)n + 1) * sizeof(*grower->first));
    grower->links = by_alloc(count, sizeof(*grower->links));
    grower->capacity = by_alloc((size_t)count + n, sizeof(*grower->capacity));
    for (uint32_t i = 0; i < count; i++) {
        int64_t capacity = net->capacity[net->near[i].half ^ 1];

        grower->links[i] = (struct by_grow_link){net->near[i].node, BY_GROW_NONE, BY_GROW_NONE};
        if (capacity == 0)
            continue;
        grower->capacity[grower->arc_count] = capacity;
        grower->links[i].there = grower->arc_count++;
    }
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t a = grower->first[i]; a < grower->first[i + 1]; a++)
            for (uint32_t b = grower->first[grower->links[a].to]; b < grower->first[grower->links[a].to + 1];
                 b++)
                if (grower->links[b].to == i)
                    grower->links[a].back = grower->links[b].there;
}

struct by_grower *by_grower_new(const struct by_graph *both, const struct by_graph *up,
                                const struct by_graph *down)
{
    struct by_grower *grower = by_alloc(1, sizeof(*grower));
    uint32_t n = both->node_count;

    grower->graph[BY_TREE_BOTH - 1] = both;
    grower->graph[BY_TREE_UP - 1] = up;
    grower->graph[BY_TREE_DOWN - 1] = down;
    grower->node_count = n;
    grower->first = by_alloc((size_t)n + 1, sizeof(*grower->first));
    find_arcs(grower, down);
    for (uint32_t i = 0; i < n; i++)
        grower->capacity[grower->arc_count + i] = up->budget[i] >= 0 ? up->budget[i] : INT64_MAX;
    grower->paths = by_alloc((size_t)n * 2, sizeof(*grower->paths));
    grower->nodes = by_alloc((size_t)n * 4, sizeof(*grower->nodes));
    grower->children = by_alloc(n, sizeof(*grower->children));
    grower->distance = by_alloc(n, sizeof(*grower->distance));
    grower->previous = by_alloc(n, sizeof(*grower->previous));
    grower->inside = by_alloc(n, sizeof(*grower->inside));
    grower->depth = by_alloc(n, sizeof(*grower->depth));
    return grower;
}

void by_grower_free(struct by_grower *grower)
{
    if (!grower)
        return;
    free(grower->first);
    free(grower->links);
    free(grower->capacity);
    free(grower->paths);
    free(grower->nodes);
    free(grower->children);
    free(grower->distance);
    free(grower->previous);
    free(grower->inside);
    free(grower->depth);
    free(grower->heap);
    free(grower);
}

/* ---- the heap: outdated entries stay in it ---- */

static void push(struct by_grower *grower, int64_t distance, uint32_t node)
{
    uint32_t at;

    BY_GROW(grower->heap, grower->heap_count, grower->heap_room);
    at = grower->heap_count++;
    while (at > 0 && grower->heap[(at - 1) / 2].distance > distance) {
        grower->heap[at] = grower->heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    grower->heap[at] = (struct by_grow_entry){distance, node};
}

static struct by_grow_entry pop(struct by_grower *grower)
{
    struct by_grow_entry top = grower->heap[0], last = grower->heap[--grower->heap_count];
    uint32_t at = 0;

    for (;;) {
        uint32_t child = 2 * at + 1;

        if (child + 1 < grower->heap_count && grower->heap[child + 1].distance < grower->heap[child].distance)
            child++;
        if (child >= grower->heap_count || grower->heap[child].distance >= last.distance)
            break;
        grower->heap[at] = grower->heap[child];
        at = child;
    }
    grower->heap[at] = last;
    return top;
}

/* ---- growing ---- */

struct growth {
    struct by_grower *grower;
    const struct by_graph *graph;
    const int64_t *prices;
    enum by_tree_use use;
    uint32_t node_used; /* used entries of grower->nodes */
};

/* Returns the price of a step, -1 if it is forbidden. */
static int64_t step_price(const struct growth *growth, const struct by_grow_link *link)
{
    uint32_t arcs[2] = {growth->use == BY_TREE_UP ? BY_GROW_NONE : link->there,
                        growth->use == BY_TREE_DOWN ? BY_GROW_NONE : link->back};
    int64_t sum = 0;

    if ((growth->use != BY_TREE_UP && link->there == BY_GROW_NONE) ||
        (growth->use != BY_TREE_DOWN && link->back == BY_GROW_NONE))
        return -1;
    for (int i = 0; i < 2; i++) {
        if (arcs[i] == BY_GROW_NONE)
            continue;
        if (growth->prices[arcs[i]] < 0)
            return -1;
        sum += growth->prices[arcs[i]];
    }
    return growth->grower->by_depth ? sum + DEPTH_FIRST : sum * HOP_SCALE + DEPTH_SCALE;
}

/* Whether the tree may branch at the node, and at what extra price. */
static bool is_place(const struct growth *growth, uint32_t node, int64_t *extra)
{
    const struct by_graph *graph = growth->graph;

    *extra = 0;
    if (graph->compute[node] || !graph->branch[node])
        return graph->compute[node];
    if (graph->budget[node] >= 0) {
        if (growth->prices[growth->grower->arc_count + node] < 0)
            return false;
        *extra = growth->prices[growth->grower->arc_count + node] * HOP_SCALE;
    }
    return true;
}

/* Adds a node to the tree, as a starting point of further paths if it may branch. */
static void take_in(struct growth *growth, uint32_t node, uint32_t depth)
{
    struct by_grower *grower = growth->grower;
    int64_t extra;

    if (!is_place(growth, node, &extra) || grower->inside[node])
        return;
    if (grower->by_depth)
        extra = depth * DEPTH_FIRST;
    else
        extra += (depth < DEPTH_SCALE ? depth : DEPTH_SCALE - 1) + depth * grower->depth_price * HOP_SCALE;
    grower->inside[node] = true;
    grower->depth[node] = depth;
    grower->distance[node] = extra;
    grower->previous[node] = node;
    push(grower, extra, node);
}

static void add_path(struct growth *growth, const uint32_t *nodes, uint32_t count)
{
    struct by_grower *grower = growth->grower;
    uint32_t *to = grower->nodes + growth->node_used;

    memcpy(to, nodes, count * sizeof(*to));
    grower->paths[grower->path_count++] = (struct by_path){count, to};
    grower->children[nodes[0]]++;
    growth->node_used += count;
}

/* Adds a compute node with the path to it, divided at branching nodes. Returns false when the tree
 * would be too high, or too long for its arrays; reasonable prices do not cause the latter. */
static bool attach(struct growth *growth, uint32_t node, uint32_t *way)
{
    struct by_grower *grower = growth->grower;
    uint32_t count = 1, start = 0;
    int64_t extra;

    for (uint32_t at = node; grower->previous[at] != at; at = grower->previous[at])
        count++;
    if (growth->node_used + 2 * count > 4 * grower->node_count)
        return false;
    for (uint32_t at = node, i = count; i-- > 0; at = grower->previous[at])
        way[i] = at;
    if (grower->height_max > 0 && grower->depth[way[0]] + count - 1 > grower->height_max)
        return false; /* a node on the path was reached later by a cheaper but longer path */
    for (uint32_t i = 1; i < count; i++)
        if (is_place(growth, way[i], &extra)) {
            add_path(growth, way + start, i - start + 1);
            start = i;
        }
    for (uint32_t i = 1; i < count; i++)
        take_in(growth, way[i], grower->depth[way[0]] + i);
    return true;
}

static void relax(struct growth *growth, uint32_t node)
{
    struct by_grower *grower = growth->grower;

    if (grower->height_max > 0 && grower->depth[node] >= grower->height_max)
        return;
    for (uint32_t i = grower->first[node]; i < grower->first[node + 1]; i++) {
        const struct by_grow_link *link = &grower->links[i];
        int64_t price = step_price(growth, link), distance = grower->distance[node] + price;

        if (price < 0 || grower->inside[link->to] || distance >= grower->distance[link->to])
            continue;
        grower->distance[link->to] = distance;
        grower->previous[link->to] = node;
        grower->depth[link->to] = grower->depth[node] + 1;
        push(grower, distance, link->to);
    }
}

bool by_grower_run(struct by_grower *grower, enum by_tree_use use, uint32_t root, const int64_t *prices)
{
    struct growth growth = {grower, grower->graph[use - 1], prices, use, 0};
    uint32_t n = grower->node_count, *way = by_alloc(n, sizeof(*way)), missing = growth.graph->compute_count;
    bool right = true;

    BY_ASSERT(n < 100000); /* depths times DEPTH_FIRST */
    grower->path_count = grower->heap_count = 0;
    for (uint32_t i = 0; i < n; i++) {
        grower->distance[i] = INT64_MAX;
        grower->inside[i] = false;
        grower->children[i] = 0;
    }
    missing -= growth.graph->compute[root];
    take_in(&growth, root, 0);
    while (missing > 0 && grower->heap_count > 0 && right) {
        struct by_grow_entry entry = pop(grower);

        if (entry.distance > grower->distance[entry.node])
            continue;
        if (growth.graph->compute[entry.node] && !grower->inside[entry.node]) {
            right = attach(&growth, entry.node, way);
            missing--;
        } else {
            relax(&growth, entry.node);
        }
    }
    free(way);
    return right && missing == 0;
}

void by_grower_count(const struct by_grower *grower, enum by_tree_use use, int32_t *counts)
{
    for (uint32_t i = 0; i < grower->path_count; i++) {
        const struct by_path *path = &grower->paths[i];

        for (uint32_t j = 1; j < path->node_count; j++) {
            uint32_t at = grower->first[path->nodes[j - 1]];

            while (grower->links[at].to != path->nodes[j])
                at++;
            if (use != BY_TREE_UP)
                counts[grower->links[at].there]++;
            if (use != BY_TREE_DOWN)
                counts[grower->links[at].back]++;
        }
    }
    for (uint32_t i = 0; i < grower->node_count && use != BY_TREE_DOWN; i++)
        if (grower->children[i] > 1)
            counts[grower->arc_count + i] += (int32_t)grower->children[i] - 1;
}
