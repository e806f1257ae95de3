/*
 * The first trees. See first.h. Where data can branch at every node, a tree has the fewest hops,
 * and each node takes the parent whose link has the least load so far. Elsewhere trees are grown
 * (grow.h) at prices that rise with the load.
 */
#include "control/planner/network/first.h"

#include "control/base/alloc.h"
#include "control/base/fraction.h"
#include "control/fabric/build.h"
#include "control/plan/shares.h"
#include "control/planner/network/grow.h"
#include "control/planner/pack/tree.h"
#include "offload/base/errors.h"
#include "offload/wire/types.h"

/* Prices of links without load, relative to a full load of one tree. */
#define PRICE_BITS 20
#define PRICE_MAX  ((int64_t)1 << 34)

static const struct by_place nowhere = {0, 0};

struct first_work {
    const struct by_graph *of_use[3]; /* by use - 1: both directions, up (transposed), down */
    uint32_t node_count;
    struct by_tree_list list;
    /* The search by hops. */
    int64_t *load; /* by half of the net that is not transposed */
    uint32_t *level, *order, *parent;
    bool *needed;
    struct by_path *paths;
    uint32_t *nodes;
    /* The growth: loads and prices by the grower's arcs and nodes. */
    struct by_grower *grower;
    int64_t *arc_load, *prices;
    int32_t *counts;
};

/* Whether every node on the way can be a node of the tree, without a limit. */
static bool branches_everywhere(const struct by_graph *graph)
{
    for (uint32_t i = 0; i < graph->node_count; i++)
        if (!graph->compute[i] && (!graph->branch[i] || graph->budget[i] >= 0))
            return false;
    return true;
}

/* Numbers the nodes by hops from the root; returns how many are reached. */
static uint32_t find_levels(struct first_work *work, const struct by_mesh *net, uint32_t root)
{
    uint32_t count = 0;

    memset(work->level, 0xff, work->node_count * sizeof(*work->level));
    work->level[root] = 0;
    work->order[count++] = root;
    for (uint32_t head = 0; head < count; head++) {
        uint32_t node = work->order[head];

        for (uint32_t i = net->first[node]; i < net->first[node + 1]; i++) {
            uint32_t to = net->near[i].node;

            if (net->capacity[net->near[i].half ^ 1] == 0 || work->level[to] != UINT32_MAX)
                continue;
            work->level[to] = work->level[node] + 1;
            work->order[count++] = to;
        }
    }
    return count;
}

/* Chooses the half into `node` from the level above it with the least relative load. */
static uint32_t choose_parent(const struct first_work *work, enum by_tree_use use, uint32_t node)
{
    const struct by_mesh *net = work->of_use[use - 1]->net;
    uint32_t best = UINT32_MAX, flip = use == BY_TREE_UP;

    for (uint32_t i = net->first[node]; i < net->first[node + 1]; i++) {
        uint32_t half = net->near[i].half;

        if (net->capacity[half] == 0 || work->level[net->near[i].node] + 1 != work->level[node])
            continue;
        if (best == UINT32_MAX || (__int128)work->load[half ^ flip] * net->capacity[best] <
                                      (__int128)work->load[best ^ flip] * net->capacity[half])
            best = half;
    }
    return best;
}

/* Makes the tree of one root by hops; false when a compute node cannot be reached. */
static bool search_tree(struct first_work *work, enum by_tree_use use, uint32_t root, int64_t share)
{
    const struct by_graph *graph = work->of_use[use - 1];
    uint32_t count = find_levels(work, graph->net, root), kept = 0, missing = graph->compute_count;

    memset(work->needed, 0, graph->node_count * sizeof(*work->needed));
    for (uint32_t i = count; i-- > 0;) {
        uint32_t node = work->order[i];

        missing -= graph->compute[node];
        work->parent[node] = UINT32_MAX;
        if (node == root || (!graph->compute[node] && !work->needed[node]))
            continue;
        work->parent[node] = choose_parent(work, use, node);
        if (use != BY_TREE_UP)
            work->load[work->parent[node]] += share;
        if (use != BY_TREE_DOWN)
            work->load[work->parent[node] ^ 1] += share;
        work->needed[graph->net->tail[work->parent[node]]] = true;
    }
    for (uint32_t i = 0; i < count; i++) {
        uint32_t node = work->order[i];

        if (work->parent[node] == UINT32_MAX)
            continue;
        work->nodes[2 * kept] = graph->net->tail[work->parent[node]];
        work->nodes[2 * kept + 1] = node;
        work->paths[kept] = (struct by_path){2, work->nodes + 2 * kept};
        kept++;
    }
    by_tree_list_add(&work->list, graph, root, use, (struct by_fraction){share, 1}, work->paths, kept);
    return missing == 0; /* NOLINT(clang-analyzer-unix.Malloc): work_free frees the list's trees */
}

