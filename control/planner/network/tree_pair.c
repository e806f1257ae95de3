/*
 * Cheapest pairs of trees on directed fabrics. See tree_pair.h. Both trees are out-trees of their
 * graph (the tree that carries up is in the transposed graph), so the same code serves both
 * directions.
 */
#include "control/planner/network/tree_pair.h"

#include "control/base/alloc.h"
#include "control/planner/network/arborescence.h"
#include "control/planner/network/low.h"
#include "offload/base/assert.h"

/* A hop costs 1 / HOP_SCALE of a unit of price, as in steiner.c. */
#define HOP_SCALE ((int64_t)1 << 14)
/* Optional switches of a direction that are tried in all combinations, and sites up to which this
 * is done (counts). */
#define EXHAUSTIVE_MAX   6u
#define PROVED_SITES_MAX 40u

/* One direction: its sites, the cheapest paths between them, and the best tree of the pair. */
struct tree_pair_side {
    const struct by_graph *graph;
    uint32_t site_count;
    uint32_t *site_node; /* compute nodes first */
    uint32_t *site_of;   /* by node; UINT32_MAX if it is not a site */
    int64_t *cost;       /* [site * site_count + site] */
    int64_t *price;      /* by site: of an addition there */
    __int128 floor;      /* for the current root: the least price of a tree, -1 for none */
    uint32_t *previous;  /* [site * node_count + node] */
    int64_t *distance;
    bool *settled;
    int64_t *reduced; /* costs among the chosen sites */
    uint32_t *parent;
    bool *chosen;
    /* The current tree and the best one, as parents by site; UINT32_MAX for the root and for sites
     * outside. */
    uint32_t *tree;
    uint32_t *best;
    int64_t *work; /* for low.h */
};

struct by_tree_pair {
    struct tree_pair_side up, down;
    uint32_t node_count;
    uint32_t compute_count;
    uint32_t row_count;
    uint32_t arc_count;
    uint32_t (*ends)[2]; /* by row */
    uint32_t *row_of;    /* by cell, in the topology's direction */
    int64_t *limits;
    uint32_t root;       /* of the best pair */
    uint32_t height_max; /* of each tree in hops, UINT32_MAX: any */
};

static void side_make(struct tree_pair_side *side, const struct by_graph *graph)
{
    uint32_t n = graph->node_count;

    *side = (struct tree_pair_side){.graph = graph};
    side->site_node = by_alloc(n, sizeof(*side->site_node));
    side->site_of = by_alloc(n, sizeof(*side->site_of));
    for (uint32_t pass = 0; pass < 2; pass++)
        for (uint32_t i = 0; i < n; i++)
            if (pass ? graph->branch[i] : graph->compute[i])
                side->site_node[side->site_count++] = i;
    for (uint32_t i = 0; i < n; i++)
        side->site_of[i] = UINT32_MAX;
    for (uint32_t i = 0; i < side->site_count; i++)
        side->site_of[side->site_node[i]] = i;
    side->cost = by_alloc((size_t)side->site_count * side->site_count, sizeof(*side->cost));
    side->reduced = by_alloc((size_t)side->site_count * side->site_count, sizeof(*side->reduced));
    side->previous = by_alloc((size_t)side->site_count * n, sizeof(*side->previous));
    side->distance = by_alloc(n, sizeof(*side->distance));
    side->settled = by_alloc(n, sizeof(*side->settled));
    side->price = by_alloc(side->site_count, sizeof(*side->price));
    side->parent = by_alloc(side->site_count, sizeof(*side->parent));
    side->chosen = by_alloc(side->site_count, sizeof(*side->chosen));
    side->tree = by_alloc(side->site_count, sizeof(*side->tree));
    side->best = by_alloc(side->site_count, sizeof(*side->best));
    side->work = by_alloc((size_t)3 * side->site_count, sizeof(*side->work));
}

static void side_free(struct tree_pair_side *side)
{
    free(side->site_node);
    free(side->site_of);
    free(side->cost);
    free(side->price);
    free(side->reduced);
    free(side->previous);
    free(side->distance);
    free(side->settled);
    free(side->parent);
    free(side->chosen);
    free(side->tree);
    free(side->best);
    free(side->work);
}

