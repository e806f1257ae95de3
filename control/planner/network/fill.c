/*
 * Fills a fabric with cheap trees. See fill.h. The second method is the multiplicative-weights
 * method for packings (Garg and Koenemann 2007) in integers: the price of each link grows in
 * proportion to its load. Prices only guide; the rate is the exact rate of the trees kept.
 */
#include "control/planner/network/fill.h"

#include "control/base/alloc.h"
#include "control/base/clock.h"
#include "control/base/fraction.h"
#include "control/planner/network/grow.h"
#include "offload/base/errors.h"

#define PRICE_MAX ((int64_t)1 << 34)
/* A load of a link's whole capacity raises its price by 1 / SLOWNESS. */
#define SLOWNESS 6
/* Capacities are counted in parts of a unit, so that amounts are integers: a link of 2 that a tree
 * passes 32 times has room for 1/16. Divisible by 32 and by all numbers up to 12; fewer parts if
 * capacities exceed CAPACITY_MAX. */
#define PARTS        ((int64_t)110880)
#define CAPACITY_MAX ((int64_t)1 << 32)
/* Roots tried for a pair (count). */
#define ROOTS_TRIED 3u

/* A tree or a pair, kept until its weight is known. */
struct fill_kept {
    uint32_t root;
    int64_t amount;
    uint32_t first, count, split; /* paths; in a pair, those from `split` on carry down */
};

struct fill {
    struct by_grower *grower;
    const struct by_graph *both, *up, *down;
    bool pairs;
    uint32_t rows;
    int64_t parts; /* parts of a unit of capacity, in which amounts and loads are counted */
    int64_t *prices;
    int64_t *load;
    int32_t *counts;
    uint32_t root_count; /* for pairs: nodes where both trees may start, switches first */
    uint32_t *roots;
    /* the root switch with the least distance to its farthest compute node, or UINT32_MAX */
    uint32_t middle;
    uint32_t turn;
    struct fill_kept *kept;
    uint32_t kept_count, kept_room;
    struct by_path *paths; /* their nodes are in `pool` by offset until the end */
    uint32_t path_count, path_room;
    uint32_t *pool;
    uint32_t pool_count, pool_room;
};

/* Returns the hops to the farthest compute node. */
static uint32_t eccentricity(const struct by_grower *grower, const struct by_graph *graph, uint32_t start,
                             uint32_t *queue, uint32_t *hops)
{
    uint32_t head = 0, tail = 0, farthest = 0;

    memset(hops, 0xff, graph->node_count * sizeof(*hops));
    hops[start] = 0;
    queue[tail++] = start;
    while (head < tail) {
        uint32_t node = queue[head++];

        farthest = graph->compute[node] ? hops[node] : farthest;
        for (uint32_t i = grower->first[node]; i < grower->first[node + 1]; i++)
            if (hops[grower->links[i].to] == UINT32_MAX) {
                hops[grower->links[i].to] = hops[node] + 1;
                queue[tail++] = grower->links[i].to;
            }
    }
    return farthest;
}

static void find_middle(struct fill *fill)
{
    uint32_t n = fill->both->node_count, *queue = by_alloc(n, sizeof(*queue)),
             *hops = by_alloc(n, sizeof(*hops)), least = UINT32_MAX;

    fill->middle = UINT32_MAX;
    for (uint32_t i = 0; i < fill->root_count && !fill->both->compute[fill->roots[i]]; i++) {
        uint32_t farthest = eccentricity(fill->grower, fill->both, fill->roots[i], queue, hops);

        if (farthest < least) {
            least = farthest;
            fill->middle = fill->roots[i];
        }
    }
    free(queue);
    free(hops);
}

static void split_units(struct fill *fill)
{
    int64_t largest = 1;

    for (uint32_t i = 0; i < fill->rows; i++)
        if (fill->grower->capacity[i] != INT64_MAX && fill->grower->capacity[i] > largest)
            largest = fill->grower->capacity[i];
    fill->parts = PARTS;
    if (largest > CAPACITY_MAX / PARTS)
        fill->parts = largest < CAPACITY_MAX ? CAPACITY_MAX / largest : 1;
    for (uint32_t i = 0; i < fill->rows; i++)
        if (fill->grower->capacity[i] != INT64_MAX)
            fill->grower->capacity[i] *= fill->parts;
}

