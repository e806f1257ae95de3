/* Column generation for allreduce. See columns.h. */
#include "control/study/bound/columns.h"

#include <gmp.h>

#include "control/base/alloc.h"
#include "control/base/clock.h"
#include "control/base/fraction.h"
#include "control/planner/network/packing.h"
#include "control/planner/network/simplex.h"
#include "control/planner/network/steiner.h"
#include "control/planner/network/tree_pair.h"
#include "control/planner/pack/tree.h"
#include "control/study/bound/columns_task.h"
#include "offload/base/errors.h"

/* A column improves if its price is below 1 by more than this: less may be rounding. */
#define TOLERANCE 1e-8
/* The part of the best prices so far in the prices for which columns are sought. */
#define SMOOTHING 0.8
/* Rows and sites of the largest programs (counts). */
#define ROWS_MAX        4096u
#define SITES_MAX       256u
#define PAIRS_SITES_MAX 64u
/* New columns after which a program stops with the result so far (count), and the work of finding
 * them (trees tried times sites^2) and of solving the program (rows^3 / 8): some 40 s. */
#define COLUMNS_MAX 3000u
#define WORK_MAX    15000000000u
/* The same for trees that are only lower than others: about half a second. */
#define WORK_LOWER_MAX 200000000u
/* Weights that do not fit 63 bits become multiples of 1 / 2^ROUND_BITS. */
#define ROUND_BITS 20u
/* Exact solutions that may each find a column which floating point did not (count). */
#define EXACT_MAX 8u

static void task_free(struct by_columns *task)
{
    for (uint32_t i = 0; i < task->column_count; i++)
        free(task->columns[i].rows);
    free(task->columns);
    by_tree_list_free(&task->trees);
    free(task->limits);
    free(task->prices);
    free(task->counts);
    free(task->duals);
    free(task->kept);
    by_lp_free(task->lp);
    by_steiner_free(task->steiner);
    by_tree_pair_free(task->tree_pair);
    by_grown_free(task->grown);
}

static void row_ends(const struct by_columns *task, uint32_t row, uint32_t ends[2])
{
    if (task->grown)
        by_grown_row_ends(task->grown, row, ends);
    else if (task->steiner)
        by_steiner_row_ends(task->steiner, row, ends);
    else
        by_tree_pair_row_ends(task->tree_pair, row, ends);
}

/* The number of nodes that trees may have. */
static uint32_t count_sites(const struct by_plan_gap *gap)
{
    uint32_t up = gap->both->compute_count, down = up;

    for (uint32_t i = 0; i < gap->both->node_count; i++) {
        up += gap->up->branch[i];
        down += gap->down->branch[i];
    }
    return up > down ? up : down;
}

/* Whether the cheapest pairs, or trees in both directions, can be found in time. */
static bool fits(const struct by_plan_gap *gap, bool pairs)
{
    return gap->both->net->pair_count * (pairs ? 2 : 1) <= ROWS_MAX &&
           count_sites(gap) <= (pairs ? PAIRS_SITES_MAX : SITES_MAX);
}

/* Returns the number of columns that may be added to a program of cheapest trees. */
static uint32_t most_columns(const struct by_columns *task)
{
    uint64_t sites = count_sites(task->gap), work = 2 * sites * sites;

    work *= 1 + sites - task->gap->both->compute_count;
    work *= task->tree_pair ? 2 * sites : 1; /* for each root, up and down */
    work += (uint64_t)task->rows * task->rows * task->rows / 8;
    work = (task->gap->lower ? WORK_LOWER_MAX : WORK_MAX) / work;
    return work < COLUMNS_MAX ? (uint32_t)work : COLUMNS_MAX;
}

