/*
 * Ordered trees over blocks of ranks. See blocks.h. A way combines how blocks are formed (each rank
 * alone; ranks below one switch; the parts that remain connected without the widest switches), how
 * a block gathers (a star or a chain), and how blocks are joined. All trees of a way have equal
 * weights; the fullest link determines the weight.
 */
#include "control/planner/network/blocks.h"

#include "control/base/alloc.h"
#include "control/base/fraction.h"
#include "offload/base/assert.h"
#include "offload/base/errors.h"
#include "offload/wire/types.h"

#define NONE UINT32_MAX
/* Trees of one way for one root (count). */
#define RAILS_MAX 64u

enum forming { BY_ALONE = 1, BY_HOME, BY_PART, FORMINGS_END };

/* One way. */
struct blocks_way {
    enum forming forming;
    bool star;   /* in a block: a star, else a chain */
    bool binary; /* between blocks: binary trees, else a chain */
};

struct blocks_span {
    uint32_t first, last; /* ranks of a block */
};

struct blocks_maker {
    const struct by_graph *both;
    const struct by_mesh *net;
    unsigned collective;
    struct by_near *near; /* the net's neighbours of each node, over wide links first */
    uint32_t rank_count;
    uint32_t *node;    /* by rank */
    uint32_t *rank_of; /* by node; NONE for switches */
    uint32_t *path;    /* [upper rank * rank_count + lower rank]: path number + 1; 0 unknown */
    struct by_tree_list *list;
    /* The current way. */
    struct blocks_way way;
    uint32_t span_count, widest; /* blocks; ranks of the largest */
    struct blocks_span *spans;   /* by block */
    uint32_t *block_of;          /* by rank */
    bool *open;                  /* by rank: it reaches some rank of another block */
    /* The current tree. */
    uint32_t *edges, edge_count;
    bool missing;  /* two ranks had no path */
    int64_t *uses; /* by path */
    uint32_t use_room;
    /* A search. */
    uint32_t *queue, *before, *nodes;
};

static bool is_pair(const struct blocks_maker *maker)
{
    return by_collective_way(maker->collective) == BY_DATA_BOTH;
}

/* ---- paths ---- */

/* Whether data may flow from `lower` to `upper`, and back if trees are used in both directions. */
static bool may_hop(const struct blocks_maker *maker, uint32_t half)
{
    return maker->net->capacity[half] > 0 && (!is_pair(maker) || maker->net->capacity[half ^ 1] > 0);
}

/* Adds the neighbours of a node of the search to the queue: wide links first, so that the widest of
 * several shortest paths is found; among equally wide ones, starts with number `turn`. Returns the
 * new end of the queue. */
static uint32_t take_neighbours(struct blocks_maker *maker, uint32_t at, uint32_t end, uint32_t turn,
                                uint32_t tail)
{
    const struct by_mesh *net = maker->net;
    const struct by_near *near = maker->near + net->first[at];
    uint32_t degree = net->first[at + 1] - net->first[at], next;

    for (uint32_t first = 0; first < degree; first = next) {
        next = first + 1;
        while (next < degree && net->capacity[near[next].half] == net->capacity[near[first].half])
            next++;
        for (uint32_t i = 0; i < next - first; i++) {
            const struct by_near *to = &near[first + (i + turn) % (next - first)];

            if (maker->before[to->node] != NONE || !may_hop(maker, to->half) ||
                (maker->both->compute[to->node] && to->node != end))
                continue;
            maker->before[to->node] = at;
            maker->queue[tail++] = to->node;
        }
    }
    return tail;
}

/* Finds a shortest path between two ranks that passes only switches. Among several, `turn` chooses,
 * so that trees of different ranks use different ones. Returns its number, or NONE. */