static void fill_make(struct fill *fill, const struct by_graph *both, const struct by_graph *up,
                      const struct by_graph *down, bool pairs)
{
    uint32_t n = both->node_count;

    *fill = (struct fill){.grower = by_grower_new(both, up, down), .both = both, .up = up, .down = down};
    fill->pairs = pairs;
    fill->rows = fill->grower->arc_count + n;
    split_units(fill);
    fill->prices = by_alloc(fill->rows, sizeof(*fill->prices));
    fill->load = by_alloc(fill->rows, sizeof(*fill->load));
    fill->counts = by_alloc(fill->rows, sizeof(*fill->counts));
    fill->roots = by_alloc(n, sizeof(*fill->roots));
    for (int pass = 0; pass < 2; pass++)
        for (uint32_t i = 0; i < n; i++)
            if (pass ? both->compute[i] : both->branch[i] && both->budget[i] < 0)
                fill->roots[fill->root_count++] = i;
    find_middle(fill);
}

static void fill_free(struct fill *fill)
{
    by_grower_free(fill->grower);
    free(fill->prices);
    free(fill->load);
    free(fill->counts);
    free(fill->roots);
    free(fill->kept);
    free(fill->paths);
    free(fill->pool);
}

/* Copies the grower's paths. */
static void keep_paths(struct fill *fill)
{
    for (uint32_t i = 0; i < fill->grower->path_count; i++) {
        const struct by_path *path = &fill->grower->paths[i];

        BY_GROW(fill->paths, fill->path_count, fill->path_room);
        if (fill->pool_count + path->node_count > fill->pool_room) {
            fill->pool_room = 2 * fill->pool_room + path->node_count;
            fill->pool = by_realloc(fill->pool, fill->pool_room, sizeof(*fill->pool));
        }
        memcpy(fill->pool + fill->pool_count, path->nodes, path->node_count * sizeof(*fill->pool));
        fill->paths[fill->path_count++] = (struct by_path){path->node_count, NULL};
        fill->pool_count += path->node_count;
    }
}

static void drop_last(struct fill *fill, uint32_t paths, uint32_t pool)
{
    fill->path_count = paths;
    fill->pool_count = pool;
    memset(fill->counts, 0, fill->rows * sizeof(*fill->counts));
}

static __int128 price_of_counts(const struct fill *fill)
{
    __int128 sum = 0;

    for (uint32_t i = 0; i < fill->rows; i++)
        if (fill->counts[i])
            sum += (__int128)fill->prices[i] * fill->counts[i];
    return sum;
}

/* Grows a tree, or a pair from one root, at the current prices; sets its counts and paths. */
static bool grow_from(struct fill *fill, uint32_t root, struct fill_kept *kept)
{
    enum by_tree_use first = fill->pairs ? BY_TREE_UP : BY_TREE_BOTH;

    *kept = (struct fill_kept){.root = root, .first = fill->path_count};
    if (!by_grower_run(fill->grower, first, root, fill->prices))
        return false;
    by_grower_count(fill->grower, first, fill->counts);
    keep_paths(fill);
    kept->split = fill->path_count - kept->first;
    if (fill->pairs) {
        if (!by_grower_run(fill->grower, BY_TREE_DOWN, root, fill->prices))
            return false;
        by_grower_count(fill->grower, BY_TREE_DOWN, fill->counts);
        keep_paths(fill);
    }
    kept->count = fill->path_count - kept->first;
    return true;
}

/* Returns the price of the tree from the next switch from `turn` on that can be a root; -1 if there
 * is none. */
static __int128 try_switches(struct fill *fill, uint32_t paths, uint32_t pool)
{
    uint32_t switches = 0;
    struct fill_kept kept;

    while (switches < fill->root_count && !fill->both->compute[fill->roots[switches]])
        switches++;
    for (uint32_t i = 0; i < switches; i++) {
        bool grown;
        __int128 price;

        fill->turn = (fill->turn + (i > 0)) % switches;
        grown = fill->roots[fill->turn] != fill->middle && grow_from(fill, fill->roots[fill->turn], &kept);
        price = price_of_counts(fill);
        drop_last(fill, paths, pool);
        if (grown)
            return price;
    }
    return -1;
}

/* Grows a tree from the middle of the fabric, which yields low trees, or, if that is cheaper, from
 * a compute node or from the next switch in turn. */
static bool grow_both_ways(struct fill *fill, struct fill_kept *kept)
{
    uint32_t paths = fill->path_count, pool = fill->pool_count, best = fill->middle;
    uint32_t compute = fill->roots[fill->root_count - 1];
    __int128 least = -1, price;

    if (fill->middle != UINT32_MAX && grow_from(fill, fill->middle, kept))
        least = price_of_counts(fill);
    drop_last(fill, paths, pool);
    if (grow_from(fill, compute, kept) && (least < 0 || price_of_counts(fill) < least)) {
        least = price_of_counts(fill);
        best = compute;
    }
    drop_last(fill, paths, pool);
    price = try_switches(fill, paths, pool);
    if (price >= 0 && (least < 0 || price < least)) {
        least = price;
        best = fill->roots[fill->turn];
    } else if (price >= 0) {
        fill->turn++; /* the next switch is tried next time */
    }
    return least >= 0 && grow_from(fill, best, kept);
}

