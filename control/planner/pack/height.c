/* Lowers trees at the same rate. See height.h. The rounds have falling targets. In each round,
 * every tree higher than the target is changed along the path to its farthest node, from the middle
 * of that path on, until it is low enough or no move helps. */
#include "control/planner/pack/height.h"

#include "control/base/alloc.h"
#include "control/base/fraction.h"
#include "control/planner/pack/height_work.h"
#include "offload/base/assert.h"

/* Cells of the tables (trees x nodes). In larger plans only the highest trees are lowered, together
 * with the lowest, which are the partners for exchanges. */
#define CELLS_MAX ((size_t)6 << 20)
/* The largest number of nodes that the tables can hold. */
#define NODES_MAX 30000u
/* Excess hops over what distances allow that are accepted: boxes with a bottleneck cannot avoid
 * them. */
#define EXCESS_FINE 2u
/* The same on fabrics of more than LARGE compute nodes, where the tables alone cost as much as
 * packing. */
#define EXCESS_LARGE_FINE 9u
#define LARGE             1100u
/* Minimum and maximum of steps for each edge. Plans of few trees, such as those of one root, take
 * more if all of them together are at most STEPS_FEW, about a tenth of a second. */
#define STEPS_EACH_MIN 2u
#define STEPS_EACH_MAX 40u
#define STEPS_FEW      ((uint64_t)16 << 20)
/* Maximum of steps in total: about a second. */
#define STEPS_MAX ((uint64_t)120 << 20)
/* Trees without any move after which the search stops (count). */
#define TRIES_IDLE 32u

struct height_entry {
    uint32_t number, height;
};

static int compare_entries(const void *left, const void *right)
{
    const struct height_entry *a = left, *b = right;

    if (a->height != b->height)
        return a->height > b->height ? -1 : 1;
    return a->number < b->number ? -1 : 1;
}

static uint32_t height_of(const struct by_tree_list *list, const struct by_tree *tree, uint32_t *depth)
{
    uint32_t height = 0;

    depth[tree->root] = 0;
    for (uint32_t i = 0; i < tree->edge_count; i++) {
        uint32_t path = list->edges[tree->first_edge + i];
        uint32_t at = depth[by_paths_from(&list->paths, path)] + by_paths_hops(&list->paths, path);

        depth[by_paths_to(&list->paths, path)] = at;
        height = at > height ? at : height;
    }
    return height;
}

/* Chooses the trees to examine, the highest first. */
static struct height_entry *choose_trees(const struct by_tree_list *list, uint32_t first, uint32_t n,
                                         uint32_t *count, struct by_heights *heights)
{
    double sum = 0, weights = 0;
    uint32_t *depth = by_alloc(n, sizeof(*depth)), all = list->count - first,
             most = (uint32_t)(CELLS_MAX / n);
    struct height_entry *entries = by_alloc(all, sizeof(*entries));

    for (uint32_t i = 0; i < all; i++) {
        const struct by_tree *tree = &list->trees[first + i];

        entries[i] = (struct height_entry){first + i, height_of(list, tree, depth)};
        sum += entries[i].height * by_fraction_value(tree->weight);
        weights += by_fraction_value(tree->weight);
    }
    free(depth);
    qsort(entries, all, sizeof(*entries), compare_entries);
    *heights = (struct by_heights){entries[0].height, sum / weights};
    *count = all;
    if (all > most) {
        *count = most;
        memmove(entries + most / 2, entries + all - (most - most / 2), (most - most / 2) * sizeof(*entries));
    }
    return entries;
}

/* Hops from the node to the farthest compute node. */
static uint32_t distance_of(struct by_height_work *work, uint32_t start)
{
    const struct by_mesh *net = work->graph->net;
    uint32_t head = 0, tail = 0, farthest = 0, *hops = work->next_child;

    work->stamp++;
    work->seen[start] = work->stamp;
    hops[start] = 0;
    work->queue[tail++] = start;
    while (head < tail) {
        uint32_t node = work->queue[head++];

        farthest = work->graph->compute[node] ? hops[node] : farthest;
        for (uint32_t i = net->first[node]; i < net->first[node + 1]; i++) {
            uint32_t other = net->near[i].node;

            if (work->seen[other] == work->stamp || work->capacity[net->near[i].half ^ 1] == 0)
                continue;
            work->seen[other] = work->stamp;
            hops[other] = hops[node] + 1;
            work->queue[tail++] = other;
        }
    }
    return farthest;
}

