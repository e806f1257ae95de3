/* Finds candidates for clusters. See cluster.h. */
#include "control/planner/split/cluster.h"

#include "control/base/alloc.h"

/* Bandwidth thresholds that are tried (count); more are sampled over their range. */
#define THRESHOLDS_MAX 24u
/* Switches that are removed on trial, one at a time (count). */
#define REMOVALS_MAX 1024u
/* Neighbours of a switch that are compared to find similar switches (count). */
#define LIKENESS_DEGREE_MAX 256u

/* A candidate and its properties. */
struct guess {
    uint32_t number;  /* in the list of candidates */
    int64_t inside;   /* capacity of links between its nodes */
    int64_t crossing; /* capacity of links that leave it */
    uint32_t bearing; /* compute nodes */
    bool narrow;      /* found by bandwidth alone */
    uint64_t hash;
};

struct cluster_finder {
    const struct by_mesh *net;
    const int64_t *capacity;
    const bool *bears;
    uint32_t bearing;
    struct by_clusters sets;
    struct guess *guesses;
    uint32_t guess_count, guess_room;
    bool narrow;
    uint32_t *slots; /* hash table: number of the candidate + 1 */
    uint32_t slot_count;
    uint32_t *part; /* scratch, by node */
    uint32_t *queue;
    uint32_t *mark;
    uint32_t stamp;
};

void by_clusters_free(struct by_clusters *clusters)
{
    free(clusters->start);
    free(clusters->nodes);
    *clusters = (struct by_clusters){0};
}

void by_clusters_add(struct by_clusters *clusters, const uint32_t *nodes, uint32_t count)
{
    if (clusters->count + 2 > clusters->room) {
        clusters->room = clusters->room ? clusters->room * 2 : 64;
        clusters->start = by_realloc(clusters->start, clusters->room, sizeof(*clusters->start));
        clusters->start[0] = 0;
    }
    while (clusters->node_count + count > clusters->node_room) {
        clusters->node_room = clusters->node_room ? clusters->node_room * 2 : 1024;
        clusters->nodes = by_realloc(clusters->nodes, clusters->node_room, sizeof(*clusters->nodes));
    }
    memcpy(clusters->nodes + clusters->node_count, nodes, count * sizeof(*nodes));
    clusters->node_count += count;
    clusters->start[++clusters->count] = clusters->node_count;
}

static int compare_nodes(const void *left, const void *right)
{
    const uint32_t *a = left, *b = right;

    return *a < *b ? -1 : *a > *b;
}

/* Doubles the hash table when it is half full. */
static void make_room(struct cluster_finder *finder)
{
    if (2 * (finder->guess_count + 1) <= finder->slot_count)
        return;
    finder->slot_count = finder->slot_count ? finder->slot_count * 2 : 256;
    free(finder->slots);
    finder->slots = by_alloc(finder->slot_count, sizeof(*finder->slots));
    for (uint32_t i = 0; i < finder->guess_count; i++) {
        uint32_t at = (uint32_t)finder->guesses[i].hash & (finder->slot_count - 1);

        while (finder->slots[at])
            at = (at + 1) & (finder->slot_count - 1);
        finder->slots[at] = i + 1;
    }
}

/* Adds a candidate (nodes in any order), unless it is already in the list, holds no compute node,
 * or holds more than half of them: the capacity that leaves a set equals the capacity that enters
 * it. */