static uint32_t find_path(struct blocks_maker *maker, uint32_t upper, uint32_t lower, uint32_t turn)
{
    uint32_t head = 0, tail = 0, count = 0, start = maker->node[upper], end = maker->node[lower];

    memset(maker->before, 0xff, maker->net->node_count * sizeof(*maker->before));
    maker->before[start] = start;
    maker->queue[tail++] = start;
    while (head < tail && maker->before[end] == NONE) {
        tail = take_neighbours(maker, maker->queue[head], end, turn, tail);
        head++;
    }
    if (maker->before[end] == NONE)
        return NONE;
    for (uint32_t at = end; at != start; at = maker->before[at])
        maker->nodes[count++] = at;
    maker->nodes[count++] = start;
    for (uint32_t i = 0; i < count / 2; i++) {
        uint32_t swapped = maker->nodes[i];

        maker->nodes[i] = maker->nodes[count - 1 - i];
        maker->nodes[count - 1 - i] = swapped;
    }
    return by_paths_add(&maker->list->paths, maker->nodes, count);
}

/* Attaches rank `lower` below rank `upper`. */
static void join(struct blocks_maker *maker, uint32_t upper, uint32_t lower)
{
    uint32_t *path = &maker->path[(size_t)upper * maker->rank_count + lower];

    if (*path == 0) {
        const struct blocks_span *span = &maker->spans[maker->block_of[lower]];
        uint32_t found = find_path(maker, upper, lower, lower - span->first + maker->block_of[lower]);

        *path = found + 1; /* NONE + 1 is 0: the search is repeated, and fails again */
    }
    if (*path == 0)
        maker->missing = true;
    else
        maker->edges[maker->edge_count++] = *path - 1;
}

/* ---- blocks ---- */

/* Returns the switch next to a rank that has the fewest ranks, NONE if there is none. */
static uint32_t find_home(const struct blocks_maker *maker, const uint32_t *ranks_at, uint32_t rank)
{
    const struct by_mesh *net = maker->net;
    uint32_t node = maker->node[rank], home = NONE;

    for (uint32_t i = net->first[node]; i < net->first[node + 1]; i++) {
        uint32_t other = net->near[i].node;

        if (!maker->both->compute[other] && (home == NONE || ranks_at[other] < ranks_at[home]))
            home = other;
    }
    return home;
}

/* Numbers the parts that remain connected without the switches that have the most ranks. */
static void find_parts(const struct blocks_maker *maker, const uint32_t *ranks_at, uint32_t *part)
{
    const struct by_mesh *net = maker->net;
    uint32_t most = 0, head = 0, tail = 0;

    for (uint32_t i = 0; i < net->node_count; i++) {
        most = !maker->both->compute[i] && ranks_at[i] > most ? ranks_at[i] : most;
        part[i] = NONE;
    }
    for (uint32_t start = 0; start < net->node_count; start++) {
        if (part[start] != NONE || (!maker->both->compute[start] && ranks_at[start] == most))
            continue;
        part[start] = start;
        maker->queue[tail++] = start;
        while (head < tail) {
            uint32_t at = maker->queue[head++];

            for (uint32_t i = net->first[at]; i < net->first[at + 1]; i++) {
                uint32_t other = net->near[i].node;

                if (part[other] != NONE || (!maker->both->compute[other] && ranks_at[other] == most))
                    continue;
                part[other] = start;
                maker->queue[tail++] = other;
            }
        }
    }
}

/* Finds the ranks that reach other blocks through switches. */
static void find_open(struct blocks_maker *maker)
{
    const struct by_mesh *net = maker->net;

    for (uint32_t rank = 0; rank < maker->rank_count; rank++) {
        uint32_t head = 0, tail = 0, start = maker->node[rank];

        maker->open[rank] = false;
        memset(maker->before, 0xff, net->node_count * sizeof(*maker->before));
        maker->before[start] = start;
        maker->queue[tail++] = start;
        while (head < tail && !maker->open[rank]) {
            uint32_t at = maker->queue[head++];

            for (uint32_t i = net->first[at]; i < net->first[at + 1]; i++) {
                uint32_t other = net->near[i].node, reached = maker->rank_of[other];

                if (maker->before[other] != NONE || !may_hop(maker, net->near[i].half))
                    continue;
                maker->before[other] = at;
                if (reached == NONE)
                    maker->queue[tail++] = other;
                else
                    maker->open[rank] |= maker->block_of[reached] != maker->block_of[rank];
            }
        }
    }
}