void by_height_survey(struct by_height_work *work, uint32_t tree)
{
    uint32_t n = work->node_count, head = 0;
    const uint32_t *parent = work->parent + by_height_cell(work, tree, 0);
    uint16_t *arrival = work->arrival + by_height_cell(work, tree, 0);
    uint16_t *below = work->below + by_height_cell(work, tree, 0);

    memset(work->first_child, 0xff, n * sizeof(*work->first_child));
    for (uint32_t v = n; v-- > 0;)
        if (parent[v] != BY_HEIGHT_NONE) {
            uint32_t from = by_paths_from(work->paths, parent[v]);

            work->next_child[v] = work->first_child[from];
            work->first_child[from] = v;
        }
    work->order_count = 0;
    work->order[work->order_count++] = work->root[tree];
    arrival[work->root[tree]] = 0;
    while (head < work->order_count) {
        uint32_t node = work->order[head++];

        below[node] = 0;
        for (uint32_t c = work->first_child[node]; c != BY_HEIGHT_NONE; c = work->next_child[c]) {
            arrival[c] = (uint16_t)(arrival[node] + by_paths_hops(work->paths, parent[c]));
            work->order[work->order_count++] = c;
        }
    }
    for (uint32_t i = work->order_count; i-- > 1;) {
        uint32_t node = work->order[i], from = by_paths_from(work->paths, parent[node]);
        uint32_t reach = below[node] + by_paths_hops(work->paths, parent[node]);

        below[from] = reach > below[from] ? (uint16_t)reach : below[from];
    }
    work->height[tree] = below[work->root[tree]];
    work->steps += n;
}

/* Fills the tables of the chosen trees. */
static void fill_tables(struct by_height_work *work, const struct by_forest *forest,
                        const struct by_tree_list *list, const struct height_entry *entries)
{
    uint32_t n = work->node_count;

    memset(work->parent, 0xff, (size_t)work->tree_count * n * sizeof(*work->parent));
    memset(work->children, 0, (size_t)work->tree_count * n * sizeof(*work->children));
    for (uint32_t t = 0; t < work->tree_count; t++) {
        const struct by_tree *tree = &list->trees[entries[t].number];

        for (uint32_t i = 0; i < tree->edge_count; i++)
            work->leaving[by_paths_from(work->paths, list->edges[tree->first_edge + i])].room++;
    }
    for (uint32_t v = 0; v < n; v++)
        work->leaving[v].uses = by_alloc(work->leaving[v].room, sizeof(*work->leaving[v].uses));
    for (uint32_t t = 0; t < work->tree_count; t++) {
        const struct by_tree *tree = &list->trees[entries[t].number];
        struct by_fraction amount;

        work->number[t] = entries[t].number;
        work->root[t] = tree->root;
        BY_ASSERT(by_fraction_divide(tree->weight, forest->weight, &amount) == 0 && amount.den == 1);
        work->amount[t] = amount.num;
        for (uint32_t i = 0; i < tree->edge_count; i++) {
            uint32_t path = list->edges[tree->first_edge + i], from = by_paths_from(work->paths, path);
            uint32_t to = by_paths_to(work->paths, path);
            struct by_height_uses *leaving = &work->leaving[from];

            work->parent[by_height_cell(work, t, to)] = path;
            work->children[by_height_cell(work, t, from)]++;
            work->place[by_height_cell(work, t, to)] = leaving->count;
            leaving->uses[leaving->count++] = (struct by_height_use){t, to};
        }
        by_height_survey(work, t);
    }
}