struct by_tree_pair *by_tree_pair_new(const struct by_graph *up, const struct by_graph *down)
{
    struct by_tree_pair *tree_pair = by_alloc(1, sizeof(*tree_pair));
    size_t cells = (size_t)down->node_count * down->node_count;

    side_make(&tree_pair->up, up);
    side_make(&tree_pair->down, down);
    tree_pair->node_count = down->node_count;
    tree_pair->compute_count = down->compute_count;
    tree_pair->row_of = by_alloc(cells, sizeof(*tree_pair->row_of));
    tree_pair->limits = by_alloc(cells + down->node_count, sizeof(*tree_pair->limits));
    tree_pair->ends = by_alloc(cells + down->node_count, sizeof(*tree_pair->ends));
    for (uint32_t from = 0; from < down->node_count; from++)
        for (uint32_t to = 0; to < down->node_count; to++) {
            size_t cell = (size_t)from * down->node_count + to;

            tree_pair->row_of[cell] = UINT32_MAX;
            if (down->capacity[cell] == 0)
                continue;
            tree_pair->ends[tree_pair->row_count][0] = from;
            tree_pair->ends[tree_pair->row_count][1] = to;
            tree_pair->limits[tree_pair->row_count] = down->capacity[cell];
            tree_pair->row_of[cell] = tree_pair->row_count++;
        }
    tree_pair->arc_count = tree_pair->row_count;
    for (uint32_t i = 0; i < up->node_count; i++)
        if (up->branch[i] && up->budget[i] >= 0) {
            tree_pair->ends[tree_pair->row_count][0] = tree_pair->ends[tree_pair->row_count][1] = i;
            tree_pair->limits[tree_pair->row_count++] = up->budget[i];
        }
    return tree_pair;
}

void by_tree_pair_free(struct by_tree_pair *tree_pair)
{
    if (!tree_pair)
        return;
    side_free(&tree_pair->up);
    side_free(&tree_pair->down);
    free(tree_pair->row_of);
    free(tree_pair->ends);
    free(tree_pair->limits);
    free(tree_pair);
}

uint32_t by_tree_pair_row_count(const struct by_tree_pair *tree_pair)
{
    return tree_pair->row_count;
}

int64_t by_tree_pair_row_capacity(const struct by_tree_pair *tree_pair, uint32_t row)
{
    return tree_pair->limits[row];
}

void by_tree_pair_row_ends(const struct by_tree_pair *tree_pair, uint32_t row, uint32_t ends[2])
{
    ends[0] = tree_pair->ends[row][0];
    ends[1] = tree_pair->ends[row][1];
}

bool by_tree_pair_can_prove(const struct by_tree_pair *tree_pair)
{
    return tree_pair->up.site_count - tree_pair->compute_count <= EXHAUSTIVE_MAX &&
           tree_pair->down.site_count - tree_pair->compute_count <= EXHAUSTIVE_MAX &&
           by_tree_pair_site_count(tree_pair) <= PROVED_SITES_MAX;
}

uint32_t by_tree_pair_site_count(const struct by_tree_pair *tree_pair)
{
    return tree_pair->up.site_count > tree_pair->down.site_count ? tree_pair->up.site_count
                                                                 : tree_pair->down.site_count;
}

/* The row of an arc of one side's graph. */
static uint32_t row_of(const struct by_tree_pair *tree_pair, const struct tree_pair_side *side, uint32_t from,
                       uint32_t to)
{
    bool transposed = side == &tree_pair->up;

    return tree_pair
        ->row_of[(size_t)(transposed ? to : from) * tree_pair->node_count + (transposed ? from : to)];
}

