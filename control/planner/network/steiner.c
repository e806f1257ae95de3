/* Cheapest trees on symmetric fabrics. See steiner.h. "Sites" are the nodes that a tree may have:
 * compute nodes and branching switches. All other nodes are inside paths between sites. */
#include "control/planner/network/steiner.h"

#include "control/base/alloc.h"
#include "control/planner/network/arborescence.h"
#include "control/planner/network/low.h"
#include "offload/base/assert.h"

/* Optional switches that are tried in all combinations (count). */
#define EXHAUSTIVE_MAX 10u
/* Sites up to which prices are proved: hops of a tree must stay below HOP_SCALE (count). */
#define PROVED_SITES_MAX 100u
/* A hop costs 1 / HOP_SCALE of a unit of price: prices are multiplied by it. */
#define HOP_SCALE ((int64_t)1 << 14)
#define FAR       INT64_MAX
/* Roots that are tried for a low tree (count). */
#define ROOTS_LOW 24u

/* A path between two sites. */
struct steiner_way {
    int64_t cost;
    uint32_t a, b; /* site numbers, a < b */
};

struct by_steiner {
    const struct by_graph *graph;
    uint32_t link_count;
    uint32_t row_count;
    uint32_t site_count;
    uint32_t compute_count;
    uint32_t way_count;
    uint32_t (*ends)[2];
    uint32_t *link_of;   /* by cell */
    uint32_t *row_node;  /* by row - link_count: a switch with a budget */
    uint32_t *site_node; /* compute nodes first */
    int64_t *site_price; /* of an addition there */
    int64_t *distance;   /* by node, in one search */
    bool *settled;       /* by node */
    /* [site * node_count + node]: the previous node on the cheapest path from the site */
    uint32_t *previous;
    struct steiner_way *ways; /* sorted by cost */
    /* The current subset and the best tree found. */
    /* the least price of a spanning tree of a subset, two additions less at each switch */
    __int128 floor;
    __int128 best_cost;
    bool *chosen; /* by site */
    bool *best_chosen;
    uint32_t *part;
    uint32_t *degree;
    struct steiner_way *tree;
    struct steiner_way *best_tree;
    uint32_t tree_count;
    uint32_t best_count;
    /* For low trees: costs of ways [site * site_count + site], and what low.h needs. */
    int64_t *low_cost, *low_work;
    uint32_t *low_parent;
};

static void find_links(struct by_steiner *steiner)
{
    const struct by_graph *graph = steiner->graph;
    uint32_t n = graph->node_count;

    steiner->link_of = by_alloc((size_t)n * n, sizeof(*steiner->link_of));
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = i + 1; j < n; j++)
            steiner->link_count += by_graph_capacity(graph, i, j) > 0;
    steiner->ends = by_alloc(steiner->link_count, sizeof(*steiner->ends));
    steiner->link_count = 0;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = i + 1; j < n; j++) {
            steiner->link_of[(size_t)i * n + j] = steiner->link_of[(size_t)j * n + i] = UINT32_MAX;
            if (by_graph_capacity(graph, i, j) == 0)
                continue;
            steiner->ends[steiner->link_count][0] = i;
            steiner->ends[steiner->link_count][1] = j;
            steiner->link_of[(size_t)i * n + j] = steiner->link_of[(size_t)j * n + i] = steiner->link_count++;
        }
}

struct by_steiner *by_steiner_new(const struct by_graph *graph)
{
    struct by_steiner *steiner = by_alloc(1, sizeof(*steiner));
    uint32_t n = graph->node_count, sites;

    steiner->graph = graph;
    find_links(steiner);
    steiner->site_node = by_alloc(n, sizeof(*steiner->site_node));
    for (uint32_t i = 0; i < n; i++)
        if (graph->compute[i])
            steiner->site_node[steiner->site_count++] = i;
    steiner->compute_count = steiner->site_count;
    steiner->row_count = steiner->link_count;
    steiner->row_node = by_alloc(n, sizeof(*steiner->row_node));
    for (uint32_t i = 0; i < n; i++) {
        if (graph->branch[i] && graph->budget[i] >= 0)
            steiner->row_node[steiner->row_count++ - steiner->link_count] = i;
        if (graph->branch[i])
            steiner->site_node[steiner->site_count++] = i;
    }
    sites = steiner->site_count;
    steiner->site_price = by_alloc(sites, sizeof(*steiner->site_price));
    steiner->distance = by_alloc(n, sizeof(*steiner->distance));
    steiner->settled = by_alloc(n, sizeof(*steiner->settled));
    steiner->previous = by_alloc((size_t)sites * n, sizeof(*steiner->previous));
    steiner->ways = by_alloc((size_t)sites * sites / 2 + 1, sizeof(*steiner->ways));
    steiner->chosen = by_alloc(sites, sizeof(*steiner->chosen));
    steiner->best_chosen = by_alloc(sites, sizeof(*steiner->best_chosen));
    steiner->part = by_alloc(sites, sizeof(*steiner->part));
    steiner->degree = by_alloc(sites, sizeof(*steiner->degree));
    steiner->tree = by_alloc(sites, sizeof(*steiner->tree));
    steiner->best_tree = by_alloc(sites, sizeof(*steiner->best_tree));
    return steiner;
}