/* Forms blocks of consecutive ranks with the same key. */
static void form_blocks(struct blocks_maker *maker)
{
    const struct by_mesh *net = maker->net;
    uint32_t *ranks_at = by_alloc(net->node_count, sizeof(*ranks_at)),
             *part = by_alloc(net->node_count, sizeof(*part)), last = NONE;

    for (uint32_t rank = 0; rank < maker->rank_count; rank++)
        for (uint32_t i = net->first[maker->node[rank]]; i < net->first[maker->node[rank] + 1]; i++)
            ranks_at[net->near[i].node]++;
    if (maker->way.forming == BY_PART)
        find_parts(maker, ranks_at, part);
    maker->span_count = maker->widest = 0;
    for (uint32_t rank = 0; rank < maker->rank_count; rank++) {
        uint32_t key = maker->way.forming == BY_HOME   ? find_home(maker, ranks_at, rank)
                       : maker->way.forming == BY_PART ? part[maker->node[rank]]
                                                       : rank;

        if (rank == 0 || key != last || key == NONE)
            maker->spans[maker->span_count++].first = rank;
        maker->spans[maker->span_count - 1].last = rank;
        maker->block_of[rank] = maker->span_count - 1;
        last = key;
    }
    for (uint32_t b = 0; b < maker->span_count; b++) {
        uint32_t width = maker->spans[b].last - maker->spans[b].first + 1;

        maker->widest = width > maker->widest ? width : maker->widest;
    }
    free(ranks_at);
    free(part);
    find_open(maker);
}

/* ---- trees ---- */

/* Gathers the ranks from `from` (excluded) to `to`, in either direction, below `from`. */
static void gather(struct blocks_maker *maker, uint32_t from, uint32_t to)
{
    uint32_t above = from;

    while (from != to) {
        from = to > from ? from + 1 : from - 1;
        join(maker, above, from);
        above = maker->way.star ? above : from;
    }
}

/* Returns the rank of block `b` that gathers it in the trees of `rail`: the rank at that position,
 * or the next one that reaches another block. */
static uint32_t gatherer(const struct blocks_maker *maker, uint32_t b, uint32_t rail)
{
    uint32_t first = maker->spans[b].first, width = maker->spans[b].last - first + 1;

    for (uint32_t i = 0; i < width; i++)
        if (maker->open[first + (rail + i) % width])
            return first + (rail + i) % width;
    return first + rail % width;
}

/* Returns the top block of blocks low..high. In a chain it is the one next to `above`. Otherwise it
 * is the one whose number, counted from 1 or 2 (`shift`), has the most factors of two: then a block
 * is an inner node in one of the two trees and a leaf in the other. */
static uint32_t top_block(const struct blocks_maker *maker, uint32_t low, uint32_t high, bool above_is_left,
                          uint32_t shift)
{
    uint32_t best = low;

    if (!maker->way.binary)
        return above_is_left ? low : high;
    for (uint32_t b = low; b <= high; b++)
        if (__builtin_ctz(b + 1 + shift) > __builtin_ctz(best + 1 + shift))
            best = b;
    return best;
}

/* Blocks that are still to be attached: low..high below rank `above`. */
struct pending {
    uint32_t low, high, above;
    bool above_is_left;
};