/* Finds the cheapest paths from one site to the others, through nodes that are not sites. */
static void search_from(const struct by_tree_pair *tree_pair, struct tree_pair_side *side, uint32_t site,
                        const int64_t *prices)
{
    uint32_t n = tree_pair->node_count, start = side->site_node[site];

    for (uint32_t i = 0; i < n; i++) {
        side->distance[i] = BY_ARBORESCENCE_NONE;
        side->settled[i] = false;
    }
    side->distance[start] = 0;
    for (;;) {
        uint32_t at = UINT32_MAX;
        bool passes;

        for (uint32_t i = 0; i < n; i++)
            if (!side->settled[i] && side->distance[i] != BY_ARBORESCENCE_NONE &&
                (at == UINT32_MAX || side->distance[i] < side->distance[at]))
                at = i;
        if (at == UINT32_MAX)
            break;
        side->settled[at] = true;
        passes = at == start || side->site_of[at] == UINT32_MAX || side->graph->budget[at] >= 0;
        for (uint32_t i = 0; i < n && passes; i++) {
            uint32_t row = row_of(tree_pair, side, at, i);
            int64_t cost;

            if (row == UINT32_MAX || side->settled[i])
                continue;
            cost = side->distance[at] + prices[row] * HOP_SCALE + 1;
            if (cost < side->distance[i]) {
                side->distance[i] = cost;
                side->previous[(size_t)site * n + i] = at;
            }
        }
    }
    for (uint32_t i = 0; i < side->site_count; i++)
        side->cost[(size_t)site * side->site_count + i] =
            i == site ? BY_ARBORESCENCE_NONE : side->distance[side->site_node[i]];
}

/* Returns the price of the current tree, additions included. */
static __int128 sum_tree(const struct by_tree_pair *tree_pair, const struct tree_pair_side *side)
{
    __int128 cost = 0;

    for (uint32_t i = 0; i < side->site_count; i++) {
        uint32_t top = side->tree[i];

        if (top == UINT32_MAX)
            continue;
        cost += side->cost[(size_t)top * side->site_count + i] + (__int128)side->price[top] * HOP_SCALE;
        if (i >= tree_pair->compute_count)
            cost -= (__int128)side->price[i] * HOP_SCALE;
    }
    return cost;
}

/* Removes switches that lead nowhere from the current tree. */
static void prune(const struct by_tree_pair *tree_pair, struct tree_pair_side *side)
{
    bool changed = true;

    while (changed) {
        changed = false;
        for (uint32_t i = tree_pair->compute_count; i < side->site_count; i++) {
            bool leaf = side->tree[i] != UINT32_MAX;

            for (uint32_t j = 0; j < side->site_count && leaf; j++)
                leaf = side->tree[j] != i;
            if (leaf) {
                side->tree[i] = UINT32_MAX;
                changed = true;
            }
        }
    }
}

/* Finds the cheapest tree from `root` over compute nodes and chosen switches, into side->tree;
 * negative when there is none. */
static __int128 try_chosen(const struct by_tree_pair *tree_pair, struct tree_pair_side *side, uint32_t root)
{
    uint32_t count = 0, root_number = 0, *sites = by_alloc(side->site_count, sizeof(*sites));
    __int128 cost = -1, root_price = (__int128)side->price[root] * HOP_SCALE, floor;

    for (uint32_t i = 0; i < side->site_count; i++) {
        side->tree[i] = UINT32_MAX;
        if (i == root)
            root_number = count;
        if (i < tree_pair->compute_count || side->chosen[i] || i == root)
            sites[count++] = i;
    }
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t j = 0; j < count; j++) {
            int64_t way = side->cost[(size_t)sites[i] * side->site_count + sites[j]];

            side->reduced[(size_t)i * count + j] =
                way == BY_ARBORESCENCE_NONE ? way : way + side->price[sites[i]] * HOP_SCALE;
        }
    if (tree_pair->height_max == UINT32_MAX
            ? by_arborescence_find(count, side->reduced, root_number, side->parent)
            : by_low_tree(count, tree_pair->compute_count, side->reduced, HOP_SCALE, NULL, root_number,
                          tree_pair->height_max, side->parent, side->work)) {
        for (uint32_t i = 0; i < count; i++)
            if (i != root_number && side->parent[i] != UINT32_MAX)
                side->tree[sites[i]] = sites[side->parent[i]];
        floor = (sum_tree(tree_pair, side) - root_price) / HOP_SCALE;
        if (side->floor < 0 || floor < side->floor)
            side->floor = floor > 0 ? floor : 0;
        prune(tree_pair, side);
        cost = sum_tree(tree_pair, side) - root_price;
    }
    free(sites);
    return cost;
}

/* Keeps the current tree if it is cheaper. */
static void keep_cheaper(struct tree_pair_side *side, __int128 cost, __int128 *least, uint32_t *best)
{
    if (cost < 0 || (*least >= 0 && cost >= *least))
        return;
    *least = cost;
    memcpy(best, side->tree, side->site_count * sizeof(*best));
}

