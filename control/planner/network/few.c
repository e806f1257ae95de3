/*
 * Few trees for allreduce. See few.h. Two kinds of trees compete:
 *
 * - the best of the plan's own trees and of trees that fill the links (fill.h), chosen and weighed
 *   by linear programs;
 * - the trees of a broadcast from one root, used in both directions with half of each link, on
 *   symmetric fabrics.
 */
#include "control/planner/network/few.h"

#include <stdlib.h>

#include "control/base/alloc.h"
#include "control/base/clock.h"
#include "control/base/fraction.h"
#include "control/plan/merge.h"
#include "control/planner/network/budget.h"
#include "control/planner/network/fill.h"
#include "control/planner/network/simplex.h"
#include "offload/base/errors.h"
#include "offload/base/prng.h"
#include "offload/wire/types.h"

/* Weights, in units of capacity, are multiples of 1 / DENOMINATOR, which has all divisors up to 12:
 * sums of many then have small denominators too. */
#define DENOMINATOR ((int64_t)27720)
/* The trees that the first program weighs, and the links of a program (counts). */
#define POOL_MAX 512u
#define ROWS_MAX 512u
/* The least number of trees that fill the links, of which the best few are chosen (count). */
#define FILL_MIN 128u
/* by_few_keep: the trees that it leaves, and the largest fabric that it tries (counts). */
#define KEEP_TREES     32
#define KEEP_NODES_MAX 160u
/* Work after which there are no further programs (steps x links^2): about a second each. */
#define PROGRAM_WORK_MAX 20000000u

struct few_task {
    const struct by_topology *topology;
    const struct by_plan_options *options;
    struct by_plan *plan;
    struct by_graph *both;
    uint32_t width; /* 2 for pairs */
    double deadline;
    struct by_tree_list list; /* the best so far */
    struct by_fraction rate;  /* its rate, in the topology's unit */
    struct by_fraction least; /* the least rate, in units of capacity, that is of use; 0: any */
};

/* Keeps the trees if they are the best so far; else frees them. */
static void offer(struct few_task *task, struct by_tree_list *list, struct by_fraction rate)
{
    if (by_fraction_compare(rate, task->rate) > 0 && by_budget_kept(list, task->topology, NULL)) {
        struct by_tree_list loser = task->list;

        task->list = *list;
        task->rate = rate;
        *list = loser;
    }
    by_tree_list_free(list);
}

struct few_entry {
    uint32_t first; /* number of the tree, or of the first of a pair */
    struct by_fraction weight;
};

static int compare_entries(const void *left, const void *right)
{
    const struct few_entry *a = left, *b = right;
    int order = by_fraction_compare(b->weight, a->weight);

    return order ? order : a->first < b->first ? -1 : a->first > b->first;
}

/* Adds the loads of a tree (by half of the net) to `counts`. */
static void add_loads(const struct few_task *task, const struct by_tree_list *list,
                      const struct by_tree *tree, int32_t *counts)
{
    const struct by_mesh *net = task->both->net;

    for (uint32_t e = 0; e < tree->edge_count; e++) {
        struct by_path path = by_paths_get(&list->paths, list->edges[tree->first_edge + e]);

        for (uint32_t i = 1; i < path.node_count; i++) {
            uint32_t half = by_mesh_find(net, path.nodes[i - 1], path.nodes[i]);

            if (half == UINT32_MAX)
                continue;
            counts[half] += tree->use != BY_TREE_UP;
            counts[half ^ 1] += tree->use != BY_TREE_DOWN;
        }
    }
}

/* Rounds a weight, in units of capacity, down to a multiple of 1 / DENOMINATOR. */
static bool round_weight(struct by_fraction *weight)
{
    return by_fraction_set((__int128)weight->num * DENOMINATOR / weight->den, DENOMINATOR, weight) == 0;
}

/* The halves that all entries load alike, compared by a hash. */
struct few_row {
    uint64_t hash; /* of the loads by entry; 0: no load */
    int64_t limit;
    uint32_t half;
};

static int compare_rows(const void *left, const void *right)
{
    const struct few_row *a = left, *b = right;

    if (a->hash != b->hash)
        return a->hash < b->hash ? -1 : 1;
    if (a->limit != b->limit)
        return a->limit < b->limit ? -1 : 1;
    return a->half < b->half ? -1 : a->half > b->half;
}