static void hang_blocks(struct blocks_maker *maker, struct pending first, uint32_t rail, uint32_t shift)
{
    struct pending *stack = by_alloc((size_t)maker->span_count + 2, sizeof(*stack));
    uint32_t depth = 0;

    stack[depth++] = first;
    while (depth > 0) {
        struct pending now = stack[--depth];
        uint32_t block = top_block(maker, now.low, now.high, now.above_is_left, shift);
        uint32_t rank = gatherer(maker, block, rail);

        join(maker, now.above, rank);
        gather(maker, rank, maker->spans[block].first);
        gather(maker, rank, maker->spans[block].last);
        if (block > now.low)
            stack[depth++] = (struct pending){now.low, block - 1, rank, false};
        if (block < now.high)
            stack[depth++] = (struct pending){block + 1, now.high, rank, true};
    }
    free(stack);
}

/*
 * Makes the tree to rank `root`. Data from the left of its block enters over rank `left` of the
 * block, data from the right over `right`; these gather the ranks beyond them. Other blocks gather
 * at the ranks in the same positions.
 */
static void make_tree(struct blocks_maker *maker, uint32_t root, uint32_t left, uint32_t right,
                      uint32_t shift)
{
    uint32_t block = maker->block_of[root], last = maker->span_count - 1;
    const struct blocks_span *span = &maker->spans[block];

    maker->edge_count = 0;
    gather(maker, root, left);
    gather(maker, root, right);
    gather(maker, left, span->first);
    gather(maker, right, span->last);
    if (block > 0)
        hang_blocks(maker, (struct pending){0, block - 1, left, false}, left - span->first, shift);
    if (block < last)
        hang_blocks(maker, (struct pending){block + 1, last, right, true}, right - span->first, shift);
}

/* Returns the open rank number `turn` (modulo their count) of first..last; NONE if
 * there is none. */
static uint32_t open_rank(const struct blocks_maker *maker, uint32_t first, uint32_t last, uint32_t turn)
{
    uint32_t count = 0;

    for (uint32_t rank = first; rank <= last; rank++)
        count += maker->open[rank];
    if (count == 0)
        return NONE;
    turn %= count;
    for (uint32_t rank = first;; rank++)
        if (maker->open[rank] && turn-- == 0)
            return rank;
}

/* Chooses the ranks over which the two sides enter the rank's block in tree number
 * `turn`. All its ranks take part; the root serves the side that has fewer. Sides
 * without blocks enter at the root. */
static void find_entries(const struct blocks_maker *maker, uint32_t root, uint32_t turn, uint32_t *left,
                         uint32_t *right)
{
    uint32_t block = maker->block_of[root], before = root - maker->spans[block].first;
    const struct blocks_span *span = &maker->spans[block];
    bool from_left = block > 0, from_right = block + 1 < maker->span_count;
    bool takes_left = !from_right || (from_left && before < span->last - root);

    *left = *right = root;
    if (from_left && (before > 0 || takes_left))
        *left = open_rank(maker, span->first, root - !takes_left, turn);
    if (from_left && *left == NONE)
        *left = root;
    if (from_right && (root < span->last || !takes_left))
        *right = open_rank(maker, root + takes_left, span->last, turn);
    if (from_right && *right == NONE)
        *right = root;
}

/* Adds the current tree to the sums, or to the list; false when some of its ranks have no path. */
static bool take_tree(struct blocks_maker *maker, uint32_t root, bool keep)
{
    if (maker->missing) {
        maker->missing = false;
        return false;
    }
    if (maker->list->paths.count > maker->use_room) {
        uint32_t before = maker->use_room;

        maker->use_room = 2 * maker->list->paths.count;
        maker->uses = by_realloc(maker->uses, maker->use_room, sizeof(*maker->uses));
        memset(maker->uses + before, 0, (maker->use_room - before) * sizeof(*maker->uses));
    }
    for (uint32_t i = 0; i < maker->edge_count && !keep; i++)
        maker->uses[maker->edges[i]]++;
    if (keep)
        by_tree_list_append(maker->list, maker->node[root], is_pair(maker) ? BY_TREE_BOTH : BY_TREE_UP,
                            (struct by_fraction){1, 1}, maker->edges, maker->edge_count);
    return true;
}