/* Finds the cheapest tree from `root` over all choices of optional switches. */
static __int128 best_of_all(const struct by_tree_pair *tree_pair, struct tree_pair_side *side, uint32_t root,
                            uint32_t *best)
{
    uint32_t optional = side->site_count - tree_pair->compute_count;
    __int128 least = -1;

    side->floor = -1;
    for (uint32_t subset = 0; subset < (uint32_t)1 << optional; subset++) {
        for (uint32_t i = 0; i < optional; i++)
            side->chosen[tree_pair->compute_count + i] = subset >> i & 1;
        if (root < tree_pair->compute_count || side->chosen[root])
            keep_cheaper(side, try_chosen(tree_pair, side, root), &least, best);
    }
    return least;
}

/* Finds a cheap tree from `root`, into `best` (by site): starts with all optional switches, then
 * removes or restores one at a time. */
static __int128 best_from(const struct by_tree_pair *tree_pair, struct tree_pair_side *side, uint32_t root,
                          uint32_t *best)
{
    __int128 least = -1, before;

    for (uint32_t all = 0; all < 2; all++) {
        __int128 cost;

        for (uint32_t i = tree_pair->compute_count; i < side->site_count; i++)
            side->chosen[i] = all;
        cost = try_chosen(tree_pair, side, root);
        if (cost >= 0 && (least < 0 || cost < least)) {
            least = cost;
            memcpy(best, side->tree, side->site_count * sizeof(*best));
        }
    }
    do {
        before = least;
        for (uint32_t i = tree_pair->compute_count; i < side->site_count && least >= 0; i++) {
            __int128 cost;

            for (uint32_t j = tree_pair->compute_count; j < side->site_count; j++)
                side->chosen[j] = (best[j] != UINT32_MAX) != (i == j);
            cost = try_chosen(tree_pair, side, root);
            if (cost >= 0 && cost < least) {
                least = cost;
                memcpy(best, side->tree, side->site_count * sizeof(*best));
            }
        }
    } while (least < before);
    return least;
}

static void count_rows(const struct by_tree_pair *tree_pair, const struct tree_pair_side *side,
                       int32_t *counts)
{
    for (uint32_t i = 0; i < side->site_count; i++) {
        uint32_t node = side->site_node[i], top = side->best[i];

        while (top != UINT32_MAX && node != side->site_node[top]) {
            uint32_t before = side->previous[(size_t)top * tree_pair->node_count + node];

            counts[row_of(tree_pair, side, before, node)]++;
            node = before;
        }
    }
}

/* Counts children - 1 at each switch with a budget. */
static void count_additions(const struct by_tree_pair *tree_pair, int32_t *counts)
{
    for (uint32_t row = tree_pair->arc_count; row < tree_pair->row_count; row++) {
        uint32_t site = tree_pair->up.site_of[tree_pair->ends[row][0]];

        for (uint32_t i = 0; i < tree_pair->up.site_count; i++)
            counts[row] += tree_pair->up.best[i] == site;
        counts[row] -= counts[row] > 0;
    }
}

/* The current pair, and the price of the best pair; negative as long as there is none. */
struct trial {
    uint32_t *up_tree;
    uint32_t *down_tree;
    __int128 least;
    bool prove;
    __int128 floor;
};

/* Tries the pair of trees rooted at `node`. */
static void try_root(struct by_tree_pair *tree_pair, uint32_t node, struct trial *trial)
{
    uint32_t up_root = tree_pair->up.site_of[node], down_root = tree_pair->down.site_of[node];
    __int128 up, down;

    if (up_root == UINT32_MAX || down_root == UINT32_MAX)
        return;
    up = trial->prove ? best_of_all(tree_pair, &tree_pair->up, up_root, trial->up_tree)
                      : best_from(tree_pair, &tree_pair->up, up_root, trial->up_tree);
    down = trial->prove ? best_of_all(tree_pair, &tree_pair->down, down_root, trial->down_tree)
                        : best_from(tree_pair, &tree_pair->down, down_root, trial->down_tree);
    if (up < 0 || down < 0)
        return;
    if (trial->floor < 0 || tree_pair->up.floor + tree_pair->down.floor < trial->floor)
        trial->floor = tree_pair->up.floor + tree_pair->down.floor;
    if (trial->least >= 0 && up + down >= trial->least)
        return;
    trial->least = up + down;
    tree_pair->root = node;
    memcpy(tree_pair->up.best, trial->up_tree, tree_pair->up.site_count * sizeof(*trial->up_tree));
    memcpy(tree_pair->down.best, trial->down_tree, tree_pair->down.site_count * sizeof(*trial->down_tree));
}