/* Computes the capacity of the links that all trees leave unused. */
static void find_room(struct by_height_work *work, const struct by_forest *forest,
                      const struct by_tree_list *list, uint32_t first)
{
    int64_t *uses = by_alloc(list->paths.count, sizeof(*uses));

    memcpy(work->room, forest->capacity, 2 * (size_t)work->graph->net->pair_count * sizeof(*work->room));
    for (uint32_t t = first; t < list->count; t++) {
        const struct by_tree *tree = &list->trees[t];
        struct by_fraction amount;

        BY_ASSERT(by_fraction_divide(tree->weight, forest->weight, &amount) == 0 && amount.den == 1);
        for (uint32_t i = 0; i < tree->edge_count; i++)
            uses[list->edges[tree->first_edge + i]] += amount.num;
    }
    for (uint32_t p = 0; p < list->paths.count; p++)
        if (uses[p] > 0)
            by_height_load(work, p, uses[p]);
    free(uses);
    for (uint32_t half = 0; half < 2 * work->graph->net->pair_count; half++)
        BY_ASSERT(work->room[half] >= 0);
}

static void work_make(struct by_height_work *work, const struct by_forest *forest, struct by_tree_list *list,
                      uint32_t count)
{
    uint32_t n = forest->graph->node_count;
    size_t cells = (size_t)n * count;

    work->tree_count = count;
    work->number = by_alloc(count, sizeof(*work->number));
    work->root = by_alloc(count, sizeof(*work->root));
    work->amount = by_alloc(count, sizeof(*work->amount));
    work->height = by_alloc(count, sizeof(*work->height));
    work->touched = by_alloc(count, sizeof(*work->touched));
    work->parent = by_alloc_table(cells, sizeof(*work->parent));
    work->place = by_alloc_table(cells, sizeof(*work->place));
    work->arrival = by_alloc_table(cells, sizeof(*work->arrival));
    work->below = by_alloc_table(cells, sizeof(*work->below));
    work->children = by_alloc_table(cells, sizeof(*work->children));
    work->leaving = by_alloc(n, sizeof(*work->leaving));
    work->room = by_alloc(2 * (size_t)forest->graph->net->pair_count, sizeof(*work->room));
    work->order = by_alloc(n, sizeof(*work->order));
    work->paths = &list->paths;
}

static void work_free(struct by_height_work *work)
{
    for (uint32_t i = 0; i < work->node_count && work->leaving; i++)
        free(work->leaving[i].uses);
    free(work->leaving);
    free(work->number);
    free(work->root);
    free(work->amount);
    free(work->height);
    free(work->touched);
    free(work->parent);
    free(work->place);
    free(work->arrival);
    free(work->below);
    free(work->children);
    free(work->room);
    free(work->order);
    free(work->first_child);
    free(work->next_child);
    free(work->seen);
    free(work->towards);
    free(work->queue);
}

/* Moves one branch on the path to the farthest node nearer to the root. From the middle of the path
 * outwards, takes the first branch that gains enough, else the one that gains most. */
static bool lower_once(struct by_height_work *work, uint32_t tree, uint32_t *way)
{
    const uint16_t *arrival = work->arrival + by_height_cell(work, tree, 0);
    uint32_t count = 0, node = work->root[tree];
    struct by_height_move best = {.gain = 0}, move;

    for (uint32_t i = 0; i < work->order_count; i++)
        if (arrival[work->order[i]] == work->height[tree])
            node = work->order[i];
    for (; node != work->root[tree];
         node = by_paths_from(work->paths, work->parent[by_height_cell(work, tree, node)]))
        way[count++] = node;
    for (uint32_t i = 0; i < count && !best.enough; i++) {
        uint32_t half = (i + 1) / 2, at = i % 2 ? count / 2 + half : count / 2 - half;

        if (at >= count || !by_height_find(work, tree, way[at], &move))
            continue;
        if (move.enough || move.gain > best.gain)
            best = move;
        if (2 * best.gain >= move.arrival + move.gain)
            break;
    }
    if (best.gain > 0)
        by_height_hang(work, &best);
    return best.gain > 0;
}

