/*
 * Low trees. See shallow.h. For each height, sets of trees (each set carries a unit of the
 * collective) share the links by multiplicative weights, as in fill.c. Prices rise with the load,
 * each new set is cheap at the current prices, and finally all sets shrink by the greatest load.
 * Prices only guide; rates are exact.
 */
#include "control/planner/network/shallow.h"

#include "control/base/alloc.h"
#include "control/base/clock.h"
#include "control/base/fraction.h"
#include "control/fabric/build.h"
#include "control/planner/network/budget.h"
#include "control/planner/network/grow.h"
#include "control/planner/pack/tree.h"
#include "control/planner/planner.h"
#include "offload/base/errors.h"
#include "offload/wire/types.h"

#define PRICE_MAX ((int64_t)1 << 34)
#define SLOWNESS  4
/* Trees grown for one height, and sets of them (counts). */
#define TREES_MAX 4096u
#define SETS_MAX  96u
#define SETS_MIN  4u
/* Attempts to keep a tree low, from cheap paths to shortest paths (count). */
#define DEPTH_TRIES 6u
/* Heights tried (count). */
#define HEIGHTS_MAX 24u

struct shallow_task {
    const struct by_plan_options *options;
    struct by_graph *both, *up, *down;
    struct by_grower *grower;
    uint32_t node_count, rows;
    bool pairs;
    uint32_t *reach; /* by node: hops to the farthest compute node from it as a root */
    int64_t *prices, *load;
    int32_t *counts;
    struct by_tree_list list;
};

static bool is_two_way(const struct shallow_task *task)
{
    return by_collective_way(task->options->collective) == BY_DATA_BOTH;
}

/* Whether one tree, or pair, carries a unit; otherwise a unit needs one tree for each
 * compute node. */
static bool is_single(const struct shallow_task *task)
{
    unsigned collective = task->options->collective;

    return is_two_way(task) || by_collective_is_rooted(collective);
}

static enum by_tree_use use_of(const struct shallow_task *task)
{
    if (is_two_way(task))
        return task->pairs ? BY_TREE_UP : BY_TREE_BOTH;
    return by_collective_way(task->options->collective) == BY_DATA_UP ? BY_TREE_UP : BY_TREE_DOWN;
}

/* Whether trees may start at the node. */
static bool is_root(const struct shallow_task *task, uint32_t node)
{
    unsigned collective = task->options->collective;

    if (by_collective_is_rooted(collective))
        return node == task->options->root;
    return task->both->compute[node] ||
           (is_two_way(task) && task->both->branch[node] && task->both->budget[node] < 0);
}

/* Grows a tree of least height; returns its height, UINT32_MAX if there is none. */
static uint32_t lowest(struct shallow_task *task, enum by_tree_use use, uint32_t root)
{
    uint32_t height = 0;

    task->grower->by_depth = true;
    task->grower->height_max = 0;
    if (!by_grower_run(task->grower, use, root, task->prices))
        return UINT32_MAX;
    for (uint32_t i = 0; i < task->node_count; i++)
        if (task->both->compute[i] && task->grower->depth[i] > height)
            height = task->grower->depth[i];
    return height;
}

static void start_prices(struct shallow_task *task)
{
    for (uint32_t i = 0; i < task->rows; i++) {
        int64_t room = task->grower->capacity[i];

        task->load[i] = 0;
        task->prices[i] = room == INT64_MAX ? 0 : room > 0 ? ((int64_t)1 << 40) / room : -1;
        if (task->prices[i] > PRICE_MAX >> 8)
            task->prices[i] = PRICE_MAX >> 8;
    }
}

static void task_make(struct shallow_task *task, const struct by_topology *topology,
                      const struct by_plan_options *options, double deadline)
{
    uint32_t n = topology->node_count;

    *task = (struct shallow_task){.options = options, .node_count = n};
    task->both = by_graph_make(topology, BY_DIRECTION_BOTH, options->in_network);
    task->up = by_graph_make(topology, BY_DIRECTION_UP, options->in_network);
    task->down = by_graph_make(topology, BY_DIRECTION_DOWN, options->in_network);
    task->pairs = !by_graph_is_symmetric(task->both);
    task->grower = by_grower_new(task->both, task->up, task->down);
    task->rows = task->grower->arc_count + n;
    task->reach = by_alloc(n, sizeof(*task->reach));
    task->prices = by_alloc(task->rows, sizeof(*task->prices));
    task->load = by_alloc(task->rows, sizeof(*task->load));
    task->counts = by_alloc(task->rows, sizeof(*task->counts));
    start_prices(task);
    for (uint32_t i = 0; i < n; i++) {
        task->reach[i] =
            is_root(task, i) && !by_plan_late(deadline) ? lowest(task, use_of(task), i) : UINT32_MAX;
        if (task->reach[i] != UINT32_MAX && is_two_way(task) && task->pairs) {
            uint32_t down = lowest(task, BY_TREE_DOWN, i);

            task->reach[i] = down > task->reach[i] ? down : task->reach[i];
        }
    }
}