void by_steiner_free(struct by_steiner *steiner)
{
    if (!steiner)
        return;
    free(steiner->ends);
    free(steiner->link_of);
    free(steiner->row_node);
    free(steiner->site_node);
    free(steiner->site_price);
    free(steiner->distance);
    free(steiner->settled);
    free(steiner->previous);
    free(steiner->ways);
    free(steiner->chosen);
    free(steiner->best_chosen);
    free(steiner->part);
    free(steiner->degree);
    free(steiner->tree);
    free(steiner->best_tree);
    free(steiner->low_cost);
    free(steiner->low_work);
    free(steiner->low_parent);
    free(steiner);
}

uint32_t by_steiner_row_count(const struct by_steiner *steiner)
{
    return steiner->row_count;
}

void by_steiner_row_ends(const struct by_steiner *steiner, uint32_t row, uint32_t ends[2])
{
    bool link = row < steiner->link_count;

    ends[0] = link ? steiner->ends[row][0] : steiner->row_node[row - steiner->link_count];
    ends[1] = link ? steiner->ends[row][1] : ends[0];
}

int64_t by_steiner_row_capacity(const struct by_steiner *steiner, uint32_t row)
{
    uint32_t ends[2];

    by_steiner_row_ends(steiner, row, ends);
    return row < steiner->link_count ? by_graph_capacity(steiner->graph, ends[0], ends[1])
                                     : steiner->graph->budget[ends[0]];
}

bool by_steiner_can_prove(const struct by_steiner *steiner)
{
    return steiner->site_count - steiner->compute_count <= EXHAUSTIVE_MAX &&
           steiner->site_count <= PROVED_SITES_MAX;
}

/* Finds the cheapest paths from one site to the others, through nodes that are not sites (Dijkstra
 * on a dense graph). */
static void search_from(struct by_steiner *steiner, uint32_t site, const int64_t *prices)
{
    const struct by_graph *graph = steiner->graph;
    uint32_t n = graph->node_count, *previous = &steiner->previous[(size_t)site * n];

    for (uint32_t i = 0; i < n; i++) {
        steiner->distance[i] = FAR;
        steiner->settled[i] = false;
    }
    steiner->distance[steiner->site_node[site]] = 0;
    for (;;) {
        uint32_t at = UINT32_MAX;

        for (uint32_t i = 0; i < n; i++)
            if (!steiner->settled[i] && steiner->distance[i] != FAR &&
                (at == UINT32_MAX || steiner->distance[i] < steiner->distance[at]))
                at = i;
        if (at == UINT32_MAX)
            return;
        steiner->settled[at] = true;
        if (at != steiner->site_node[site] &&
            (graph->compute[at] || (graph->branch[at] && graph->budget[at] < 0)))
            continue;
        for (uint32_t i = 0; i < n; i++) {
            uint32_t link = i == at ? UINT32_MAX : steiner->link_of[(size_t)at * n + i];
            int64_t cost;

            if (link == UINT32_MAX || steiner->settled[i])
                continue;
            cost = steiner->distance[at] + prices[link] * HOP_SCALE + 1;
            if (cost < steiner->distance[i]) {
                steiner->distance[i] = cost;
                previous[i] = at;
            }
        }
    }
}

static int compare_ways(const void *left, const void *right)
{
    const struct steiner_way *a = left, *b = right;

    if (a->cost != b->cost)
        return a->cost < b->cost ? -1 : 1;
    if (a->a != b->a)
        return a->a < b->a ? -1 : 1;
    return (a->b > b->b) - (a->b < b->b);
}