/* Rounds with falling targets. */
static void lower_all(struct by_height_work *work, uint32_t highest, uint32_t least, double deadline)
{
    uint32_t *way = by_alloc(work->node_count, sizeof(*way)), moves = 0, tried = 0;

    for (uint32_t target = highest - 1; work->steps < work->steps_max && !by_plan_late(deadline);) {
        work->target = target;
        for (uint32_t t = 0; t < work->tree_count && work->steps < work->steps_max; t++) {
            if (work->height[t] <= target)
                continue;
            if (tried++ >= TRIES_IDLE && moves == 0)
                break;
            by_height_survey(work, t);
            while (work->height[t] > target && work->steps < work->steps_max && lower_once(work, t, way))
                moves++;
        }
        if (target <= least || moves == 0)
            break;
        target = target * 3 / 4 > least ? target * 3 / 4 : least;
    }
    free(way);
}

/* Writes the changed trees back, breadth first. */
static void write_trees(struct by_height_work *work, struct by_tree_list *list)
{
    for (uint32_t t = 0; t < work->tree_count; t++) {
        struct by_tree *tree = &list->trees[work->number[t]];

        if (!work->touched[t])
            continue;
        by_height_survey(work, t);
        BY_ASSERT(work->order_count == tree->edge_count + 1);
        for (uint32_t i = 1; i < work->order_count; i++)
            list->edges[tree->first_edge + i - 1] = work->parent[by_height_cell(work, t, work->order[i])];
    }
}

/* The number of steps to spend: the larger the excess over what distances allow, the more. */
static uint64_t steps_for(const struct by_tree_list *list, const struct height_entry *entries, uint32_t count,
                          uint32_t excess)
{
    uint64_t edges = 0, each = (uint64_t)excess * excess / 16, wanted, most;

    for (uint32_t i = 0; i < count; i++)
        edges += list->trees[entries[i].number].edge_count;
    each = each < STEPS_EACH_MIN ? STEPS_EACH_MIN : each;
    wanted = edges * each;
    most = edges * STEPS_EACH_MAX > STEPS_FEW ? edges * STEPS_EACH_MAX : STEPS_FEW;
    most = most < STEPS_MAX ? most : STEPS_MAX;
    return wanted < most ? wanted : most;
}

static bool has_budget(const struct by_graph *graph)
{
    for (uint32_t i = 0; i < graph->node_count; i++)
        if (graph->branch[i] && graph->budget[i] >= 0)
            return true;
    return false;
}

void by_height_lower(const struct by_forest *forest, struct by_tree_list *list, uint32_t first,
                     struct by_heights *packed)
{
    struct by_heights heights;
    uint32_t n = forest->graph->node_count, count, least, fine;
    struct by_height_work work = {.graph = forest->graph, .capacity = forest->capacity, .node_count = n};
    struct height_entry *entries;

    if (first == list->count || n > NODES_MAX || forest->use == BY_TREE_BOTH || has_budget(forest->graph))
        return;
    work.first_child = by_alloc(n, sizeof(*work.first_child));
    work.next_child = by_alloc(n, sizeof(*work.next_child));
    work.seen = by_alloc(n, sizeof(*work.seen));
    work.towards = by_alloc(n, sizeof(*work.towards));
    work.queue = by_alloc(n, sizeof(*work.queue));
    entries = choose_trees(list, first, n, &count, &heights);
    least = distance_of(&work, list->trees[entries[0].number].root);
    fine = forest->graph->compute_count > LARGE ? EXCESS_LARGE_FINE : EXCESS_FINE;
    if (entries[0].height > least + fine && count > 1) {
        *packed = heights;
        work_make(&work, forest, list, count);
        find_room(&work, forest, list, first);
        fill_tables(&work, forest, list, entries);
        work.steps = 0;
        work.steps_max = steps_for(list, entries, count, entries[0].height - least);
        lower_all(&work, entries[0].height, least, forest->deadline);
        write_trees(&work, list);
    }
    free(entries);
    work_free(&work);
}