static void task_free(struct shallow_task *task)
{
    by_tree_list_free(&task->list);
    by_grower_free(task->grower);
    by_graph_free(task->both);
    by_graph_free(task->up);
    by_graph_free(task->down);
    free(task->reach);
    free(task->prices);
    free(task->load);
    free(task->counts);
}

static int64_t mean_price(const struct shallow_task *task)
{
    __int128 sum = 0;

    for (uint32_t i = 0; i < task->grower->arc_count; i++)
        sum += task->prices[i] > 0 ? task->prices[i] : 0;
    return task->grower->arc_count ? (int64_t)(sum / task->grower->arc_count) : 0;
}

/* Appends one tree of at most `height`, as cheap as possible, to the list with weight 1. */
static bool grow_tree(struct shallow_task *task, enum by_tree_use use, uint32_t root, uint32_t height)
{
    struct by_grower *grower = task->grower;
    bool grown = false;

    grower->height_max = height;
    for (uint32_t try = 0; try < DEPTH_TRIES && !grown; try++) {
        grower->by_depth = try + 1 == DEPTH_TRIES;
        grower->depth_price = try > 0 ? mean_price(task) >> (DEPTH_TRIES - 1 - try) : 0;
        grown = by_grower_run(grower, use, root, task->prices);
    }
    grower->depth_price = 0;
    if (!grown)
        return false;
    by_grower_count(grower, use, task->counts);
    by_tree_list_add(&task->list, grower->graph[use - 1], root, use, (struct by_fraction){1, 1},
                     grower->paths, grower->path_count);
    return true;
}

/* Grows one set of trees; for allreduce from the next root in turn. */
static bool grow_set(struct shallow_task *task, uint32_t height, uint32_t *turn)
{
    memset(task->counts, 0, task->rows * sizeof(*task->counts));
    for (uint32_t step = 0; step < task->node_count; step++) {
        uint32_t node = is_two_way(task) ? (*turn + step) % task->node_count : step;

        if (task->reach[node] > height)
            continue;
        if (!grow_tree(task, use_of(task), node, height))
            return false;
        if (!is_two_way(task))
            continue;
        *turn = node + 1;
        return !task->pairs || grow_tree(task, BY_TREE_DOWN, node, height);
    }
    return !is_two_way(task);
}

/* Returns the largest amount of the last set. */
static int64_t amount_of(const struct shallow_task *task)
{
    int64_t amount = (int64_t)1 << 40;

    for (uint32_t i = 0; i < task->rows; i++)
        if (task->counts[i] > 0 && task->grower->capacity[i] != INT64_MAX &&
            task->grower->capacity[i] / task->counts[i] < amount)
            amount = task->grower->capacity[i] / task->counts[i];
    return amount > 0 ? amount : 1;
}

static void add_load(struct shallow_task *task, int64_t amount)
{
    int64_t most = 0;

    for (uint32_t i = 0; i < task->rows; i++) {
        if (task->counts[i] && task->grower->capacity[i] != INT64_MAX && task->prices[i] >= 0) {
            __int128 more =
                (__int128)task->prices[i] * amount * task->counts[i] / task->grower->capacity[i] / SLOWNESS;

            task->load[i] += amount * task->counts[i];
            task->prices[i] =
                more < PRICE_MAX - task->prices[i] ? task->prices[i] + (int64_t)more + 1 : PRICE_MAX;
        }
        most = task->prices[i] > most ? task->prices[i] : most;
    }
    for (uint32_t i = 0; i < task->rows && most > PRICE_MAX >> 1; i++)
        task->prices[i] -= task->prices[i] > 0 ? task->prices[i] / 4 * 3 : 0;
}

/* Computes the factor that makes all loads fit. */
static int shrink(const struct shallow_task *task, struct by_fraction *factor)
{
    struct by_fraction most = {0, 1};

    for (uint32_t i = 0; i < task->rows; i++) {
        struct by_fraction now;

        if (task->load[i] > 0 && task->grower->capacity[i] > 0 &&
            by_fraction_set(task->load[i], task->grower->capacity[i], &now) == 0 &&
            by_fraction_compare(now, most) > 0)
            most = now;
    }
    return most.num ? by_fraction_divide(task->both->unit, most, factor) : BY_ERANGE;
}