/* Makes the rows of the program of task->steiner, tree_pair or grown. */
static void make_rows(struct by_columns *task)
{
    task->rows = task->grown     ? by_grown_row_count(task->grown)
                 : task->steiner ? by_steiner_row_count(task->steiner)
                                 : by_tree_pair_row_count(task->tree_pair);
    task->limits = by_alloc(task->rows, sizeof(*task->limits));
    task->prices = by_alloc(task->rows, sizeof(*task->prices));
    task->counts = by_alloc(task->rows, sizeof(*task->counts));
    task->duals = by_alloc(task->rows, sizeof(*task->duals));
    task->kept = by_alloc(task->rows, sizeof(*task->kept));
    task->lp = by_lp_new();
    for (uint32_t i = 0; i < task->rows; i++) {
        task->limits[i] = task->grown     ? by_grown_row_capacity(task->grown, i)
                          : task->steiner ? by_steiner_row_capacity(task->steiner, i)
                                          : by_tree_pair_row_capacity(task->tree_pair, i);
        by_lp_row(task->lp, BY_LP_AT_MOST, task->limits[i], 1);
    }
}

/* Finds a cheap column for the prices and fills `counts`; returns its price, -1 if there is none of
 * at most `height_max` hops. `*floor` as in steiner.h. */
static __int128 find(struct by_columns *task, bool prove, __int128 *floor)
{
    __int128 price = 0;

    *floor = -1;
    if (task->height_max < UINT32_MAX) {
        if (!(task->steiner
                  ? by_steiner_price_low(task->steiner, task->prices, task->height_max, task->counts)
                  : by_tree_pair_price_low(task->tree_pair, task->prices, task->height_max, task->counts)))
            return -1;
    } else if (task->steiner) {
        by_steiner_price(task->steiner, task->prices, prove, task->counts, floor);
    } else {
        by_tree_pair_price(task->tree_pair, task->prices, prove, task->counts, floor);
    }
    for (uint32_t i = 0; i < task->rows; i++)
        price += (__int128)task->prices[i] * task->counts[i];
    return price;
}

/* Adds the paths as a tree to the list, and frees them. */
static void add_tree(struct by_columns *task, const struct by_graph *graph, enum by_tree_use use,
                     uint32_t root, struct by_path *paths, uint32_t count)
{
    by_tree_list_add(&task->trees, graph, root, use, (struct by_fraction){1, 1}, paths, count);
    for (uint32_t i = 0; i < count; i++)
        free(paths[i].nodes);
    free(paths);
}

/* Adds the column that was found last. */
static void add(struct by_columns *task)
{
    struct by_path *paths;
    uint32_t root, count;

    if (task->steiner) {
        paths = by_steiner_paths(task->steiner, &root, &count);
        add_tree(task, task->gap->both, BY_TREE_BOTH, root, paths, count);
    } else {
        paths = by_tree_pair_paths(task->tree_pair, true, &root, &count);
        add_tree(task, task->gap->up, BY_TREE_UP, root, paths, count);
        paths = by_tree_pair_paths(task->tree_pair, false, &root, &count);
        add_tree(task, task->gap->down, BY_TREE_DOWN, root, paths, count);
    }
    by_columns_add(task);
}

/* Adds the loads of a tree; `row_of` by [from * node_count + to]. False if it is not of the
 * program. */
static bool count_tree(struct by_columns *task, const struct by_tree_list *list, const struct by_tree *tree,
                       const uint32_t *row_of)
{
    uint32_t n = task->gap->both->node_count;

    for (uint32_t e = 0; e < tree->edge_count; e++) {
        struct by_path path = by_paths_get(&list->paths, list->edges[tree->first_edge + e]);

        for (uint32_t i = 1; i < path.node_count; i++) {
            uint32_t from = path.nodes[i - (tree->use != BY_TREE_UP)],
                     to = path.nodes[i - (tree->use == BY_TREE_UP)];
            uint32_t row = row_of[(size_t)from * n + to], back = row_of[(size_t)to * n + from];
            bool both = tree->use == BY_TREE_BOTH && !task->steiner;

            if (row == UINT32_MAX || (both && back == UINT32_MAX))
                return false;
            task->counts[row]++;
            if (both)
                task->counts[back]++;
        }
    }
    return true;
}