static void count_entry(const struct few_task *task, const struct by_tree_list *list,
                        const struct few_entry *entry, int32_t *counts)
{
    memset(counts, 0, 2 * (size_t)task->both->net->pair_count * sizeof(*counts));
    for (uint32_t j = 0; j < task->width; j++)
        add_loads(task, list, &list->trees[entry->first + j], counts);
}

/*
 * Chooses the rows of the program: `rows` receives, for each kind of loads by entry, the half with
 * the least capacity. Most halves are alike: those of hosts carry every tree once. Returns the
 * number of kinds. Different loads with the same hash are possible, so the result is checked
 * (fits()).
 */
static uint32_t choose_rows(const struct few_task *task, const struct by_tree_list *list,
                            const struct few_entry *entries, uint32_t count, struct few_row *rows)
{
    const struct by_mesh *net = task->both->net;
    uint32_t halves = 2 * net->pair_count, kept = 0;
    int32_t *counts = by_alloc(halves, sizeof(*counts));

    for (uint32_t half = 0; half < halves; half++)
        rows[half] = (struct few_row){0, net->capacity[half], half};
    for (uint32_t i = 0; i < count; i++) {
        count_entry(task, list, &entries[i], counts);
        for (uint32_t half = 0; half < halves; half++)
            if (counts[half] > 0)
                rows[half].hash += by_prng_mix((uint64_t)i << 32 | (uint32_t)counts[half]);
    }
    free(counts);
    qsort(rows, halves, sizeof(*rows), compare_rows);
    for (uint32_t i = 0; i < halves; i++)
        if (rows[i].hash != 0 && (kept == 0 || rows[kept - 1].hash != rows[i].hash))
            rows[kept++] = rows[i];
    return kept;
}

/* Whether the entries with their weights fit all links. */
static bool fits(const struct few_task *task, const struct by_tree_list *list,
                 const struct few_entry *entries, uint32_t count)
{
    const struct by_mesh *net = task->both->net;
    uint32_t halves = 2 * net->pair_count;
    int32_t *counts = by_alloc(halves, sizeof(*counts));
    __int128 *loads = by_alloc(halves, sizeof(*loads)); /* in 1 / DENOMINATOR */
    bool right = true;

    for (uint32_t i = 0; i < count; i++) {
        count_entry(task, list, &entries[i], counts);
        for (uint32_t half = 0; half < halves; half++)
            loads[half] +=
                (__int128)entries[i].weight.num * (DENOMINATOR / entries[i].weight.den) * counts[half];
    }
    for (uint32_t half = 0; half < halves; half++)
        right = right && loads[half] <= (__int128)net->capacity[half] * DENOMINATOR;
    free(loads);
    free(counts);
    return right;
}

/* Gives the entries the weights (in units of capacity, rounded down to small denominators) with the
 * greatest sum that fit the links: an exact linear program. `value` receives the sum before
 * rounding. False if the program is too large, or if there is no time. */
static bool weigh(const struct few_task *task, const struct by_tree_list *list, struct few_entry *entries,
                  uint32_t count, struct by_fraction *value)
{
    uint32_t halves = 2 * task->both->net->pair_count, parts = 0, steps = 0;
    int32_t *counts = by_alloc(halves, sizeof(*counts)), *column = by_alloc(halves, sizeof(*column));
    struct few_row *rows = by_alloc(halves, sizeof(*rows));
    int64_t *limits = by_alloc(halves, sizeof(*limits));
    uint32_t row_count = choose_rows(task, list, entries, count, rows);
    struct by_simplex_part *part = by_alloc(row_count, sizeof(*part));
    struct by_simplex *simplex = NULL;
    bool better = row_count <= ROWS_MAX, right = better;

    for (uint32_t i = 0; i < row_count; i++)
        limits[i] = rows[i].limit;
    if (right)
        simplex = by_simplex_new(row_count, limits);
    while (better && right) { /* a column that gains nothing now may gain after another has entered */
        better = false;
        for (uint32_t i = 0; i < count && right; i++) {
            count_entry(task, list, &entries[i], counts);
            for (uint32_t j = 0; j < row_count; j++)
                column[j] = counts[rows[j].half];
            better |= by_simplex_offer(simplex, column, i);
            steps = by_simplex_steps(simplex);
            right =
                !by_plan_late(task->deadline) && (uint64_t)steps * row_count * row_count < PROGRAM_WORK_MAX;
        }
    }
    if (right)
        parts = by_simplex_solution(simplex, part, value);
    for (uint32_t i = 0; i < count && right; i++)
        entries[i].weight = (struct by_fraction){0, 1};
    for (uint32_t i = 0; i < parts && right; i++) {
        entries[part[i].tag].weight = part[i].amount;
        right = round_weight(&entries[part[i].tag].weight);
    }
    by_simplex_free(simplex);
    free(part);
    free(limits);
    free(rows);
    free(column);
    free(counts);
    return right && fits(task, list, entries, count);
}