static void guess(struct cluster_finder *finder, uint32_t *nodes, uint32_t count)
{
    const struct by_mesh *net = finder->net;
    struct guess made = {.number = finder->sets.count, .hash = count, .narrow = finder->narrow};
    uint32_t at;

    for (uint32_t i = 0; i < count; i++)
        made.bearing += finder->bears[nodes[i]];
    if (made.bearing == 0 || 2 * made.bearing > finder->bearing || count < 2)
        return;
    qsort(nodes, count, sizeof(*nodes), compare_nodes);
    for (uint32_t i = 0; i < count; i++)
        made.hash = (made.hash ^ nodes[i]) * 0x9e3779b97f4a7c15u, made.hash ^= made.hash >> 31;
    make_room(finder);
    for (at = (uint32_t)made.hash & (finder->slot_count - 1); finder->slots[at];
         at = (at + 1) & (finder->slot_count - 1))
        if (finder->guesses[finder->slots[at] - 1].hash == made.hash)
            return;
    finder->stamp++;
    for (uint32_t i = 0; i < count; i++)
        finder->mark[nodes[i]] = finder->stamp;
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t j = net->first[nodes[i]]; j < net->first[nodes[i] + 1]; j++) {
            int64_t capacity = finder->capacity[net->near[j].half];

            if (finder->mark[net->near[j].node] == finder->stamp)
                made.inside += capacity / 2; /* each link is counted from both ends */
            else
                made.crossing += capacity;
        }
    BY_GROW(finder->guesses, finder->guess_count, finder->guess_room);
    finder->guesses[finder->guess_count++] = made;
    finder->slots[at] = finder->guess_count;
    by_clusters_add(&finder->sets, nodes, count);
}

/* ---- the candidates ---- */

/* Hops to the nearest compute node. */
static void find_heights(const struct cluster_finder *finder, uint32_t *height)
{
    const struct by_mesh *net = finder->net;
    uint32_t head = 0, tail = 0;

    for (uint32_t i = 0; i < net->node_count; i++) {
        height[i] = finder->bears[i] ? 0 : UINT32_MAX;
        if (finder->bears[i])
            finder->queue[tail++] = i;
    }
    while (head < tail) {
        uint32_t node = finder->queue[head++];

        for (uint32_t i = net->first[node]; i < net->first[node + 1]; i++)
            if (height[net->near[i].node] == UINT32_MAX && finder->capacity[net->near[i].half] > 0) {
                height[net->near[i].node] = height[node] + 1;
                finder->queue[tail++] = net->near[i].node;
            }
    }
}

/* Collects the nodes below `node`; returns their count and marks the compute nodes. */
static uint32_t collect_below(struct cluster_finder *finder, uint32_t node, const uint32_t *height)
{
    const struct by_mesh *net = finder->net;
    uint32_t tail = 0;

    finder->stamp++;
    finder->mark[node] = finder->stamp;
    finder->queue[tail++] = node;
    for (uint32_t head = 0; head < tail; head++) {
        uint32_t at = finder->queue[head];

        for (uint32_t i = net->first[at]; i < net->first[at + 1]; i++) {
            uint32_t to = net->near[i].node;

            if (height[to] < height[at] && finder->mark[to] != finder->stamp &&
                finder->capacity[net->near[i].half] > 0) {
                finder->mark[to] = finder->stamp;
                finder->queue[tail++] = to;
            }
        }
    }
    return tail;
}

/* Adds the other switches whose lower neighbours are all in the set of nodes below `node`. */
static uint32_t add_peers(struct cluster_finder *finder, uint32_t tail, const uint32_t *height)
{
    const struct by_mesh *net = finder->net;

    for (uint32_t head = 0; head < tail; head++) {
        uint32_t at = finder->queue[head];

        for (uint32_t i = net->first[at]; i < net->first[at + 1]; i++) {
            uint32_t to = net->near[i].node;
            bool all = height[to] > 0 && height[to] != UINT32_MAX && finder->mark[to] != finder->stamp;

            for (uint32_t j = net->first[to]; all && j < net->first[to + 1]; j++)
                all = height[net->near[j].node] >= height[to] ||
                      finder->mark[net->near[j].node] == finder->stamp;
            if (all) {
                finder->mark[to] = finder->stamp;
                finder->queue[tail++] = to;
            }
        }
    }
    return tail;
}

static void guess_below_switches(struct cluster_finder *finder)
{
    uint32_t n = finder->net->node_count, *height = by_alloc(n, sizeof(*height));

    find_heights(finder, height);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t count, bearing = 0;

        if (finder->bears[i] || height[i] == UINT32_MAX)
            continue;
        count = collect_below(finder, i, height);
        for (uint32_t j = 0; j < count; j++)
            bearing += finder->bears[finder->queue[j]];
        if (bearing < finder->bearing)
            guess(finder, finder->queue, add_peers(finder, count, height));
    }
    free(height);
}