/* Adds the trees that are given as columns, unless additions are limited. */
static void add_given(struct by_columns *task, const struct by_tree_list *list)
{
    uint32_t n = task->gap->both->node_count, *row_of = by_alloc((size_t)n * n, sizeof(*row_of));
    bool right = true;

    for (size_t i = 0; i < (size_t)n * n; i++)
        row_of[i] = UINT32_MAX;
    for (uint32_t i = 0; i < task->rows; i++) {
        uint32_t ends[2];

        row_ends(task, i, ends);
        right = right && ends[0] != ends[1];
        row_of[(size_t)ends[0] * n + ends[1]] = i;
        if (task->steiner)
            row_of[(size_t)ends[1] * n + ends[0]] = i;
    }
    for (uint32_t t = 0; t < list->count && right; t++) {
        bool pair = list->trees[t].use != BY_TREE_BOTH;

        memset(task->counts, 0, task->rows * sizeof(*task->counts));
        right = !(pair && task->steiner) && count_tree(task, list, &list->trees[t], row_of) &&
                (!pair || count_tree(task, list, &list->trees[t + 1], row_of));
        if (right) {
            by_tree_list_copy(&task->trees, list, t, list->trees[t].weight);
            if (pair)
                by_tree_list_copy(&task->trees, list, t + 1, list->trees[t + 1].weight);
            by_columns_add(task);
        }
        t += pair;
    }
    free(row_of);
}

static bool can_prove(const struct by_columns *task)
{
    return task->steiner ? by_steiner_can_prove(task->steiner) : by_tree_pair_can_prove(task->tree_pair);
}

/* Whether the column just found improves the value, at the prices of the last estimate. */
static bool improves(const struct by_columns *task)
{
    double price = 0;

    for (uint32_t i = 0; i < task->rows; i++)
        price += task->duals[i] * task->counts[i];
    return price < 1 - TOLERANCE;
}

/*
 * Adds columns, priced in floating point, until none improves or the value is at least `bound`.
 * Prices are taken between those of the estimate, which jump, and the best so far (Wentges 1997).
 * False: there was no time, or no estimate.
 */
bool by_columns_generate(struct by_columns *task, double bound)
{
    bool prove = false;

    task->least = 0;
    while (task->column_count < task->column_max) {
        __int128 floor;

        if (by_plan_late(task->gap->deadline) ||
            !by_lp_estimate(task->lp, task->gap->deadline, &task->value, NULL, task->duals))
            return false;
        if (task->value >= bound * (1 - 1e-9))
            return true;
        for (double part = task->least > 0 ? SMOOTHING : 0;; part = 0) {
            __int128 price;

            by_columns_mix_prices(task, part);
            price = find(task, prove, &floor);
            if (price < 0)
                return true;
            by_columns_keep_prices(task, price);
            if (part == 0 || improves(task))
                break;
        }
        if (improves(task)) {
            add(task);
            if (task->columns[task->column_count - 1].height > task->height_max)
                return true;
            prove = false;
        } else if (!prove && task->height_max == UINT32_MAX && can_prove(task)) {
            prove = true;
        } else {
            return true;
        }
    }
    return false;
}

/* Converts the prices of the exact solution to integers; `*one` as BY_COLUMNS_ONE. They are rounded
 * down if they do not fit. */