/* Copies the entries, of which at least one has a weight, and offers them. */
static void offer_entries(struct few_task *task, const struct by_tree_list *from,
                          const struct few_entry *entries, uint32_t count)
{
    struct by_tree_list list = {0};
    struct by_fraction rate = {0, 1};
    bool right = true;

    for (uint32_t i = 0; i < count && right; i++) {
        struct by_fraction weight;

        if (entries[i].weight.num == 0)
            continue;
        right = by_fraction_multiply(entries[i].weight, task->both->unit, &weight) == 0 &&
                by_fraction_add(rate, weight, &rate) == 0;
        for (uint32_t j = 0; j < task->width && right; j++)
            by_tree_list_copy(&list, from, entries[i].first + j, weight);
    }
    offer(task, &list, right ? rate : (struct by_fraction){0, 1});
}

/*
 * The best trees of the pool: a program weighs them, those with the least weights leave, and so on,
 * until few enough are left. False if there is no time for the programs.
 */
static bool thin_out(struct few_task *task, const struct by_tree_list *pool, uint32_t most)
{
    uint32_t count = pool->count / task->width;
    struct few_entry *entries = by_alloc(count, sizeof(*entries));
    struct by_fraction value;
    bool right = true;

    for (uint32_t i = 0; i < count; i++)
        entries[i] = (struct few_entry){i * task->width, pool->trees[i * task->width].weight};
    qsort(entries, count, sizeof(*entries), compare_entries);
    count = count > POOL_MAX ? POOL_MAX : count;
    while (right && count > 0) {
        uint32_t kept = 0;

        right = weigh(task, pool, entries, count, &value);
        if (!right)
            break;
        if (by_fraction_compare(value, task->least) < 0)
            count = 0; /* fewer trees have no greater sum */
        qsort(entries, count, sizeof(*entries), compare_entries);
        while (kept < count && entries[kept].weight.num > 0)
            kept++;
        count = kept;
        if (count <= most)
            break;
        kept = count - (count + 3) / 4;
        count = kept > most ? kept : most;
    }
    if (right)
        offer_entries(task, pool, entries, count < most ? count : most);
    free(entries);
    return right;
}

/* Adds all trees of a list to the pool. */
static void add_to_pool(struct by_tree_list *pool, const struct by_tree_list *list)
{
    for (uint32_t i = 0; i < list->count; i++)
        by_tree_list_copy(pool, list, i, list->trees[i].weight);
}

/* The trees of the plan, and trees that fill the links one after the other. */
static void try_pool(struct few_task *task, uint32_t most)
{
    struct by_graph *up = by_graph_make(task->topology, BY_DIRECTION_UP, task->options->in_network);
    struct by_graph *down = by_graph_make(task->topology, BY_DIRECTION_DOWN, task->options->in_network);
    struct by_plan *plan = task->plan;
    struct by_tree_list own = {.count = plan->tree_count, .trees = plan->trees, .paths = plan->paths};
    struct by_tree_list list = {0}, pool = {0};
    struct by_fraction rate = {0, 1}, bound;
    int error = by_fraction_divide(plan->optimum, task->both->unit, &bound);

    own.edges = plan->edges;
    if (plan->tree_count <= POOL_MAX)
        add_to_pool(&pool, &own);
    if (!error)
        error = by_fill(task->both, up, down, task->width == 2, (bound.num + bound.den - 1) / bound.den,
                        most > FILL_MIN ? most : FILL_MIN, task->deadline, &list, &rate);
    if (!error)
        add_to_pool(&pool, &list);
    thin_out(task, &pool, most);
    if (!error && !thin_out(task, &list, most) && list.count / task->width <= most &&
        by_fraction_multiply(rate, task->both->unit, &rate) == 0)
        offer(task, &list, rate);
    by_tree_list_free(&list);
    by_tree_list_free(&pool);
    by_graph_free(up);
    by_graph_free(down);
}