static void find_ways(struct by_steiner *steiner, const int64_t *prices)
{
    steiner->way_count = 0;
    for (uint32_t a = 0; a < steiner->site_count; a++) {
        search_from(steiner, a, prices);
        for (uint32_t b = a + 1; b < steiner->site_count; b++) {
            int64_t cost = steiner->distance[steiner->site_node[b]];

            if (cost != FAR)
                steiner->ways[steiner->way_count++] = (struct steiner_way){
                    cost + (steiner->site_price[a] + steiner->site_price[b]) * HOP_SCALE, a, b};
        }
    }
    if (steiner->way_count > 1)
        qsort(steiner->ways, steiner->way_count, sizeof(*steiner->ways), compare_ways);
}

static uint32_t part_of(uint32_t *part, uint32_t site)
{
    while (part[site] != site) {
        part[site] = part[part[site]];
        site = part[site];
    }
    return site;
}

/* Removes chosen switches that are leaves. */
static void prune_leaves(struct by_steiner *steiner)
{
    bool changed = true;

    while (changed) {
        uint32_t kept = 0;

        changed = false;
        for (uint32_t i = 0; i < steiner->tree_count; i++) {
            struct steiner_way *way = &steiner->tree[i];
            bool drop = (way->a >= steiner->compute_count && steiner->degree[way->a] == 1) ||
                        (way->b >= steiner->compute_count && steiner->degree[way->b] == 1);

            if (drop) {
                steiner->degree[way->a]--;
                steiner->degree[way->b]--;
                changed = true;
            } else {
                steiner->tree[kept++] = *way;
            }
        }
        steiner->tree_count = kept;
    }
}

/* Keeps the current tree, without leaves that are switches, if it is the best of all. */
static void keep_cheaper(struct by_steiner *steiner)
{
    __int128 cost = 0;

    prune_leaves(steiner);
    for (uint32_t i = 0; i < steiner->tree_count; i++)
        cost += steiner->tree[i].cost;
    for (uint32_t i = steiner->compute_count; i < steiner->site_count; i++)
        if (steiner->degree[i] > 0)
            cost -= (__int128)2 * steiner->site_price[i] * HOP_SCALE;
    if (steiner->best_count > 0 && cost >= steiner->best_cost)
        return;
    steiner->best_cost = cost;
    steiner->best_count = steiner->tree_count;
    memcpy(steiner->best_tree, steiner->tree, steiner->tree_count * sizeof(*steiner->tree));
    memcpy(steiner->best_chosen, steiner->chosen, steiner->site_count * sizeof(*steiner->chosen));
    for (uint32_t i = steiner->compute_count; i < steiner->site_count; i++)
        steiner->best_chosen[i] = steiner->degree[i] > 0;
}

/* Finds the minimum spanning tree of compute nodes and chosen switches, without leaves that are
 * switches; keeps the best of all. */
static void try_chosen(struct by_steiner *steiner)
{
    uint32_t wanted = 0;
    __int128 floor = 0;

    for (uint32_t i = 0; i < steiner->site_count; i++) {
        steiner->part[i] = i;
        steiner->degree[i] = 0;
        wanted += i < steiner->compute_count || steiner->chosen[i];
        if (i >= steiner->compute_count && steiner->chosen[i])
            floor -= 2 * steiner->site_price[i];
    }
    steiner->tree_count = 0;
    for (uint32_t i = 0; i < steiner->way_count && steiner->tree_count + 1 < wanted; i++) {
        const struct steiner_way *way = &steiner->ways[i];
        uint32_t a, b;

        if ((way->a >= steiner->compute_count && !steiner->chosen[way->a]) ||
            (way->b >= steiner->compute_count && !steiner->chosen[way->b]))
            continue;
        a = part_of(steiner->part, way->a);
        b = part_of(steiner->part, way->b);
        if (a == b)
            continue;
        steiner->part[a] = b;
        steiner->degree[way->a]++;
        steiner->degree[way->b]++;
        steiner->tree[steiner->tree_count++] = *way;
        floor += way->cost / HOP_SCALE;
    }
    if (steiner->tree_count + 1 < wanted)
        return;
    if (steiner->floor < 0 || floor < steiner->floor)
        steiner->floor = floor > 0 ? floor : 0;
    keep_cheaper(steiner);
}

static void try_all(struct by_steiner *steiner)
{
    uint32_t optional = steiner->site_count - steiner->compute_count;

    for (uint32_t subset = 0; subset < (uint32_t)1 << optional; subset++) {
        for (uint32_t i = 0; i < optional; i++)
            steiner->chosen[steiner->compute_count + i] = subset >> i & 1;
        try_chosen(steiner);
    }
}

/* Adds or removes one switch at a time, starting from the best subset so far, as long as that
 * helps. */