static void take_prices(struct by_columns *task, int64_t *one)
{
    const mpq_t *duals = by_lp_duals(task->lp);
    mpz_t scale, most, number;
    size_t bits = 0;

    mpz_inits(scale, most, number, NULL);
    by_lp_denominator(duals, task->rows, scale);
    mpz_set(most, scale);
    for (uint32_t i = 0; i < task->rows; i++) {
        mpz_divexact(number, scale, mpq_denref(duals[i]));
        mpz_mul(number, number, mpq_numref(duals[i]));
        if (mpz_cmp(number, most) > 0)
            mpz_set(most, number);
    }
    for (; mpz_cmp_si(most, BY_PRICE_MAX) >= 0; bits++)
        mpz_fdiv_q_2exp(most, most, 1);
    for (uint32_t i = 0; i < task->rows; i++) {
        mpz_divexact(number, scale, mpq_denref(duals[i]));
        mpz_mul(number, number, mpq_numref(duals[i]));
        mpz_fdiv_q_2exp(number, number, bits);
        task->prices[i] = mpz_get_si(number);
    }
    mpz_fdiv_q_2exp(number, scale, bits);
    *one = mpz_get_si(number);
    mpz_clears(scale, most, number, NULL);
}

/* Keeps the bound that the prices prove if no column costs less than `floor`. */
static void keep_bound(const struct by_columns *task, __int128 floor, struct by_packed *packed)
{
    struct by_price *rows = by_alloc(task->rows, sizeof(*rows));
    bool links_only = true;

    for (uint32_t i = 0; i < task->rows; i++) {
        uint32_t ends[2];

        row_ends(task, i, ends);
        rows[i] = (struct by_price){ends[0], ends[1], task->prices[i]};
        /* two different trees may need fewer additions than one in both directions */
        links_only = links_only && (!task->steiner || ends[0] != ends[1] || task->prices[i] == 0);
    }
    if (links_only)
        packed->proof = by_certificate_of_prices(rows, task->limits, task->rows, task->steiner != NULL, floor,
                                                 &packed->bound);
    if (!packed->proof)
        packed->bound = (struct by_fraction){0, 1};
    free(rows);
}

/* Solves the program of all columns exactly, and adds columns that only exact prices find. Returns
 * 0, or an error of by_lp_solve. */
static int finish(struct by_columns *task, struct by_packed *packed, struct by_problem *problem)
{
    struct by_lp_options options = {.deadline = task->gap->deadline};

    for (uint32_t rounds = 0;; rounds++) {
        int error = by_lp_solve(task->lp, &options, problem);
        __int128 floor;
        int64_t one;

        if (error || task->gap->lower || !can_prove(task) || rounds == EXACT_MAX)
            return error;
        take_prices(task, &one);
        if (find(task, true, &floor) >= one) {
            if (floor > 0)
                keep_bound(task, floor, packed);
            return 0;
        }
        add(task);
    }
}

/* Whether a column with an amount is a pair. */
static bool uses_pairs(const struct by_columns *task, const struct by_amounts *amounts)
{
    for (uint32_t i = 0; i < amounts->count; i++)
        if (amounts->of[i].num > 0 && task->trees.trees[task->columns[i].tree].use != BY_TREE_BOTH)
            return true;
    return false;
}

/* Appends the trees with their weights. Plans have either trees in both directions or pairs; where
 * both are columns, the former become pairs of equal trees. */
static int append(const struct by_columns *task, const struct by_amounts *amounts, struct by_tree_list *list)
{
    bool pairs = uses_pairs(task, amounts);

    for (uint32_t i = 0; i < amounts->count; i++) {
        uint32_t tree = task->columns[i].tree;
        struct by_fraction weight;

        if (amounts->of[i].num == 0)
            continue;
        if (by_fraction_multiply(amounts->of[i], task->gap->both->unit, &weight) != 0) {
            by_tree_list_free(list);
            return BY_ERANGE;
        }
        by_tree_list_copy(list, &task->trees, tree, weight);
        if (!pairs)
            continue;
        list->trees[list->count - 1].use = BY_TREE_UP;
        by_tree_list_copy(list, &task->trees, tree + (task->trees.trees[tree].use != BY_TREE_BOTH), weight);
        list->trees[list->count - 1].use = BY_TREE_DOWN;
    }
    return 0;
}

/* Weighs the columns, appends those with a weight to the list, and sets the rate. `solved`: the
 * exact program has been solved. */