/* Makes the trees of a reduce-scatter, one to each rank: data enters each at its root where
 * possible. */
static uint32_t make_scatter(struct blocks_maker *maker, bool keep)
{
    for (uint32_t rank = 0; rank < maker->rank_count; rank++) {
        const struct blocks_span *span = &maker->spans[maker->block_of[rank]];
        uint32_t left = rank, right = rank;

        while (left > span->first && !maker->open[left])
            left--;
        while (right < span->last && !maker->open[right])
            right++;
        make_tree(maker, rank, left, right, maker->way.binary ? (maker->block_of[rank] + rank) % 2 : 0);
        if (!take_tree(maker, rank, keep))
            return 0;
    }
    return maker->rank_count;
}

/* Makes all trees of the way; returns how many of them carry a unit each in parallel. */
static uint32_t make_trees(struct blocks_maker *maker, uint32_t root, bool keep)
{
    uint32_t rails = maker->widest < RAILS_MAX ? maker->widest : RAILS_MAX, made = 0;
    uint32_t shifts = maker->way.binary ? 2 : 1, last = maker->span_count - 1;

    if (maker->collective == BY_COLLECTIVE_REDUCE_SCATTER)
        return make_scatter(maker, keep);
    for (uint32_t i = 0; i < rails * shifts; i++) {
        uint32_t rail = i / shifts, left, right, top = root;

        if (is_pair(maker)) {
            uint32_t block = maker->way.binary ? top_block(maker, 0, last, false, i % shifts) : last / 2;

            left = right = top = gatherer(maker, block, rail);
        } else {
            find_entries(maker, root, rail, &left, &right);
        }
        make_tree(maker, top, left, right, i % shifts);
        made += take_tree(maker, top, keep);
    }
    return made;
}

/* Returns the weight that each tree of the way can have, in units of capacity; 0 if
 * there are none. */
static struct by_fraction weigh(struct blocks_maker *maker, uint32_t root, uint32_t *trees)
{
    int64_t *load = by_alloc(2 * (size_t)maker->net->pair_count, sizeof(*load));
    struct by_fraction least = {0, 1};

    maker->missing = false;
    if (maker->use_room > 0)
        memset(maker->uses, 0, maker->use_room * sizeof(*maker->uses));
    *trees = make_trees(maker, root, false);
    for (uint32_t p = 0; p<maker->list->paths.count && * trees> 0; p++) {
        struct by_path path = by_paths_get(&maker->list->paths, p);

        for (uint32_t i = 1; i < path.node_count && maker->uses[p] > 0; i++) {
            uint32_t half = by_mesh_find(maker->net, path.nodes[i], path.nodes[i - 1]);

            load[half] += maker->uses[p];
            load[half ^ 1] += is_pair(maker) ? maker->uses[p] : 0;
        }
    }
    for (uint32_t half = 0; half<2 * maker->net->pair_count && * trees> 0; half++) {
        struct by_fraction now;

        if (load[half] > 0 && by_fraction_set(maker->net->capacity[half], load[half], &now) == 0 &&
            (least.num == 0 || by_fraction_compare(now, least) < 0))
            least = now;
    }
    free(load);
    return least;
}

static int compare_width(const void *left, const void *right, void *context)
{
    const struct by_near *a = left, *b = right;
    const int64_t *capacity = context;

    if (capacity[a->half] != capacity[b->half])
        return capacity[a->half] > capacity[b->half] ? -1 : 1;
    return a->node < b->node ? -1 : 1;
}

static void maker_make(struct blocks_maker *maker, const struct by_graph *both, unsigned collective,
                       struct by_tree_list *list)
{
    uint32_t n = both->node_count;