static void improve(struct by_steiner *steiner)
{
    __int128 before;

    do {
        before = steiner->best_cost;
        for (uint32_t i = steiner->compute_count; i < steiner->site_count; i++) {
            memcpy(steiner->chosen, steiner->best_chosen, steiner->site_count * sizeof(*steiner->chosen));
            steiner->chosen[i] = !steiner->chosen[i];
            try_chosen(steiner);
        }
    } while (steiner->best_cost < before);
}

static void try_some(struct by_steiner *steiner)
{
    for (int all = 0; all < 2; all++) {
        for (uint32_t i = steiner->compute_count; i < steiner->site_count; i++)
            steiner->chosen[i] = all;
        try_chosen(steiner);
    }
    improve(steiner);
}

/* Counts the passes of the best tree by row; returns its price. */
static __int128 count_rows(const struct by_steiner *steiner, const int64_t *prices, int32_t *counts)
{
    uint32_t n = steiner->graph->node_count;
    __int128 price = 0;

    memset(counts, 0, steiner->row_count * sizeof(*counts));
    for (uint32_t row = steiner->link_count; row < steiner->row_count; row++)
        for (uint32_t i = 0; i < steiner->best_count; i++) {
            uint32_t node = steiner->row_node[row - steiner->link_count];

            counts[row] += steiner->site_node[steiner->best_tree[i].a] == node;
            counts[row] += steiner->site_node[steiner->best_tree[i].b] == node;
        }
    for (uint32_t row = steiner->link_count; row < steiner->row_count; row++)
        counts[row] = counts[row] > 2 ? counts[row] - 2 : 0;
    for (uint32_t i = 0; i < steiner->best_count; i++) {
        const struct steiner_way *way = &steiner->best_tree[i];
        uint32_t node = steiner->site_node[way->b];

        while (node != steiner->site_node[way->a]) {
            uint32_t before = steiner->previous[(size_t)way->a * n + node];

            counts[steiner->link_of[(size_t)before * n + node]]++;
            node = before;
        }
    }
    for (uint32_t row = 0; row < steiner->row_count; row++)
        price += (__int128)prices[row] * counts[row];
    return price;
}

/* Takes the prices, and finds the cheapest ways between sites. */
static void take_prices(struct by_steiner *steiner, const int64_t *prices)
{
    steiner->best_count = 0;
    steiner->floor = -1;
    for (uint32_t i = 0; i < steiner->site_count; i++)
        steiner->site_price[i] = 0;
    for (uint32_t i = 0; i < steiner->site_count; i++)
        for (uint32_t row = steiner->link_count; row < steiner->row_count; row++)
            if (steiner->row_node[row - steiner->link_count] == steiner->site_node[i])
                steiner->site_price[i] = prices[row];
    find_ways(steiner, prices);
}

__int128 by_steiner_price(struct by_steiner *steiner, const int64_t *prices, bool prove, int32_t *counts,
                          __int128 *floor)
{
    take_prices(steiner, prices);
    prove = prove && by_steiner_can_prove(steiner);
    if (prove)
        try_all(steiner);
    else
        try_some(steiner);
    /* the fabric is connected, since the caller has found a positive cut */
    BY_ASSERT(steiner->best_count > 0);
    *floor = prove ? steiner->floor : -1;
    return count_rows(steiner, prices, counts);
}

/* Lists up to ROOTS_LOW sites from which all compute nodes are at most `height_max` hops away on
 * the cheapest ways, the nearest first. */
static uint32_t low_roots(const struct by_steiner *steiner, uint32_t height_max, uint32_t *roots)
{
    uint32_t count = 0, far[ROOTS_LOW];

    for (uint32_t i = steiner->site_count; i-- > 0;) {
        uint32_t farthest = 0, at;
        bool adds = i >= steiner->compute_count && steiner->graph->budget[steiner->site_node[i]] >= 0;

        for (uint32_t j = 0; j < steiner->compute_count && !adds; j++) {
            int64_t cost = steiner->low_cost[(size_t)i * steiner->site_count + j];
            uint32_t hops = cost == BY_ARBORESCENCE_NONE ? UINT32_MAX : (uint32_t)(cost % HOP_SCALE);

            if (i != j && hops > farthest)
                farthest = hops;
        }
        if (adds || farthest > height_max || (count == ROOTS_LOW && farthest >= far[count - 1]))
            continue;
        at = count < ROOTS_LOW ? count++ : count - 1;
        for (; at > 0 && far[at - 1] > farthest; at--) {
            far[at] = far[at - 1];
            roots[at] = roots[at - 1];
        }
        far[at] = farthest;
        roots[at] = i;
    }
    return count;
}

