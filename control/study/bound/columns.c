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

/* The price of a column that neither gains nor loses, where prices come from floating point. */
#define ONE ((int64_t)1 << 34)
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
}

static void row_ends(const struct by_columns *task, uint32_t row, uint32_t ends[2])
{
    if (task->steiner)
        by_steiner_row_ends(task->steiner, row, ends);
    else
        by_tree_pair_row_ends(task->tree_pair, row, ends);
}

/* Makes the pricer and the empty program. False if it is too large. */
static bool task_make(struct by_columns *task, bool pairs)
{
    uint32_t sites[2] = {task->gap->both->compute_count, task->gap->both->compute_count};
    uint64_t work;

    for (uint32_t i = 0; i < task->gap->both->node_count; i++) {
        sites[0] += task->gap->up->branch[i];
        sites[1] += task->gap->down->branch[i];
    }
    sites[0] = sites[0] > sites[1] ? sites[0] : sites[1];
    if (task->gap->both->net->pair_count * (pairs ? 2 : 1) > ROWS_MAX ||
        sites[0] > (pairs ? PAIRS_SITES_MAX : SITES_MAX))
        return false;
    work = (uint64_t)2 * sites[0] * sites[0] * (1 + sites[0] - task->gap->both->compute_count);
    work *= pairs ? 2 * sites[0] : 1; /* for each root, up and down */
    if (pairs)
        task->tree_pair = by_tree_pair_new(task->gap->up, task->gap->down);
    else
        task->steiner = by_steiner_new(task->gap->both);
    task->rows = pairs ? by_tree_pair_row_count(task->tree_pair) : by_steiner_row_count(task->steiner);
    task->limits = by_alloc(task->rows, sizeof(*task->limits));
    task->prices = by_alloc(task->rows, sizeof(*task->prices));
    task->counts = by_alloc(task->rows, sizeof(*task->counts));
    task->duals = by_alloc(task->rows, sizeof(*task->duals));
    task->kept = by_alloc(task->rows, sizeof(*task->kept));
    work += (uint64_t)task->rows * task->rows * task->rows / 8;
    work = (task->gap->lower ? WORK_LOWER_MAX : WORK_MAX) / work;
    task->column_max = work < COLUMNS_MAX ? (uint32_t)work : COLUMNS_MAX;
    task->lp = by_lp_new();
    for (uint32_t i = 0; i < task->rows; i++) {
        task->limits[i] =
            pairs ? by_tree_pair_row_capacity(task->tree_pair, i) : by_steiner_row_capacity(task->steiner, i);
        by_lp_row(task->lp, BY_LP_AT_MOST, task->limits[i], 1);
    }
    return true;
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

/* Adds the column in `counts` to the program. Its tree, or pair, is the last in the list. */
static void add_counts(struct by_columns *task)
{
    struct by_column *column;
    uint32_t number = by_lp_column(task->lp, 1, 1), last = task->trees.count - 1;

    BY_GROW(task->columns, task->column_count, task->column_room);
    column = &task->columns[task->column_count++];
    *column = (struct by_column){.rows = by_alloc(task->rows, sizeof(*column->rows)), .tree = last};
    column->tree -= task->trees.trees[last].use != BY_TREE_BOTH;
    for (uint32_t i = column->tree; i <= last; i++) {
        uint32_t height = by_tree_list_height(&task->trees, i, task->gap->both->node_count);

        column->height = height > column->height ? height : column->height;
    }
    for (uint32_t i = 0; i < task->rows; i++)
        if (task->counts[i] > 0) {
            by_lp_add(task->lp, i, number, task->counts[i], 1);
            column->rows[column->row_count++] = (struct by_column_use){i, task->counts[i]};
        }
    column->rows = by_realloc(column->rows, column->row_count, sizeof(*column->rows));
    if (column->height > task->height_max)
        by_lp_cost(task->lp, number, -1, 1);
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
    add_counts(task);
}

/* Adds the loads of a tree; `row_of` by [from * node_count + to]. False if it is not of the
 * program. */
static bool count_tree(struct by_columns *task, const struct by_tree *tree, const uint32_t *row_of)
{
    const struct by_tree_list *list = task->gap->trees;
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
static void add_given(struct by_columns *task)
{
    const struct by_tree_list *list = task->gap->trees;
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
        right = !(pair && task->steiner) && count_tree(task, &list->trees[t], row_of) &&
                (!pair || count_tree(task, &list->trees[t + 1], row_of));
        if (right) {
            by_tree_list_copy(&task->trees, list, t, list->trees[t].weight);
            if (pair)
                by_tree_list_copy(&task->trees, list, t + 1, list->trees[t + 1].weight);
            add_counts(task);
        }
        t += pair;
    }
    free(row_of);
}

static bool can_prove(const struct by_columns *task)
{
    return task->steiner ? by_steiner_can_prove(task->steiner) : by_tree_pair_can_prove(task->tree_pair);
}

/* Sets the prices between those of the last estimate (part 0) and the kept ones (part 1). */
static void mix_prices(struct by_columns *task, double part)
{
    for (uint32_t i = 0; i < task->rows; i++) {
        double dual = part * task->kept[i] + (1 - part) * task->duals[i];

        task->prices[i] = dual <= 0 ? 0 : dual >= 1 ? ONE : (int64_t)(dual * (double)ONE + 0.5);
    }
}

/* Keeps the prices if the bound that they prove, provided that no column is cheaper than the one
 * just found, is the least so far. */
static void keep_prices(struct by_columns *task, __int128 price)
{
    double bound = 0, one = (double)price;

    if (price <= 0)
        return;
    for (uint32_t i = 0; i < task->rows; i++)
        bound += (double)task->limits[i] * ((double)task->prices[i] / one);
    if (task->least > 0 && bound >= task->least)
        return;
    task->least = bound;
    for (uint32_t i = 0; i < task->rows; i++)
        task->kept[i] = (double)task->prices[i] / one;
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

            mix_prices(task, part);
            price = find(task, prove, &floor);
            if (price < 0)
                return true;
            keep_prices(task, price);
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

/* Converts the prices of the exact solution to integers; `*one` as ONE. They are rounded down if
 * they do not fit. */
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

/* Appends the trees with their weights. */
static int append(const struct by_columns *task, const struct by_amounts *amounts, struct by_tree_list *list)
{
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
        if (task->trees.trees[tree].use != BY_TREE_BOTH)
            by_tree_list_copy(list, &task->trees, tree + 1, weight);
    }
    return 0;
}

/* Packs pairs, or trees in both directions. */
static int pack(const struct by_plan_gap *gap, bool pairs, struct by_tree_list *list,
                struct by_packed *packed, struct by_problem *problem)
{
    struct by_columns task = {.gap = gap, .height_max = UINT32_MAX};
    struct by_amounts amounts = {0};
    double bound = by_fraction_value(gap->bound);
    __int128 floor;
    int error = 0;

    *packed = (struct by_packed){.rate = {0, 1}, .bound = {0, 1}};
    if (task_make(&task, pairs)) {
        bool solved;

        add_given(&task);
        task.column_max += task.column_count;
        by_packing_price(task.limits, task.limits, task.rows, task.prices);
        find(&task, false, &floor);
        add(&task);
        solved = by_columns_generate(&task, bound) && finish(&task, packed, problem) == 0;
        if (!gap->lower || (solved && task.value >= bound * (1 - 1e-9)))
            error = by_columns_weigh(&task, solved, ROUND_BITS, &amounts);
        if (!error && solved && amounts.count > 0)
            by_columns_lower(&task, &amounts);
        if (!error)
            error = append(&task, &amounts, list);
        if (!error && amounts.count > 0)
            packed->rate = amounts.sum;
        free(amounts.of);
    }
    task_free(&task);
    return error;
}

int by_columns_pack(const struct by_plan_gap *gap, struct by_tree_list *list, struct by_packed *packed,
                    struct by_problem *problem)
{
    struct by_tree_list other = {0};
    struct by_packed second;
    int error = 0;

    *packed = (struct by_packed){.rate = {0, 1}, .bound = {0, 1}};
    if (by_graph_is_symmetric(gap->both))
        error = pack(gap, false, list, packed, problem);
    if (error || !gap->pairs || by_fraction_compare(packed->rate, gap->bound) >= 0)
        return error;
    by_certificate_free(packed->proof); /* it does not hold for pairs */
    error = pack(gap, true, &other, &second, problem);
    if (!error && by_fraction_compare(second.rate, packed->rate) > 0) {
        by_tree_list_free(list);
        *list = other;
        other = (struct by_tree_list){0};
        packed->rate = second.rate;
    }
    packed->bound = second.bound;
    packed->proof = second.proof;
    by_tree_list_free(&other);
    return error;
}
