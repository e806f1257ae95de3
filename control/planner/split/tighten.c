/*
 * Makes sets tight. See tighten.h. Larger clusters are lowered first; the capacity that a cluster
 * has lowered exactly to its need is not lowered again by the clusters inside it. Capacity is
 * removed from the links across a border in proportion, as long as every compute node and every
 * cluster inside keeps what it needs. One pass of the oracle then checks everything. When it finds
 * a violated cut, the cluster that removed the most capacity across the cut restores it, which can
 * only help the nodes that have already passed.
 */
#include "control/planner/split/tighten.h"

#include "control/base/alloc.h"
#include "control/planner/optimum/oracle.h"
#include "offload/base/assert.h"

/* Repetitions of the whole procedure without the clusters that failed (count). */
#define PASSES_MAX 4u
#define NONE       UINT32_MAX

struct tightener {
    const struct by_mesh *net;
    int64_t *capacity;       /* by half: as lowered; both halves of a pair are equal */
    const int64_t *original; /* by half */
    const int64_t *roots;
    const bool *member;
    int64_t total;
    struct by_clusters guesses; /* larger ones first */
    bool *failed;               /* by cluster */
    int64_t *crossing;          /* by cluster: capacity across its border, one way */
    int64_t *need;              /* by cluster: capacity that trees need across its border */
    uint32_t *around;           /* by cluster: the smallest cluster around it, or NONE */
    uint32_t *smallest;         /* by node: the smallest cluster that holds it, or NONE */
    int64_t *spare;   /* by node: a member's entering capacity beyond its need; BY_REACH_MAX for switches */
    uint32_t *taker;  /* by pair: the cluster that lowered it, or NONE */
    uint32_t *border; /* pairs across the current border */
    uint32_t border_count;
    uint32_t *mark, stamp; /* by node */
};

static bool is_symmetric(const struct by_mesh *net, const int64_t *capacity)
{
    for (uint32_t pair = 0; pair < net->pair_count; pair++)
        if (capacity[2 * pair] != capacity[2 * pair + 1])
            return false;
    return true;
}

static const uint32_t *nodes_of(const struct tightener *tightener, uint32_t cluster, uint32_t *count)
{
    *count = tightener->guesses.start[cluster + 1] - tightener->guesses.start[cluster];
    return tightener->guesses.nodes + tightener->guesses.start[cluster];
}

/* Finds the pairs across a border. */
static void find_border(struct tightener *tightener, uint32_t cluster)
{
    const struct by_mesh *net = tightener->net;
    uint32_t count;
    const uint32_t *nodes = nodes_of(tightener, cluster, &count);

    tightener->stamp++;
    tightener->border_count = 0;
    for (uint32_t i = 0; i < count; i++)
        tightener->mark[nodes[i]] = tightener->stamp;
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t j = net->first[nodes[i]]; j < net->first[nodes[i] + 1]; j++)
            if (tightener->mark[net->near[j].node] != tightener->stamp &&
                tightener->capacity[net->near[j].half] > 0)
                tightener->border[tightener->border_count++] = net->near[j].half / 2;
}

/* Resets to the state before anything is lowered, for the clusters that have not failed. */
static void reset(struct tightener *tightener)
{
    const struct by_mesh *net = tightener->net;

    memcpy(tightener->capacity, tightener->original,
           2 * (size_t)net->pair_count * sizeof(*tightener->capacity));
    memset(tightener->taker, 0xff, net->pair_count * sizeof(*tightener->taker));
    for (uint32_t i = 0; i < net->node_count; i++) {
        tightener->smallest[i] = NONE;
        tightener->spare[i] = BY_REACH_MAX;
        if (!tightener->member[i])
            continue;
        tightener->spare[i] = tightener->roots[i] - tightener->total;
        for (uint32_t j = net->first[i]; j < net->first[i + 1]; j++)
            tightener->spare[i] += tightener->capacity[net->near[j].half];
    }
    for (uint32_t c = 0; c < tightener->guesses.count; c++) {
        uint32_t count;
        const uint32_t *nodes = nodes_of(tightener, c, &count);

        if (tightener->failed[c])
            continue;
        tightener->around[c] = tightener->smallest[nodes[0]];
        tightener->need[c] = tightener->total;
        tightener->crossing[c] = 0;
        for (uint32_t i = 0; i < count; i++) {
            tightener->smallest[nodes[i]] = c;
            tightener->need[c] -= tightener->roots[nodes[i]];
        }
        find_border(tightener, c);
        for (uint32_t i = 0; i < tightener->border_count; i++)
            tightener->crossing[c] += tightener->capacity[2 * tightener->border[i]];
    }
}

static bool holds(const struct tightener *tightener, uint32_t cluster, uint32_t node)
{
    for (uint32_t at = tightener->smallest[node]; at != NONE; at = tightener->around[at])
        if (at == cluster)
            return true;
    return false;
}

/* Returns the amount by which a pair may be lowered: each end, and each cluster whose border it
 * crosses, keeps its need. */