/* Finds the cheapest pair of at most `height_max` hops. False if there is none. */
static bool price_pair(struct by_tree_pair *tree_pair, const int64_t *prices, bool prove, int32_t *counts,
                       uint32_t height_max, __int128 *floor)
{
    struct trial trial = {by_alloc(tree_pair->up.site_count, sizeof(uint32_t)),
                          by_alloc(tree_pair->down.site_count, sizeof(uint32_t)), -1,
                          prove && by_tree_pair_can_prove(tree_pair), -1};

    tree_pair->height_max = height_max;
    for (uint32_t row = tree_pair->arc_count; row < tree_pair->row_count; row++)
        tree_pair->up.price[tree_pair->up.site_of[tree_pair->ends[row][0]]] = prices[row];
    for (uint32_t i = 0; i < tree_pair->up.site_count; i++)
        search_from(tree_pair, &tree_pair->up, i, prices);
    for (uint32_t i = 0; i < tree_pair->down.site_count; i++)
        search_from(tree_pair, &tree_pair->down, i, prices);
    /* Among equal pairs the first is kept. Switches are tried first, since their
     * trees are lower. */
    for (uint32_t i = 0; i < tree_pair->node_count; i++)
        if (!tree_pair->down.graph->compute[i])
            try_root(tree_pair, i, &trial);
    for (uint32_t i = 0; i < tree_pair->node_count; i++)
        if (tree_pair->down.graph->compute[i])
            try_root(tree_pair, i, &trial);
    free(trial.up_tree);
    free(trial.down_tree);
    if (trial.least < 0)
        return false;
    memset(counts, 0, tree_pair->row_count * sizeof(*counts));
    count_rows(tree_pair, &tree_pair->up, counts);
    count_rows(tree_pair, &tree_pair->down, counts);
    count_additions(tree_pair, counts);
    *floor = trial.prove ? trial.floor : -1;
    return true;
}

void by_tree_pair_price(struct by_tree_pair *tree_pair, const int64_t *prices, bool prove, int32_t *counts,
                        __int128 *floor)
{
    bool found = price_pair(tree_pair, prices, prove, counts, UINT32_MAX, floor);

    BY_ASSERT(found); /* positive cuts: every compute node reaches every other */
}

bool by_tree_pair_price_low(struct by_tree_pair *tree_pair, const int64_t *prices, uint32_t height_max,
                            int32_t *counts)
{
    __int128 floor;

    return price_pair(tree_pair, prices, false, counts, height_max, &floor);
}

/* Returns the path to site `to` from its parent. */
static struct by_path make_path(const struct by_tree_pair *tree_pair, const struct tree_pair_side *side,
                                uint32_t to)
{
    uint32_t top = side->best[to], count = 1;
    struct by_path path;

    for (uint32_t node = side->site_node[to]; node != side->site_node[top]; count++)
        node = side->previous[(size_t)top * tree_pair->node_count + node];
    path.node_count = count;
    path.nodes = by_alloc(count, sizeof(*path.nodes));
    for (uint32_t node = side->site_node[to]; count-- > 0;
         node = side->previous[(size_t)top * tree_pair->node_count + node])
        path.nodes[count] = node;
    return path;
}

struct by_path *by_tree_pair_paths(const struct by_tree_pair *tree_pair, bool up, uint32_t *root,
                                   uint32_t *path_count)
{
    const struct tree_pair_side *side = up ? &tree_pair->up : &tree_pair->down;
    struct by_path *paths = by_alloc(side->site_count, sizeof(*paths));
    bool *reached = by_alloc(side->site_count, sizeof(*reached)), changed = true;

    *root = tree_pair->root;
    *path_count = 0;
    reached[side->site_of[tree_pair->root]] = true;
    while (changed) {
        changed = false;
        for (uint32_t i = 0; i < side->site_count; i++) {
            if (reached[i] || side->best[i] == UINT32_MAX || !reached[side->best[i]])
                continue;
            paths[(*path_count)++] = make_path(tree_pair, side, i);
            reached[i] = changed = true;
        }
    }
    free(reached);
    return paths;
}