/* Grows from the cheapest of a few roots: the last cheapest one, and the next ones in turn. */
static bool grow(struct fill *fill, struct fill_kept *kept)
{
    uint32_t paths = fill->path_count, pool = fill->pool_count, best = UINT32_MAX;
    __int128 least = -1;

    drop_last(fill, paths, pool);
    if (!fill->pairs)
        return grow_both_ways(fill, kept);
    for (uint32_t i = 0; i < ROOTS_TRIED && i < fill->root_count; i++) {
        uint32_t root = fill->roots[i == 0 ? fill->turn : (fill->turn + i) % fill->root_count];

        if (grow_from(fill, root, kept) && (least < 0 || price_of_counts(fill) < least)) {
            least = price_of_counts(fill);
            best = root;
        }
        drop_last(fill, paths, pool);
    }
    for (uint32_t i = 0; i < fill->root_count; i++)
        fill->turn = best == UINT32_MAX || fill->roots[i] == best ? i : fill->turn;
    return best != UINT32_MAX && grow_from(fill, best, kept);
}

static void keep(struct fill *fill, struct fill_kept kept)
{
    BY_GROW(fill->kept, fill->kept_count, fill->kept_room);
    fill->kept[fill->kept_count++] = kept;
}

/* Returns the largest amount of the last tree, within the remaining (`left`) or the
 * total capacity. */
static int64_t amount_of(const struct fill *fill, bool left)
{
    int64_t amount = INT64_MAX;

    for (uint32_t i = 0; i < fill->rows; i++) {
        int64_t room = fill->grower->capacity[i];

        if (fill->counts[i] == 0 || room == INT64_MAX)
            continue;
        room = (room - (left ? fill->load[i] : 0)) / fill->counts[i];
        amount = room < amount ? room : amount;
    }
    return amount;
}

static void add_load(struct fill *fill, int64_t amount)
{
    for (uint32_t i = 0; i < fill->rows; i++)
        if (fill->counts[i] && fill->grower->capacity[i] != INT64_MAX)
            fill->load[i] += amount * fill->counts[i];
}

/* Gives each tree the largest possible amount; returns the sum. */
static int64_t fill_greedily(struct fill *fill, int64_t bound, uint32_t rounds, double deadline)
{
    int64_t filled = 0, largest = 1;

    for (uint32_t i = 0; i < fill->grower->arc_count; i++)
        largest = fill->grower->capacity[i] > largest ? fill->grower->capacity[i] : largest;
    /* The first tree is always made, so that there is a plan. */
    while (filled < bound && fill->kept_count < rounds && (filled == 0 || !by_plan_late(deadline))) {
        struct fill_kept kept;
        int64_t amount;

        for (uint32_t i = 0; i < fill->rows; i++) {
            int64_t room = fill->grower->capacity[i] == INT64_MAX ? INT64_MAX
                                                                  : fill->grower->capacity[i] - fill->load[i];
            __int128 price = room > 0 ? ((__int128)largest << 10) / room : -1;

            fill->prices[i] = price < PRICE_MAX ? (int64_t)price : PRICE_MAX;
        }
        if (!grow(fill, &kept))
            break;
        amount = amount_of(fill, true);
        amount = amount < bound - filled ? amount : bound - filled;
        if (amount <= 0)
            break;
        kept.amount = amount;
        keep(fill, kept);
        add_load(fill, amount);
        filled += amount;
    }
    return filled;
}

static void start_prices(struct fill *fill)
{
    for (uint32_t i = 0; i < fill->rows; i++) {
        int64_t room = fill->grower->capacity[i];

        fill->load[i] = 0;
        fill->prices[i] = room == INT64_MAX ? 0 : room > 0 ? ((int64_t)1 << 44) / room : -1;
        if (fill->prices[i] > PRICE_MAX >> 8)
            fill->prices[i] = PRICE_MAX >> 8;
    }
}