/* Grows the tree of one root; false when a compute node cannot be reached. */
static bool grow_tree(struct first_work *work, enum by_tree_use use, uint32_t root, int64_t share)
{
    struct by_grower *grower = work->grower;
    uint32_t rows = grower->arc_count + grower->node_count;

    for (uint32_t i = 0; i < rows; i++) {
        __int128 price = grower->capacity[i] == INT64_MAX
                             ? 0
                             : (((__int128)work->arc_load[i] + 1) << PRICE_BITS) / (grower->capacity[i] + 1);

        work->prices[i] = price < PRICE_MAX ? (int64_t)price : PRICE_MAX;
        if (grower->capacity[i] == 0)
            work->prices[i] = -1;
    }
    if (!by_grower_run(grower, use, root, work->prices))
        return false;
    memset(work->counts, 0, rows * sizeof(*work->counts));
    by_grower_count(grower, use, work->counts);
    for (uint32_t i = 0; i < rows; i++)
        work->arc_load[i] += work->counts[i] * share;
    by_tree_list_add(&work->list, work->of_use[use - 1], root, use, (struct by_fraction){share, 1},
                     grower->paths, grower->path_count);
    return true;
}

/* Lowers the weight of one part of the data to what a link (or budget) allows. */
static int limit(int64_t load, int64_t capacity, struct by_fraction *weight)
{
    struct by_fraction now;

    if (load == 0 || capacity == INT64_MAX)
        return 0;
    if (by_fraction_set(capacity, load, &now) != 0)
        return BY_ERANGE;
    if (weight->num == 0 || by_fraction_compare(now, *weight) < 0)
        *weight = now;
    return 0;
}

/* Finds the greatest weight that fits, in units of capacity. */
static int find_weight(const struct first_work *work, struct by_fraction *weight)
{
    const struct by_mesh *net = work->of_use[BY_TREE_DOWN - 1]->net;
    int error = 0;

    *weight = (struct by_fraction){0, 1};
    for (uint32_t half = 0; half < 2 * net->pair_count && !work->grower && !error; half++)
        error = limit(work->load[half], net->capacity[half], weight);
    for (uint32_t i = 0; work->grower && i < work->grower->arc_count + work->node_count && !error; i++)
        error = limit(work->arc_load[i], work->grower->capacity[i], weight);
    return error;
}

/* Starts with no trees; `both` is used by trees of both directions only, and may be NULL without
 * them. */
static void work_make(struct first_work *work, const struct by_graph *both, const struct by_graph *up,
                      const struct by_graph *down, bool rises, bool falls)
{
    size_t n = down->node_count, rows;

    *work = (struct first_work){.of_use = {both, up, down}, .node_count = down->node_count};
    if ((!rises || branches_everywhere(up)) && (!falls || branches_everywhere(down))) {
        work->load = by_alloc(2 * (size_t)down->net->pair_count, sizeof(*work->load));
        work->level = by_alloc(n, sizeof(*work->level));
        work->order = by_alloc(n, sizeof(*work->order));
        work->parent = by_alloc(n, sizeof(*work->parent));
        work->needed = by_alloc(n, sizeof(*work->needed));
        work->paths = by_alloc(n, sizeof(*work->paths));
        work->nodes = by_alloc(2 * n, sizeof(*work->nodes));
        return;
    }
    work->grower = by_grower_new(both ? both : down, up, down);
    rows = (size_t)work->grower->arc_count + n;
    work->arc_load = by_alloc(rows, sizeof(*work->arc_load));
    work->prices = by_alloc(rows, sizeof(*work->prices));
    work->counts = by_alloc(rows, sizeof(*work->counts));
}