static int take_columns(struct by_columns *task, bool solved, struct by_tree_list *list,
                        struct by_fraction *rate)
{
    struct by_amounts amounts = {0};
    int error = by_columns_weigh(task, solved, ROUND_BITS, &amounts);

    if (!error && solved && amounts.count > 0)
        by_columns_lower(task, &amounts);
    if (!error)
        error = append(task, &amounts, list);
    if (!error && amounts.count > 0)
        *rate = amounts.sum;
    free(amounts.of);
    return error;
}

/* Packs the cheapest pairs, or trees in both directions. */
static int pack(const struct by_plan_gap *gap, bool pairs, struct by_tree_list *list,
                struct by_packed *packed, struct by_problem *problem)
{
    struct by_columns task = {.gap = gap, .height_max = UINT32_MAX};
    double bound = by_fraction_value(gap->bound);
    __int128 floor;
    bool solved;
    int error = 0;

    *packed = (struct by_packed){.rate = {0, 1}, .bound = {0, 1}};
    if (!fits(gap, pairs))
        return 0;
    if (pairs)
        task.tree_pair = by_tree_pair_new(gap->up, gap->down);
    else
        task.steiner = by_steiner_new(gap->both);
    make_rows(&task);
    add_given(&task, gap->trees);
    task.column_max = task.column_count + most_columns(&task);
    by_packing_price(task.limits, task.limits, task.rows, task.prices);
    find(&task, false, &floor);
    add(&task);
    solved = by_columns_generate(&task, bound) && finish(&task, packed, problem) == 0;
    if (!gap->lower || (solved && task.value >= bound * (1 - 1e-9)))
        error = take_columns(&task, solved, list, &packed->rate);
    task_free(&task);
    return error;
}

/* Packs trees, or pairs, that are grown, and those that are given. */
static int pack_grown(const struct by_plan_gap *gap, const struct by_tree_list *given,
                      struct by_tree_list *list, struct by_fraction *rate)
{
    struct by_columns task = {.gap = gap, .height_max = UINT32_MAX, .grown = by_grown_new(gap)};
    int error;

    make_rows(&task);
    add_given(&task, given);
    by_columns_grow(&task, by_fraction_value(gap->bound));
    error = take_columns(&task, false, list, rate);
    task_free(&task);
    return error;
}

/* Keeps the trees of the second result if they are better; frees the others. */
static void take_better(struct by_tree_list *list, struct by_fraction *rate, struct by_tree_list *other,
                        struct by_fraction other_rate)
{
    if (by_fraction_compare(other_rate, *rate) > 0) {
        struct by_tree_list loser = *list;

        *list = *other;
        *other = loser;
        *rate = other_rate;
    }
    by_tree_list_free(other);
}

int by_columns_pack(const struct by_plan_gap *gap, struct by_tree_list *list, struct by_packed *packed,
                    struct by_problem *problem)
{
    struct by_tree_list other = {0};
    struct by_packed second = {.rate = {0, 1}};
    int error = 0;

    *packed = (struct by_packed){.rate = {0, 1}, .bound = {0, 1}};
    if (by_graph_is_symmetric(gap->both))
        error = pack(gap, false, list, packed, problem);
    if (!error && gap->pairs && by_fraction_compare(packed->rate, gap->bound) < 0) {
        by_certificate_free(packed->proof); /* it does not hold for pairs */
        error = pack(gap, true, &other, &second, problem);
        packed->bound = second.bound;
        packed->proof = second.proof;
        take_better(list, &packed->rate, &other, second.rate);
    }
    if (!error && !gap->lower && !fits(gap, gap->pairs) && by_grown_fits(gap) &&
        by_fraction_compare(packed->rate, gap->bound) < 0) {
        second.rate = (struct by_fraction){0, 1};
        error = pack_grown(gap, list->count > 0 ? list : gap->trees, &other, &second.rate);
        take_better(list, &packed->rate, &other, second.rate);
    }
    return error;
}