/* Finds a low tree over compute nodes and chosen switches; keeps the best of all. */
static void try_low(struct by_steiner *steiner, uint32_t root, uint32_t height_max)
{
    uint32_t n = steiner->site_count;

    if (!by_low_tree(n, steiner->compute_count, steiner->low_cost, HOP_SCALE, steiner->chosen, root,
                     height_max, steiner->low_parent, steiner->low_work))
        return;
    memset(steiner->degree, 0, n * sizeof(*steiner->degree));
    steiner->tree_count = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t top = steiner->low_parent[i];

        if (top == UINT32_MAX)
            continue;
        steiner->degree[i]++;
        steiner->degree[top]++;
        steiner->tree[steiner->tree_count++] = (struct steiner_way){steiner->low_cost[(size_t)top * n + i],
                                                                    i < top ? i : top, i < top ? top : i};
    }
    keep_cheaper(steiner);
}

bool by_steiner_price_low(struct by_steiner *steiner, const int64_t *prices, uint32_t height_max,
                          int32_t *counts)
{
    uint32_t n = steiner->site_count, roots[ROOTS_LOW], count;
    size_t cells = (size_t)n * n;
    __int128 before;

    if (!steiner->low_cost) {
        steiner->low_cost = by_alloc(cells, sizeof(*steiner->low_cost));
        steiner->low_work = by_alloc((size_t)3 * n, sizeof(*steiner->low_work));
        steiner->low_parent = by_alloc(n, sizeof(*steiner->low_parent));
    }
    take_prices(steiner, prices);
    for (size_t i = 0; i < cells; i++)
        steiner->low_cost[i] = BY_ARBORESCENCE_NONE;
    for (uint32_t i = 0; i < steiner->way_count; i++) {
        const struct steiner_way *way = &steiner->ways[i];

        steiner->low_cost[(size_t)way->a * n + way->b] = steiner->low_cost[(size_t)way->b * n + way->a] =
            way->cost;
    }
    count = low_roots(steiner, height_max, roots);
    for (uint32_t r = 0; r < count; r++) {
        for (uint32_t i = steiner->compute_count; i < n; i++)
            steiner->chosen[i] = true;
        try_low(steiner, roots[r], height_max);
    }
    do {
        before = steiner->best_cost;
        for (uint32_t i = steiner->compute_count; i < n && steiner->best_count > 0; i++)
            for (uint32_t r = 0; r < count && r < 4; r++) {
                memcpy(steiner->chosen, steiner->best_chosen, n * sizeof(*steiner->chosen));
                steiner->chosen[i] = !steiner->chosen[i];
                try_low(steiner, roots[r], height_max);
            }
    } while (steiner->best_count > 0 && steiner->best_cost < before);
    if (steiner->best_count > 0)
        count_rows(steiner, prices, counts);
    return steiner->best_count > 0;
}

/* Returns the path of a way, starting at site `from`. */
static struct by_path make_path(const struct by_steiner *steiner, const struct steiner_way *way,
                                uint32_t from)
{
    uint32_t n = steiner->graph->node_count, count = 1, at;
    struct by_path path;

    for (uint32_t node = steiner->site_node[way->b]; node != steiner->site_node[way->a]; count++)
        node = steiner->previous[(size_t)way->a * n + node];
    path.node_count = count;
    path.nodes = by_alloc(count, sizeof(*path.nodes));
    at = from == way->a ? count - 1 : 0;
    for (uint32_t node = steiner->site_node[way->b];; node = steiner->previous[(size_t)way->a * n + node]) {
        path.nodes[at] = node;
        at += from == way->a ? -1 : 1;
        if (node == steiner->site_node[way->a])
            return path;
    }
}

struct by_path *by_steiner_paths(const struct by_steiner *steiner, uint32_t *root, uint32_t *path_count)
{
    struct by_path *paths = by_alloc(steiner->best_count, sizeof(*paths));
    bool *reached = by_alloc(steiner->site_count, sizeof(*reached)),
         *used = by_alloc(steiner->best_count, sizeof(*used));

    reached[0] = true;
    *root = steiner->site_node[0];
    *path_count = 0;
    while (*path_count < steiner->best_count)
        for (uint32_t i = 0; i < steiner->best_count; i++) {
            const struct steiner_way *way = &steiner->best_tree[i];

            if (used[i] || (!reached[way->a] && !reached[way->b]))
                continue;
            paths[(*path_count)++] = make_path(steiner, way, reached[way->a] ? way->a : way->b);
            reached[way->a] = reached[way->b] = used[i] = true;
        }
    free(reached);
    free(used);
    return paths;
}