static uint32_t find_part(uint32_t *part, uint32_t node)
{
    while (part[node] != node) {
        part[node] = part[part[node]];
        node = part[node];
    }
    return node;
}

/* Adds as a candidate each part into which `part` (by node, UINT32_MAX for none)
 * divides the nodes. */
static void guess_parts(struct cluster_finder *finder)
{
    uint32_t n = finder->net->node_count, *start = by_alloc(n + 1, sizeof(*start));
    uint32_t *sorted = by_alloc(n, sizeof(*sorted)), *root = by_alloc(n, sizeof(*root));

    for (uint32_t i = 0; i < n; i++) {
        root[i] = finder->part[i] == UINT32_MAX ? UINT32_MAX : find_part(finder->part, i);
        if (root[i] != UINT32_MAX)
            start[root[i] + 1]++;
    }
    for (uint32_t i = 0; i < n; i++)
        start[i + 1] += start[i];
    for (uint32_t i = 0; i < n; i++)
        if (root[i] != UINT32_MAX)
            sorted[start[root[i]]++] = i;
    for (uint32_t i = 0, begin = 0; i < n; i++) { /* start[i] is now the end of part i */
        guess(finder, sorted + begin, start[i] - begin);
        begin = start[i];
    }
    free(start);
    free(sorted);
    free(root);
}

static int compare_capacities(const void *left, const void *right)
{
    const int64_t *a = left, *b = right;

    return *a < *b ? -1 : *a > *b;
}

/* Candidates: nodes connected by links of at least some bandwidth. */
static void guess_by_bandwidth(struct cluster_finder *finder)
{
    const struct by_mesh *net = finder->net;
    int64_t *sorted = by_alloc(net->pair_count, sizeof(*sorted));
    uint32_t count = 0, step;

    for (uint32_t pair = 0; pair < net->pair_count; pair++)
        sorted[pair] = finder->capacity[2 * pair];
    if (net->pair_count > 1)
        qsort(sorted, net->pair_count, sizeof(*sorted), compare_capacities);
    for (uint32_t pair = 0; pair < net->pair_count; pair++)
        if (sorted[pair] > 0 && (count == 0 || sorted[count - 1] != sorted[pair]))
            sorted[count++] = sorted[pair];
    step = (count + THRESHOLDS_MAX - 1) / THRESHOLDS_MAX;
    for (uint32_t i = 1; i < count; i += step) {
        for (uint32_t node = 0; node < net->node_count; node++)
            finder->part[node] = node;
        for (uint32_t pair = 0; pair < net->pair_count; pair++)
            if (finder->capacity[2 * pair] >= sorted[i])
                finder->part[find_part(finder->part, net->tail[2 * pair])] =
                    find_part(finder->part, net->tail[2 * pair + 1]);
        guess_parts(finder);
    }
    free(sorted);
}

/* Candidates: the parts of the fabric without one switch. */
static void guess_without_switch(struct cluster_finder *finder)
{
    const struct by_mesh *net = finder->net;
    uint32_t removals = 0;

    for (uint32_t without = 0; without < net->node_count && removals < REMOVALS_MAX; without++) {
        uint32_t parts = net->node_count - 1;

        if (finder->bears[without] || net->first[without + 1] - net->first[without] < 2)
            continue;
        removals++;
        for (uint32_t node = 0; node < net->node_count; node++)
            finder->part[node] = node;
        for (uint32_t pair = 0; pair < net->pair_count; pair++) {
            uint32_t a = net->tail[2 * pair], b = net->tail[2 * pair + 1];

            if (a == without || b == without || finder->capacity[2 * pair] == 0)
                continue;
            a = find_part(finder->part, a);
            b = find_part(finder->part, b);
            parts -= a != b;
            finder->part[a] = b;
        }
        finder->part[without] = UINT32_MAX;
        if (parts > 1)
            guess_parts(finder);
    }
}