    *maker = (struct blocks_maker){.both = both, .net = both->net, .collective = collective, .list = list};
    maker->node = by_alloc(n, sizeof(*maker->node));
    maker->rank_of = by_alloc(n, sizeof(*maker->rank_of));
    for (uint32_t i = 0; i < n; i++) {
        maker->rank_of[i] = both->compute[i] ? maker->rank_count : NONE;
        if (both->compute[i])
            maker->node[maker->rank_count++] = i;
    }
    maker->near = by_alloc(2 * (size_t)both->net->pair_count, sizeof(*maker->near));
    memcpy(maker->near, both->net->near, 2 * (size_t)both->net->pair_count * sizeof(*maker->near));
    for (uint32_t i = 0; i < n; i++)
        qsort_r(maker->near + both->net->first[i], both->net->first[i + 1] - both->net->first[i],
                sizeof(*maker->near), compare_width, both->net->capacity);
    maker->path = by_alloc((size_t)maker->rank_count * maker->rank_count, sizeof(*maker->path));
    maker->spans = by_alloc(maker->rank_count, sizeof(*maker->spans));
    maker->block_of = by_alloc(maker->rank_count, sizeof(*maker->block_of));
    maker->open = by_alloc(maker->rank_count, sizeof(*maker->open));
    maker->edges = by_alloc(maker->rank_count, sizeof(*maker->edges));
    maker->queue = by_alloc(n, sizeof(*maker->queue));
    maker->before = by_alloc(n, sizeof(*maker->before));
    maker->nodes = by_alloc(n, sizeof(*maker->nodes));
}

static void maker_free(struct blocks_maker *maker)
{
    free(maker->near);
    free(maker->node);
    free(maker->rank_of);
    free(maker->path);
    free(maker->spans);
    free(maker->block_of);
    free(maker->open);
    free(maker->edges);
    free(maker->uses);
    free(maker->queue);
    free(maker->before);
    free(maker->nodes);
}

/* The ways, low trees first: of two with equal rates the first is used. */
static const struct blocks_way ways[] = {
    {BY_PART, true, true},   {BY_HOME, true, true},   {BY_ALONE, true, true}, {BY_PART, false, true},
    {BY_HOME, false, true},  {BY_PART, true, false},  {BY_HOME, true, false}, {BY_PART, false, false},
    {BY_HOME, false, false}, {BY_ALONE, true, false},
};

int by_blocks_make(const struct by_graph *both, unsigned collective, int64_t root, struct by_tree_list *list,
                   struct by_fraction *rate)
{
    struct by_fraction best = {0, 1}, weight = {0, 1};
    struct blocks_maker maker;
    size_t chosen = 0;
    uint32_t rank, trees = 0;
    int error = 0;

    maker_make(&maker, both, collective, list);
    rank = collective == BY_COLLECTIVE_REDUCE ? maker.rank_of[root] : 0;
    *rate = (struct by_fraction){0, 1};
    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
        struct by_fraction each, sum;

        maker.way = ways[i];
        form_blocks(&maker);
        each = weigh(&maker, rank, &trees);
        if (each.num == 0 || by_fraction_multiply(each, (struct by_fraction){trees, 1}, &sum) != 0 ||
            by_fraction_compare(sum, best) <= 0)
            continue;
        best = sum;
        weight = each;
        chosen = i;
    }
    if (best.num == 0) {
        error = BY_EUNSUPPORTED;
    } else {
        maker.way = ways[chosen];
        maker.missing = false;
        form_blocks(&maker);
        trees = make_trees(&maker, rank, true);
        BY_ASSERT(trees > 0 && trees == list->count);
        if (by_fraction_multiply(weight, both->unit, &weight) != 0 ||
            by_fraction_multiply(best, both->unit, rate) != 0)
            error = BY_ERANGE;
        for (uint32_t t = 0; t < list->count; t++)
            list->trees[t].weight = weight;
        if (!error)
            by_tree_list_merge(list);
    }
    maker_free(&maker);
    return error;
}