static int64_t room_of(const struct tightener *tightener, uint32_t pair)
{
    int64_t room = tightener->capacity[2 * pair];

    if (tightener->taker[pair] != NONE)
        return 0;
    for (int end = 0; end < 2; end++) {
        uint32_t node = tightener->net->tail[2 * pair + end],
                 other = tightener->net->tail[2 * pair + 1 - end];

        room = tightener->spare[node] < room ? tightener->spare[node] : room;
        for (uint32_t at = tightener->smallest[node]; at != NONE && !holds(tightener, at, other);
             at = tightener->around[at])
            if (tightener->crossing[at] - tightener->need[at] < room)
                room = tightener->crossing[at] - tightener->need[at];
    }
    return room < 0 ? 0 : room;
}

/* Lowers a pair by `amount`; a negative amount raises it. */
static void lower(struct tightener *tightener, uint32_t pair, int64_t amount)
{
    tightener->capacity[2 * pair] -= amount;
    tightener->capacity[2 * pair + 1] -= amount;
    for (int end = 0; end < 2; end++) {
        uint32_t node = tightener->net->tail[2 * pair + end],
                 other = tightener->net->tail[2 * pair + 1 - end];

        if (tightener->member[node])
            tightener->spare[node] -= amount;
        for (uint32_t at = tightener->smallest[node]; at != NONE && !holds(tightener, at, other);
             at = tightener->around[at])
            tightener->crossing[at] -= amount;
    }
}

/* Lowers the capacity across the border to the need, in rounds of proportional parts. Returns
 * false, and lowers nothing, when that is impossible. */
static bool lower_cluster(struct tightener *tightener, uint32_t cluster)
{
    const int64_t *capacity = tightener->capacity;
    int64_t moved = 1;

    find_border(tightener, cluster);
    for (bool fine = false;
         tightener->crossing[cluster] > tightener->need[cluster] && (moved > 0 || !fine);) {
        int64_t excess = tightener->crossing[cluster] - tightener->need[cluster], sum = 0;

        fine |= moved == 0;
        moved = 0;
        for (uint32_t i = 0; i < tightener->border_count; i++)
            sum += room_of(tightener, tightener->border[i]) > 0 ? capacity[2 * tightener->border[i]] : 0;
        for (uint32_t i = 0; i < tightener->border_count && sum > 0; i++) {
            uint32_t pair = tightener->border[i];
            int64_t room = room_of(tightener, pair), part;

            part = (int64_t)((__int128)capacity[2 * pair] * excess / sum);
            part = part == 0 && fine ? 1 : part;
            part = part < room ? part : room;
            if (part > 0)
                lower(tightener, pair, part);
            moved += part;
        }
    }
    for (uint32_t i = 0; i < tightener->border_count; i++) {
        uint32_t pair = tightener->border[i];
        int64_t taken = tightener->original[2 * pair] - capacity[2 * pair];

        if (taken == 0 || tightener->taker[pair] != NONE)
            continue;
        if (tightener->crossing[cluster] == tightener->need[cluster])
            tightener->taker[pair] = cluster;
        else
            lower(tightener, pair, -taken);
    }
    return tightener->crossing[cluster] == tightener->need[cluster];
}

/* Restores the capacity that a cluster removed. */
static void give_back(struct tightener *tightener, uint32_t cluster, struct by_reach *reach)
{
    tightener->failed[cluster] = true;
    for (uint32_t pair = 0; pair < tightener->net->pair_count; pair++) {
        if (tightener->taker[pair] != cluster)
            continue;
        lower(tightener, pair, tightener->capacity[2 * pair] - tightener->original[2 * pair]);
        tightener->taker[pair] = NONE;
        by_reach_set(reach, 2 * pair, tightener->capacity[2 * pair]);
        by_reach_set(reach, 2 * pair + 1, tightener->capacity[2 * pair + 1]);
    }
}

/* Returns the cluster that removed the most capacity into the side of the last query. */
static uint32_t find_culprit(const struct tightener *tightener, const struct by_reach *reach)
{
    const struct by_mesh *net = tightener->net;
    int64_t *taken = by_alloc(tightener->guesses.count, sizeof(*taken)), most = 0;
    uint32_t culprit = NONE;

    for (uint32_t i = 0; i < by_reach_side(reach); i++)
        for (uint32_t j = net->first[reach->queue[i]]; j < net->first[reach->queue[i] + 1]; j++) {
            uint32_t pair = net->near[j].half / 2, taker = tightener->taker[pair];

            if (taker == NONE || by_reach_inside(reach, net->near[j].node))
                continue;
            taken[taker] += tightener->original[2 * pair] - tightener->capacity[2 * pair];
            if (taken[taker] > most) {
                most = taken[taker];
                culprit = taker;
            }
        }
    free(taken);
    return culprit;
}

/* Runs one pass of the oracle; clusters responsible for violated cuts restore their capacity.
 * Returns whether no cut was violated. */