/* Whether two neighbouring switches have at least two fifths of their switches in common,
 * themselves included. */
static bool are_alike(struct cluster_finder *finder, uint32_t a, uint32_t b)
{
    const struct by_mesh *net = finder->net;
    uint32_t of_a = 0, of_b = 0, shared = 0;

    finder->stamp++;
    finder->mark[a] = finder->stamp;
    of_a++;
    for (uint32_t i = net->first[a]; i < net->first[a + 1]; i++)
        if (!finder->bears[net->near[i].node]) {
            finder->mark[net->near[i].node] = finder->stamp;
            of_a++;
        }
    of_b++;
    shared += finder->mark[b] == finder->stamp;
    for (uint32_t i = net->first[b]; i < net->first[b + 1]; i++)
        if (!finder->bears[net->near[i].node]) {
            shared += finder->mark[net->near[i].node] == finder->stamp;
            of_b++;
        }
    return shared > 2 && 5 * shared >= 2 * (of_a + of_b - shared);
}

/* Candidates: cliques of switches, such as the groups of a dragonfly, with the compute nodes
 * attached to them. */
static void guess_alike(struct cluster_finder *finder)
{
    const struct by_mesh *net = finder->net;

    for (uint32_t node = 0; node < net->node_count; node++)
        finder->part[node] = node;
    for (uint32_t pair = 0; pair < net->pair_count; pair++) {
        uint32_t a = net->tail[2 * pair], b = net->tail[2 * pair + 1];

        if (finder->capacity[2 * pair] == 0 || finder->bears[a] || finder->bears[b] ||
            net->first[a + 1] - net->first[a] > LIKENESS_DEGREE_MAX ||
            net->first[b + 1] - net->first[b] > LIKENESS_DEGREE_MAX)
            continue;
        if (find_part(finder->part, a) != find_part(finder->part, b) && are_alike(finder, a, b))
            finder->part[find_part(finder->part, a)] = find_part(finder->part, b);
    }
    for (uint32_t node = 0; node < net->node_count; node++) { /* a compute node joins its only switch */
        uint32_t only = UINT32_MAX, count = 0;

        for (uint32_t i = net->first[node]; i < net->first[node + 1] && finder->bears[node]; i++)
            if (!finder->bears[net->near[i].node] && finder->capacity[net->near[i].half] > 0) {
                only = net->near[i].node;
                count++;
            }
        if (count == 1)
            finder->part[node] = find_part(finder->part, only);
    }
    guess_parts(finder);
}

/* ---- the choice ---- */

/* Orders by the fraction of the capacity that stays inside, then larger ones first. Candidates
 * found by bandwidth alone are last. */
static int compare_guesses(const void *left, const void *right)
{
    const struct guess *a = left, *b = right;
    __int128 x = (__int128)a->inside * ((__int128)b->inside + b->crossing);
    __int128 y = (__int128)b->inside * ((__int128)a->inside + a->crossing);

    if (a->narrow != b->narrow)
        return a->narrow ? 1 : -1;
    if (x != y)
        return x > y ? -1 : 1;
    if (a->bearing != b->bearing)
        return a->bearing > b->bearing ? -1 : 1;
    return a->number < b->number ? -1 : a->number > b->number;
}

static int compare_sizes(const void *left, const void *right)
{
    const uint32_t *a = left, *b = right; /* size, number */

    return a[0] != b[0] ? (a[0] > b[0] ? -1 : 1) : a[1] < b[1] ? -1 : a[1] > b[1];
}

/*
 * Whether the set is compatible with the chosen ones: disjoint from, inside or around each of them.
 * `smallest` (by node) is the smallest chosen set around each node, + 1. A set partly overlaps
 * another exactly when its nodes disagree about some chosen set that is not wholly inside it.
 */