/* The trees of a broadcast, in both directions with half of each link. */
static void try_rooted(struct few_task *task)
{
    struct by_plan_options options = *task->options;
    struct by_problem problem = {0};
    struct by_plan *plan = NULL;
    struct by_fraction half = {1, 2};
    struct by_tree_list list = {0}, own;
    bool right;

    if (!by_graph_is_symmetric(task->both))
        return;
    options.collective = BY_COLLECTIVE_BROADCAST;
    options.in_network = false; /* a switch that multicasts need not aggregate */
    options.root = 0;
    while (!task->both->compute[options.root])
        options.root++;
    if (task->deadline > 0) {
        options.time_limit_s = task->deadline - by_plan_clock();
        if (options.time_limit_s <= 0)
            return;
    }
    if (by_plan_make(task->topology, &options, &plan, &problem) != 0)
        return;
    own = (struct by_tree_list){.count = plan->tree_count, .trees = plan->trees, .paths = plan->paths};
    own.edges = plan->edges;
    right = by_fraction_multiply(plan->achieved, half, &half) == 0;
    for (uint32_t i = 0; i < plan->tree_count && right; i++) {
        struct by_fraction weight;

        right = by_fraction_multiply(plan->trees[i].weight, (struct by_fraction){1, 2}, &weight) == 0;
        by_tree_list_copy(&list, &own, i, weight);
        list.trees[i].use = BY_TREE_BOTH;
    }
    offer(task, &list, right ? half : (struct by_fraction){0, 1});
    by_plan_free(plan);
}

static void begin(struct few_task *task, double start)
{
    const struct by_plan_options *options = task->options;

    by_stage_begin(options->stage, "choosing few trees", 0);
    task->deadline = options->time_limit_s > 0 ? start + options->time_limit_s : 0;
    task->both = by_graph_make(task->topology, BY_DIRECTION_BOTH, options->in_network);
    task->width = by_plan_is_pairs(task->plan) ? 2 : 1;
}

int by_few_make(const struct by_topology *topology, const struct by_plan_options *options,
                struct by_plan *plan, struct by_problem *problem)
{
    struct few_task task = {
        .topology = topology, .options = options, .plan = plan, .rate = {0, 1}, .least = {0, 1}};
    double start = by_plan_clock();
    int error = 0;

    by_plan_merge(plan);
    if (by_plan_trees_each(plan, topology->node_count) <= options->trees_max)
        return 0;
    begin(&task, start);
    try_pool(&task, (uint32_t)options->trees_max);
    try_rooted(&task);
    if (task.rate.num > 0)
        by_tree_list_replace(&task.list, task.rate, plan);
    else
        error = by_problem_set(problem, BY_EUNSUPPORTED, (struct by_place){0, 0},
                               "no allreduce on at most %lld trees was found; allow more with --trees-max",
                               (long long)options->trees_max);
    by_tree_list_free(&task.list);
    by_graph_free(task.both);
    plan->seconds.pack += by_plan_clock() - start;
    return error;
}

void by_few_keep(const struct by_topology *topology, const struct by_plan_options *options,
                 struct by_plan *plan)
{
    struct few_task task = {
        .topology = topology, .options = options, .plan = plan, .rate = {0, 1}, .least = {0, 1}};
    double start = by_plan_clock();

    /* where switches only forward and hosts are alike, each of N hosts must be a leaf of some tree
     * for its links to be full: fewer than N / 2 trees seldom do */
    if (topology->node_count > KEEP_NODES_MAX || !by_topology_capable(topology))
        return;
    by_plan_merge(plan);
    if (by_plan_trees_each(plan, topology->node_count) <= KEEP_TREES)
        return;
    begin(&task, start);
    if (by_fraction_divide(plan->achieved, task.both->unit, &task.least) == 0)
        try_pool(&task, KEEP_TREES);
    if (task.rate.num > 0 && by_fraction_compare(task.rate, plan->achieved) >= 0)
        by_tree_list_replace(&task.list, task.rate, plan);
    else
        by_tree_list_free(&task.list);
    by_graph_free(task.both);
    plan->seconds.pack += by_plan_clock() - start;
}