/* Raises the prices of the links that the last tree loads. */
static void raise_prices(struct fill *fill, int64_t amount)
{
    int64_t most = 0;

    for (uint32_t i = 0; i < fill->rows; i++) {
        if (fill->counts[i] && fill->grower->capacity[i] != INT64_MAX)
            fill->prices[i] += (int64_t)((__int128)fill->prices[i] * amount * fill->counts[i] /
                                         fill->grower->capacity[i] / SLOWNESS) +
                               1;
        most = fill->prices[i] > most ? fill->prices[i] : most;
    }
    for (uint32_t i = 0; i < fill->rows && most > PRICE_MAX >> 1; i++)
        fill->prices[i] -= fill->prices[i] > 0 ? fill->prices[i] / 4 * 3 : 0;
}

/* Returns the greatest load over capacity, as a fraction; {0, 1} if there is no load. */
static struct by_fraction congestion(const struct fill *fill)
{
    struct by_fraction most = {0, 1};

    for (uint32_t i = 0; i < fill->rows; i++) {
        struct by_fraction now;

        if (fill->load[i] > 0 && by_fraction_set(fill->load[i], fill->grower->capacity[i], &now) == 0 &&
            by_fraction_compare(now, most) > 0)
            most = now;
    }
    return most;
}

/* Makes many trees that share the links; returns the factor by which their amounts must shrink to
 * fit. */
static struct by_fraction fill_evenly(struct fill *fill, uint32_t rounds, double deadline)
{
    struct by_fraction factor = {0, 1}, most;

    fill->kept_count = fill->path_count = fill->pool_count = 0;
    start_prices(fill);
    while (fill->kept_count < rounds && !by_plan_late(deadline)) {
        struct fill_kept kept;
        int64_t amount;

        if (!grow(fill, &kept))
            break;
        amount = amount_of(fill, false);
        if (amount <= 0 || amount > ((int64_t)1 << 60) / (rounds + 1))
            break;
        kept.amount = amount;
        keep(fill, kept);
        add_load(fill, amount);
        raise_prices(fill, amount);
    }
    most = congestion(fill);
    if (most.num > 0)
        factor = (struct by_fraction){most.den, most.num};
    return factor;
}

/* Appends the kept trees, each amount times the factor. */
static int append(const struct fill *fill, struct by_fraction factor, struct by_tree_list *list)
{
    const uint32_t *nodes = fill->pool;
    int error = 0;

    for (uint32_t i = 0; i < fill->path_count; i++) {
        fill->paths[i].nodes = (uint32_t *)nodes;
        nodes += fill->paths[i].node_count;
    }
    for (uint32_t i = 0; i < fill->kept_count && !error; i++) {
        const struct fill_kept *kept = &fill->kept[i];
        const struct by_path *paths = fill->paths + kept->first;
        struct by_fraction weight;

        error = by_fraction_multiply(factor, (struct by_fraction){kept->amount, 1}, &weight);
        if (!error)
            error = by_fraction_multiply(weight, fill->both->unit, &weight);
        if (error)
            break;
        by_tree_list_add(list, fill->pairs ? fill->up : fill->both, kept->root,
                         fill->pairs ? BY_TREE_UP : BY_TREE_BOTH, weight, paths, kept->split);
        if (fill->pairs)
            by_tree_list_add(list, fill->down, kept->root, BY_TREE_DOWN, weight, paths + kept->split,
                             kept->count - kept->split);
    }
    if (!error && !fill->pairs)
        by_tree_list_merge(list);
    return error;
}

int by_fill(const struct by_graph *both, const struct by_graph *up, const struct by_graph *down, bool pairs,
            int64_t bound, uint32_t rounds, double deadline, struct by_tree_list *list,
            struct by_fraction *rate)
{
    struct fill fill;
    struct by_fraction factor = {1, 1}, even = {0, 1}, whole = {1, 1};
    int64_t filled, goal;
    int error;

    *rate = (struct by_fraction){0, 1};
    fill_make(&fill, both, up, down, pairs);
    whole.den = fill.parts;
    if (__builtin_mul_overflow(bound, fill.parts, &goal))
        goal = INT64_MAX;
    filled = fill_greedily(&fill, goal, rounds, deadline);
    error = by_fraction_set(filled, fill.parts, rate);
    if (!error)
        error = append(&fill, whole, list);
    if (!error && filled < goal) {
        int64_t sum = 0;

        factor = fill_evenly(&fill, rounds, deadline);
        if (by_fraction_multiply(factor, whole, &factor) != 0)
            factor.num = 0;
        for (uint32_t i = 0; i < fill.kept_count; i++)
            sum += fill.kept[i].amount;
        if (by_fraction_multiply(factor, (struct by_fraction){sum, 1}, &even) == 0 &&
            by_fraction_compare(even, *rate) > 0) {
            by_tree_list_free(list);
            error = append(&fill, factor, list);
            *rate = even;
        }
    }
    fill_free(&fill);
    return error;
}