static bool lies_well(struct cluster_finder *finder, const uint32_t *nodes, uint32_t count,
                      const uint32_t *smallest, const uint32_t *around, const uint32_t *sizes)
{
    uint32_t outer = 0;

    for (uint32_t i = 0; i < count; i++) {
        uint32_t at = smallest[nodes[i]];

        /* Find the largest chosen set that could be inside this one. */
        while (at && sizes[at - 1] < count)
            at = around[at - 1];
        if (i > 0 && at != outer)
            return false;
        outer = at;
    }
    /* The set must contain all nodes of each smaller chosen set that it intersects. */
    finder->stamp++;
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t at = smallest[nodes[i]]; at && sizes[at - 1] < count; at = around[at - 1])
            finder->part[at - 1]++;
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t at = smallest[nodes[i]]; at && sizes[at - 1] < count; at = around[at - 1])
            if (finder->part[at - 1] != 0 && finder->part[at - 1] != sizes[at - 1])
                outer = UINT32_MAX;
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t at = smallest[nodes[i]]; at && sizes[at - 1] < count; at = around[at - 1])
            finder->part[at - 1] = 0;
    return outer != UINT32_MAX;
}

static void choose(struct cluster_finder *finder, struct by_clusters *clusters)
{
    uint32_t n = finder->net->node_count, chosen = 0;
    uint32_t *smallest = by_alloc(n, sizeof(*smallest)), *around = by_alloc(2 * (size_t)n, sizeof(*around));
    uint32_t *sizes = by_alloc(2 * (size_t)n, sizeof(*sizes)),
             *number = by_alloc(2 * (size_t)n, sizeof(*number));
    uint32_t *order;

    free(finder->part);
    finder->part = by_alloc(2 * (size_t)n, sizeof(*finder->part));
    if (finder->guess_count > 1)
        qsort(finder->guesses, finder->guess_count, sizeof(*finder->guesses), compare_guesses);
    for (uint32_t g = 0; g < finder->guess_count && chosen < 2 * n; g++) {
        const uint32_t *nodes = finder->sets.nodes + finder->sets.start[finder->guesses[g].number];
        uint32_t count =
            finder->sets.start[finder->guesses[g].number + 1] - finder->sets.start[finder->guesses[g].number];

        if (!lies_well(finder, nodes, count, smallest, around, sizes))
            continue;
        number[chosen] = finder->guesses[g].number;
        sizes[chosen++] = count;
        for (uint32_t i = 0; i < count; i++) { /* insert between the sets inside and those around */
            uint32_t *at = &smallest[nodes[i]];

            while (*at && sizes[*at - 1] < count)
                at = &around[*at - 1];
            if (*at != chosen) {
                around[chosen - 1] = *at;
                *at = chosen;
            }
        }
    }
    order = by_alloc(2 * (size_t)chosen, sizeof(*order));
    for (uint32_t i = 0; i < chosen; i++) {
        order[2 * i] = sizes[i];
        order[2 * i + 1] = number[i];
    }
    if (chosen > 1)
        qsort(order, chosen, 2 * sizeof(*order), compare_sizes);
    for (uint32_t i = 0; i < chosen; i++)
        by_clusters_add(clusters, finder->sets.nodes + finder->sets.start[order[2 * i + 1]], order[2 * i]);
    free(order);
    free(smallest);
    free(around);
    free(sizes);
    free(number);
}

void by_clusters_find(const struct by_mesh *net, const int64_t *capacity, const bool *bears,
                      struct by_clusters *clusters)
{
    struct cluster_finder finder = {.net = net, .capacity = capacity, .bears = bears};
    uint32_t n = net->node_count;

    for (uint32_t i = 0; i < n; i++)
        finder.bearing += bears[i];
    finder.part = by_alloc(n, sizeof(*finder.part));
    finder.queue = by_alloc(n, sizeof(*finder.queue));
    finder.mark = by_alloc(n, sizeof(*finder.mark));
    guess_below_switches(&finder);
    guess_without_switch(&finder);
    guess_alike(&finder);
    finder.narrow = true;
    guess_by_bandwidth(&finder);
    choose(&finder, clusters);
    by_clusters_free(&finder.sets);
    free(finder.guesses);
    free(finder.slots);
    free(finder.part);
    free(finder.queue);
    free(finder.mark);
}