static void work_free(struct first_work *work)
{
    by_tree_list_free(&work->list);
    by_grower_free(work->grower);
    free(work->load);
    free(work->level);
    free(work->order);
    free(work->parent);
    free(work->needed);
    free(work->paths);
    free(work->nodes);
    free(work->arc_load);
    free(work->prices);
    free(work->counts);
}

static bool make_tree(struct first_work *work, enum by_tree_use use, uint32_t root, int64_t share)
{
    return work->grower ? grow_tree(work, use, root, share) : search_tree(work, use, root, share);
}

/* Gives the trees their weights, in the topology's unit; returns the rate of `share_sum` parts in
 * units of capacity. */
static int finish(struct first_work *work, int64_t share_sum, struct by_fraction *rate)
{
    struct by_fraction weight, unit = work->of_use[BY_TREE_DOWN - 1]->unit;
    int error = find_weight(work, &weight);

    if (!error)
        error = by_fraction_multiply(weight, (struct by_fraction){share_sum, 1}, rate);
    if (!error)
        error = by_fraction_multiply(weight, unit, &weight);
    for (uint32_t i = 0; i < work->list.count && !error; i++)
        error = by_fraction_multiply(work->list.trees[i].weight, weight, &work->list.trees[i].weight);
    return error;
}

int by_first_make(const struct by_topology *topology, const struct by_plan_options *options,
                  struct by_plan *plan, struct by_problem *problem)
{
    bool rooted = by_collective_is_rooted(options->collective),
         rises = by_collective_way(options->collective) == BY_DATA_UP, reached = true;
    struct by_graph *up = by_graph_make_sparse(topology, BY_DIRECTION_UP, options->in_network);
    struct by_graph *down = by_graph_make_sparse(topology, BY_DIRECTION_DOWN, options->in_network);
    struct by_fraction rate = {0, 1};
    struct first_work work;
    int64_t share_sum = 0;
    int error = 0;

    work_make(&work, NULL, up, down, rises, !rises);
    for (uint32_t i = 0; i < topology->node_count && reached; i++) {
        int64_t share = rooted            ? i == options->root
                        : options->shares ? options->shares[i]
                                          : topology->nodes[i].compute;

        if (share == 0)
            continue;
        share_sum += share;
        reached = make_tree(&work, rises ? BY_TREE_UP : BY_TREE_DOWN, i, share);
        if (!reached)
            error = by_problem_set(problem, BY_EINVAL, nowhere,
                                   "some compute node cannot be reached from '%s' in the direction that the "
                                   "collective needs; add the missing link direction",
                                   topology->nodes[i].name);
    }
    if (!error && (finish(&work, share_sum, &rate) != 0 || by_fraction_multiply(rate, up->unit, &rate) != 0))
        error = by_problem_set(problem, BY_ERANGE, nowhere,
                               "a tree's weight needs more than 63 bits; round the bandwidths");
    if (!error) {
        by_tree_list_replace(&work.list, rate, plan);
        plan->k = 1;
    }
    work_free(&work);
    by_graph_free(up);
    by_graph_free(down);
    return error;
}

int by_first_both(const struct by_graph *both, const struct by_graph *up, const struct by_graph *down,
                  bool pairs, struct by_tree_list *list, struct by_fraction *rate)
{
    struct first_work work;
    bool reached = true;
    int error;

    work_make(&work, both, up, down, true, true);
    for (uint32_t i = 0; i < both->node_count && reached; i++) {
        if (!both->compute[i])
            continue;
        reached = make_tree(&work, pairs ? BY_TREE_UP : BY_TREE_BOTH, i, 1) &&
                  (!pairs || make_tree(&work, BY_TREE_DOWN, i, 1));
    }
    *rate = (struct by_fraction){0, 1};
    error = reached ? finish(&work, both->compute_count, rate) : 0;
    if (!error && reached) {
        *list = work.list;
        work.list = (struct by_tree_list){0};
    }
    work_free(&work);
    return error;
}