static bool settle(struct tightener *tightener)
{
    const struct by_mesh *net = tightener->net;
    struct by_reach *reach = by_reach_new(net);
    uint32_t *order = by_alloc(net->node_count, sizeof(*order));
    bool all = true;

    by_oracle_order(net, order);
    for (uint32_t half = 0; half < 2 * net->pair_count; half++)
        by_reach_set(reach, half, tightener->capacity[half]);
    for (uint32_t i = 0; i < net->node_count; i++)
        by_reach_set_root(reach, i, tightener->roots[i]);
    while (by_oracle_ask(reach, order, tightener->total, tightener->member) >= 0) {
        uint32_t culprit = find_culprit(tightener, reach);

        all = false;
        BY_ASSERT(culprit != NONE);
        give_back(tightener, culprit, reach);
    }
    by_reach_free(reach);
    free(order);
    return all;
}

static void tightener_make(struct tightener *tightener, const struct by_mesh *net, int64_t *capacity,
                           const int64_t *original, const int64_t *roots, const bool *member)
{
    uint32_t n = net->node_count, clusters = tightener->guesses.count;

    tightener->net = net;
    tightener->capacity = capacity;
    tightener->original = original;
    tightener->roots = roots;
    tightener->member = member;
    for (uint32_t i = 0; i < n; i++)
        tightener->total += roots[i];
    tightener->failed = by_alloc(clusters, sizeof(*tightener->failed));
    tightener->crossing = by_alloc(clusters, sizeof(*tightener->crossing));
    tightener->need = by_alloc(clusters, sizeof(*tightener->need));
    tightener->around = by_alloc(clusters, sizeof(*tightener->around));
    tightener->smallest = by_alloc(n, sizeof(*tightener->smallest));
    tightener->spare = by_alloc(n, sizeof(*tightener->spare));
    tightener->taker = by_alloc(net->pair_count, sizeof(*tightener->taker));
    tightener->border = by_alloc(2 * (size_t)net->pair_count, sizeof(*tightener->border));
    tightener->mark = by_alloc(n, sizeof(*tightener->mark));
}

static void tightener_free(struct tightener *tightener)
{
    by_clusters_free(&tightener->guesses);
    free(tightener->failed);
    free(tightener->crossing);
    free(tightener->need);
    free(tightener->around);
    free(tightener->smallest);
    free(tightener->spare);
    free(tightener->taker);
    free(tightener->border);
    free(tightener->mark);
}

void by_tighten(const struct by_mesh *net, int64_t *capacity, const int64_t *roots, const bool *member,
                const bool *compute, struct by_clusters *clusters)
{
    size_t bytes = 2 * (size_t)net->pair_count * sizeof(*capacity);
    struct tightener tightener = {0};
    int64_t *original;
    bool all = false;

    if (!is_symmetric(net, capacity))
        return;
    by_clusters_find(net, capacity, compute, &tightener.guesses);
    if (tightener.guesses.count == 0) {
        by_clusters_free(&tightener.guesses);
        return;
    }
    original = by_alloc(bytes, 1);
    memcpy(original, capacity, bytes);
    tightener_make(&tightener, net, capacity, original, roots, member);
    for (uint32_t pass = 0; pass < PASSES_MAX && !all; pass++) {
        reset(&tightener);
        for (uint32_t c = 0; c < tightener.guesses.count; c++)
            if (!tightener.failed[c] && !lower_cluster(&tightener, c))
                tightener.failed[c] = true;
        all = settle(&tightener);
    }
    for (uint32_t c = tightener.guesses.count; c-- > 0;) { /* smaller ones first */
        uint32_t count;
        const uint32_t *nodes = nodes_of(&tightener, c, &count);

        if (!tightener.failed[c] && tightener.crossing[c] == tightener.need[c])
            by_clusters_add(clusters, nodes, count);
    }
    tightener_free(&tightener);
    free(original);
}

void by_tighten_insert(struct by_laminar *laminar, const struct by_clusters *clusters)
{
    uint32_t n = laminar->net->node_count;
    uint32_t *top = by_alloc(n, sizeof(*top)); /* by node: the child of the top group that holds it */
    uint32_t *ids = by_alloc(n, sizeof(*ids));
    bool *here = by_alloc(n, sizeof(*here));

    for (uint32_t i = 0; i < n; i++)
        top[i] = i;
    for (uint32_t i = 0; i < laminar->groups[0].child_count; i++)
        here[laminar->groups[0].children[i]] = true;
    for (uint32_t c = 0; c < clusters->count; c++) {
        const uint32_t *nodes = clusters->nodes + clusters->start[c];
        uint32_t count = clusters->start[c + 1] - clusters->start[c], kept = 0, group;

        for (uint32_t i = 0; i < count; i++)
            if (here[nodes[i]])
                ids[kept++] = top[nodes[i]];
        kept = by_laminar_sort(ids, kept);
        if (kept < 2)
            continue;
        group = by_laminar_insert(laminar, 0, ids, kept);
        for (uint32_t i = 0; i < count; i++)
            top[nodes[i]] = n + group;
    }
    free(top);
    free(ids);
    free(here);
}