/* Packs trees of one height into the empty list, and sets their rate; 0 if there are none. */
static int pack_height(struct shallow_task *task, uint32_t height, double deadline, struct by_fraction *rate)
{
    uint32_t turn = 0, sets = is_single(task) ? SETS_MAX : TREES_MAX / task->both->compute_count;
    int64_t sum = 0, shares = is_single(task) ? 1 : task->both->compute_count;
    struct by_fraction factor;
    int error = 0;

    *rate = (struct by_fraction){0, 1};
    by_tree_list_free(&task->list);
    start_prices(task);
    sets = sets < SETS_MIN ? SETS_MIN : sets > SETS_MAX ? SETS_MAX : sets;
    for (uint32_t i = 0; i < sets && !by_plan_late(deadline); i++) {
        uint32_t first = task->list.count;
        int64_t amount;

        if (!grow_set(task, height, &turn))
            return 0;
        amount = amount_of(task);
        for (uint32_t j = first; j < task->list.count; j++)
            task->list.trees[j].weight.num = amount;
        add_load(task, amount);
        sum += amount;
    }
    if (shrink(task, &factor) != 0)
        return BY_ERANGE;
    for (uint32_t i = 0; i < task->list.count && !error; i++)
        error = by_fraction_multiply(task->list.trees[i].weight, factor, &task->list.trees[i].weight);
    if (!error && !task->pairs)
        by_tree_list_merge(&task->list);
    if (!error)
        error = by_fraction_multiply(factor, (struct by_fraction){sum, 1}, rate);
    if (!error)
        error = by_fraction_multiply(*rate, (struct by_fraction){shares, 1}, rate);
    if (!error && !by_budget_kept(&task->list, task->both->topology, NULL))
        *rate = (struct by_fraction){0, 1};
    return error;
}

/* Adds a height and its rate, unless lower trees are as fast: the list is a Pareto front. */
static void add_trade(struct by_plan *plan, uint32_t height, struct by_fraction rate)
{
    if (plan->trade_count > 0 && by_fraction_compare(rate, plan->trades[plan->trade_count - 1].rate) <= 0)
        return;
    plan->trades = by_realloc(plan->trades, plan->trade_count + 1, sizeof(*plan->trades));
    plan->trades[plan->trade_count++] = (struct by_trade){height, rate};
}

static uint32_t height_of(const struct by_plan *plan, uint32_t node_count)
{
    uint32_t most = 0;

    for (uint32_t i = 0; i < plan->tree_count; i++) {
        uint32_t height = by_plan_height(plan, &plan->trees[i], node_count);

        most = height > most ? height : most;
    }
    return most;
}

/* Returns the least height that is possible for all roots (for allreduce, for one). */
static uint32_t least_height(const struct shallow_task *task)
{
    uint32_t least = is_two_way(task) ? UINT32_MAX : 0;

    for (uint32_t i = 0; i < task->node_count; i++)
        if (is_root(task, i) && (is_two_way(task) ? task->reach[i] < least : task->reach[i] > least))
            least = task->reach[i];
    return least;
}

int by_shallow_make(const struct by_topology *topology, const struct by_plan_options *options,
                    struct by_plan *plan, struct by_problem *problem)
{
    struct by_fraction kept, least, own = plan->achieved;
    uint32_t height = height_of(plan, topology->node_count), tried = 0;
    double start = by_plan_clock(), deadline = options->time_limit_s > 0 ? start + options->time_limit_s : 0;
    struct shallow_task task;
    bool taken = false;
    int error = 0;

    if (by_fraction_subtract((struct by_fraction){1, 1}, options->loss_max, &kept) != 0 || kept.num == 0)
        return by_problem_set(problem, BY_EINVAL, (struct by_place){0, 0},
                              "the loss for low trees must be below the whole rate");
    if (by_fraction_multiply(own, kept, &least) != 0)
        return by_problem_set(problem, BY_ERANGE, (struct by_place){0, 0},
                              "a rate needs more than 63 bits; round the bandwidths");
    task_make(&task, topology, options, deadline);
    for (uint32_t at = least_height(&task); at < height && !taken && tried < HEIGHTS_MAX; at++, tried++) {
        struct by_fraction rate;

        /* Heights whose rate is not representable are skipped. */
        if (pack_height(&task, at, deadline, &rate) != 0 || rate.num == 0)
            continue;
        add_trade(plan, at, rate);
        if (by_fraction_compare(rate, least) < 0)
            continue;
        by_tree_list_replace(&task.list, rate, plan);
        taken = true;
    }
    add_trade(plan, height, own);
    task_free(&task);
    plan->seconds.pack += by_plan_clock() - start;
    return error;
}
