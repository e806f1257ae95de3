/* A sparse directed graph. See mesh.h. */
#include "control/planner/flow/mesh.h"

#include "control/base/alloc.h"
#include "offload/base/assert.h"

struct mesh_entry {
    uint32_t high;
    int64_t capacity[2]; /* low to high, high to low */
};

/* Returns the arcs as entries sorted by their lower node; start[v] (node_count + 1) is the index of
 * the first entry of node v. */
static struct mesh_entry *sort_by_low(uint32_t node_count, const struct by_mesh_arc *arcs, size_t arc_count,
                                      uint32_t *start)
{
    struct mesh_entry *entries = by_alloc(arc_count, sizeof(*entries));
    uint32_t *at = by_alloc(node_count + 1, sizeof(*at));

    for (size_t i = 0; i < arc_count; i++)
        if (arcs[i].from != arcs[i].to)
            start[(arcs[i].from < arcs[i].to ? arcs[i].from : arcs[i].to) + 1]++;
    for (uint32_t i = 0; i < node_count; i++)
        start[i + 1] += start[i];
    memcpy(at, start, (node_count + 1) * sizeof(*at));
    for (size_t i = 0; i < arc_count; i++) {
        bool down = arcs[i].from > arcs[i].to;
        struct mesh_entry *entry;

        if (arcs[i].from == arcs[i].to)
            continue;
        entry = &entries[at[down ? arcs[i].to : arcs[i].from]++];
        entry->high = down ? arcs[i].from : arcs[i].to;
        entry->capacity[down] = arcs[i].capacity;
    }
    free(at);
    return entries;
}

/* Merges all entries between the same two nodes into one pair. */
static void merge_pairs(struct by_mesh *net, const struct mesh_entry *entries, const uint32_t *start)
{
    uint32_t *pair_of = by_alloc(net->node_count, sizeof(*pair_of)); /* by higher node: pair + 1 */

    for (uint32_t low = 0; low < net->node_count; low++) {
        uint32_t before = net->pair_count;

        for (uint32_t i = start[low]; i < start[low + 1]; i++) {
            uint32_t high = entries[i].high, pair = pair_of[high];

            if (pair <= before) {
                pair = pair_of[high] = ++net->pair_count;
                net->tail[2 * (pair - 1)] = low;
                net->tail[2 * (pair - 1) + 1] = high;
            }
            for (int way = 0; way < 2; way++)
                BY_ASSERT(!__builtin_add_overflow(net->capacity[2 * (pair - 1) + way],
                                                  entries[i].capacity[way],
                                                  &net->capacity[2 * (pair - 1) + way]));
        }
    }
    free(pair_of);
}

/* Pairs are sorted by their lower node; two passes by the other node put each list into ascending
 * order. */
static void link_neighbours(struct by_mesh *net)
{
    uint32_t n = net->node_count, halves = 2 * net->pair_count, *at = by_alloc(n + 1, sizeof(*at));
    uint32_t *order = by_alloc(halves, sizeof(*order));

    net->first = by_alloc(n + 1, sizeof(*net->first));
    net->near = by_alloc(halves, sizeof(*net->near));
    for (uint32_t half = 0; half < halves; half++)
        net->first[net->tail[half] + 1]++;
    for (uint32_t i = 0; i < n; i++)
        net->first[i + 1] += net->first[i];
    memcpy(at, net->first, (n + 1) * sizeof(*at));
    for (uint32_t half = 0; half < halves; half++) /* sorted by tail */
        order[at[net->tail[half]]++] = half;
    memcpy(at, net->first, (n + 1) * sizeof(*at));
    for (uint32_t i = 0; i < halves; i++) {
        uint32_t half = order[i];

        net->near[at[by_mesh_head(net, half)]++] = (struct by_near){net->tail[half], half};
    }
    free(order);
    free(at);
}

struct by_mesh *by_mesh_new(uint32_t node_count, const struct by_mesh_arc *arcs, size_t arc_count)
{
    struct by_mesh *net = by_alloc(1, sizeof(*net));
    uint32_t *start = by_alloc(node_count + 1, sizeof(*start));
    struct mesh_entry *entries;

    BY_ASSERT(arc_count < UINT32_MAX / 4);
    net->node_count = node_count;
    entries = sort_by_low(node_count, arcs, arc_count, start);
    net->tail = by_alloc(2 * arc_count, sizeof(*net->tail));
    net->capacity = by_alloc(2 * arc_count, sizeof(*net->capacity));
    merge_pairs(net, entries, start);
    link_neighbours(net);
    free(entries);
    free(start);
    return net;
}

void by_mesh_free(struct by_mesh *net)
{
    if (!net)
        return;
    free(net->tail);
    free(net->capacity);
    free(net->first);
    free(net->near);
    free(net);
}

int64_t by_mesh_entering(const struct by_mesh *net, uint32_t node)
{
    int64_t sum = 0;

    for (uint32_t i = net->first[node]; i < net->first[node + 1]; i++)
        sum += net->capacity[net->near[i].half];
    return sum;
}

int64_t by_mesh_leaving(const struct by_mesh *net, uint32_t node)
{
    int64_t sum = 0;

    for (uint32_t i = net->first[node]; i < net->first[node + 1]; i++)
        sum += net->capacity[net->near[i].half ^ 1];
    return sum;
}

int64_t by_mesh_entering_set(const struct by_mesh *net, const bool *inside)
{
    int64_t sum = 0;

    for (uint32_t half = 0; half < 2 * net->pair_count; half++)
        if (!inside[net->tail[half]] && inside[by_mesh_head(net, half)])
            sum += net->capacity[half];
    return sum;
}

/* The half from `node` to `list`, whose neighbours are searched. */
static uint32_t find_in(const struct by_mesh *net, uint32_t list, uint32_t node)
{
    uint32_t low = net->first[list], end = net->first[list + 1], high = end;

    while (high - low > 8) {
        uint32_t middle = low + (high - low) / 2;

        if (net->near[middle].node < node)
            low = middle + 1;
        else
            high = middle + 1;
    }
    while (low < high && net->near[low].node < node)
        low++;
    return low < end && net->near[low].node == node ? net->near[low].half : UINT32_MAX;
}

uint32_t by_mesh_find(const struct by_mesh *net, uint32_t from, uint32_t to)
{
    uint32_t half;

    if (net->first[to + 1] - net->first[to] <= net->first[from + 1] - net->first[from])
        return find_in(net, to, from);
    half = find_in(net, from, to); /* fewer neighbours */
    return half == UINT32_MAX ? half : half ^ 1;
}

uint32_t by_mesh_farthest(const struct by_mesh *net, uint32_t start)
{
    uint32_t *queue = by_alloc(net->node_count, sizeof(*queue)), head = 0, tail = 0, farthest;
    uint32_t *hops = by_alloc(net->node_count, sizeof(*hops)); /* plus one; 0 for nodes not reached */

    hops[start] = 1;
    queue[tail++] = start;
    while (head < tail) {
        uint32_t node = queue[head++];

        for (uint32_t i = net->first[node]; i < net->first[node + 1]; i++) {
            uint32_t other = net->near[i].node;

            if (hops[other] > 0 || net->capacity[net->near[i].half ^ 1] == 0)
                continue;
            hops[other] = hops[node] + 1;
            queue[tail++] = other;
        }
    }
    farthest = hops[queue[tail - 1]] - 1;
    free(queue);
    free(hops);
    return farthest;
}
