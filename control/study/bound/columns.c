/* Column generation for allreduce. See columns.h. */
#include "control/study/bound/columns.h"

#include <gmp.h>

#include "control/base/alloc.h"
#include "control/base/clock.h"
#include "control/base/fraction.h"
#include "control/planner/lp/lp.h"
#include "control/planner/network/packing.h"
#include "control/planner/network/simplex.h"
#include "control/planner/network/steiner.h"
#include "control/planner/network/tree_pair.h"
#include "control/planner/pack/tree.h"
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
/* Exact solutions that may each find a column which floating point did not (count). */
#define EXACT_MAX 8u
/* Weights that do not fit 63 bits become multiples of 1 / 2^ROUNDED_BITS. */
#define ROUNDED_BITS 20
/* The part of a link that is left free for small denominators, if it can be: 1 / FREE_PART. */
#define FREE_PART 32
/* Weights are first multiples of the value's own denominator times these, one after the other. */
static const int64_t unit_factors[] = {1, 6, 60};
/* The largest limit in such units. */
#define UNITS_MAX ((int64_t)1 << 52)

/* How often a column passes a link, or how many additions it needs at a switch. */
struct use {
    uint32_t row;
    int32_t count;
};

/* A tree in both directions (the paths of `up` only), or a pair; or one of those that are given. */
struct column {
    uint32_t row_count;
    struct use *rows;
    uint32_t given; /* its number in gap->trees, UINT32_MAX for a new one */
    uint32_t root;
    uint32_t up_count, down_count;
    struct by_path *up, *down;
};

struct columns_task {
    const struct by_plan_gap *gap;
    struct by_steiner *steiner; /* trees in both directions; NULL: pairs */
    struct by_tree_pair *tree_pair;
    uint32_t rows;
    int64_t *limits, *prices;
    int32_t *counts;
    double *duals;
    double value; /* of the last estimate */
    double *kept; /* the prices that prove the least bound so far, `least`, if columns are found well */
    double least;
    struct by_lp *lp;
    uint32_t column_count, column_room, column_max;
    struct column *columns;
};

static void paths_free(struct by_path *paths, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        free(paths[i].nodes);
    free(paths);
}

static void task_free(struct columns_task *task)
{
    for (uint32_t i = 0; i < task->column_count; i++) {
        free(task->columns[i].rows);
        paths_free(task->columns[i].up, task->columns[i].up_count);
        paths_free(task->columns[i].down, task->columns[i].down_count);
    }
    free(task->columns);
    free(task->limits);
    free(task->prices);
    free(task->counts);
    free(task->duals);
    free(task->kept);
    by_lp_free(task->lp);
    by_steiner_free(task->steiner);
    by_tree_pair_free(task->tree_pair);
}

static void row_ends(const struct columns_task *task, uint32_t row, uint32_t ends[2])
{
    if (task->steiner)
        by_steiner_row_ends(task->steiner, row, ends);
    else
        by_tree_pair_row_ends(task->tree_pair, row, ends);
}

/* Makes the pricer and the empty program. False if it is too large. */
static bool task_make(struct columns_task *task, bool pairs)
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
    task->column_max = WORK_MAX / work < COLUMNS_MAX ? (uint32_t)(WORK_MAX / work) : COLUMNS_MAX;
    task->lp = by_lp_new();
    for (uint32_t i = 0; i < task->rows; i++) {
        task->limits[i] =
            pairs ? by_tree_pair_row_capacity(task->tree_pair, i) : by_steiner_row_capacity(task->steiner, i);
        by_lp_row(task->lp, BY_LP_AT_MOST, task->limits[i], 1);
    }
    return true;
}

/* Finds a cheap column for the prices and fills `counts`; returns its price. `*floor` as in
 * steiner.h. */
static __int128 find(struct columns_task *task, bool prove, __int128 *floor)
{
    __int128 price = 0;

    if (task->steiner)
        return by_steiner_price(task->steiner, task->prices, prove, task->counts, floor);
    by_tree_pair_price(task->tree_pair, task->prices, prove, task->counts, floor);
    for (uint32_t i = 0; i < task->rows; i++)
        price += (__int128)task->prices[i] * task->counts[i];
    return price;
}

/* Adds the column in `counts` to the program. */
static struct column *add_counts(struct columns_task *task, uint32_t given)
{
    struct column *column;
    uint32_t number = by_lp_column(task->lp, 1, 1);

    BY_GROW(task->columns, task->column_count, task->column_room);
    column = &task->columns[task->column_count++];
    *column = (struct column){.rows = by_alloc(task->rows, sizeof(*column->rows)), .given = given};
    for (uint32_t i = 0; i < task->rows; i++)
        if (task->counts[i] > 0) {
            by_lp_add(task->lp, i, number, task->counts[i], 1);
            column->rows[column->row_count++] = (struct use){i, task->counts[i]};
        }
    column->rows = by_realloc(column->rows, column->row_count, sizeof(*column->rows));
    return column;
}

/* Adds the column that was found last. */
static void add(struct columns_task *task)
{
    struct column *column = add_counts(task, UINT32_MAX);

    if (task->steiner) {
        column->up = by_steiner_paths(task->steiner, &column->root, &column->up_count);
        return;
    }
    column->up = by_tree_pair_paths(task->tree_pair, true, &column->root, &column->up_count);
    column->down = by_tree_pair_paths(task->tree_pair, false, &column->root, &column->down_count);
}

/* Adds the loads of a tree; `row_of` by [from * node_count + to]. False if it is not of the
 * program. */
static bool count_tree(struct columns_task *task, const struct by_tree *tree, const uint32_t *row_of)
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
static void add_given(struct columns_task *task)
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
        if (right)
            add_counts(task, t);
        t += pair;
    }
    free(row_of);
}

static bool can_prove(const struct columns_task *task)
{
    return task->steiner ? by_steiner_can_prove(task->steiner) : by_tree_pair_can_prove(task->tree_pair);
}

/* Sets the prices between those of the last estimate (part 0) and the kept ones (part 1). */
static void mix_prices(struct columns_task *task, double part)
{
    for (uint32_t i = 0; i < task->rows; i++) {
        double dual = part * task->kept[i] + (1 - part) * task->duals[i];

        task->prices[i] = dual <= 0 ? 0 : dual >= 1 ? ONE : (int64_t)(dual * (double)ONE + 0.5);
    }
}

/* Keeps the prices if the bound that they prove, provided that no column is cheaper than the one
 * just found, is the least so far. */
static void keep_prices(struct columns_task *task, __int128 price)
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
static bool improves(const struct columns_task *task)
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
static bool generate(struct columns_task *task, double bound)
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
            mix_prices(task, part);
            keep_prices(task, find(task, prove, &floor));
            if (part == 0 || improves(task))
                break;
        }
        if (improves(task)) {
            add(task);
            prove = false;
        } else if (!prove && can_prove(task)) {
            prove = true;
        } else {
            return true;
        }
    }
    return false;
}

/* Converts the prices of the exact solution to integers; `*one` as ONE. They are rounded down if
 * they do not fit. */
static void take_prices(struct columns_task *task, int64_t *one)
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
static void keep_bound(const struct columns_task *task, __int128 floor, struct by_packed *packed)
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
static int finish(struct columns_task *task, struct by_packed *packed, struct by_problem *problem)
{
    struct by_lp_options options = {.deadline = task->gap->deadline};

    for (uint32_t rounds = 0;; rounds++) {
        int error = by_lp_solve(task->lp, &options, problem);
        __int128 floor;
        int64_t one;

        if (error || !can_prove(task) || rounds == EXACT_MAX)
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

/* Sets the limits of the program, which are in units of 1 / scale. */
static void set_limits(const struct columns_task *task, const int64_t *limits, int64_t scale)
{
    for (uint32_t i = 0; i < task->rows; i++)
        by_lp_limit(task->lp, i, limits[i], scale);
}

/*
 * Finds columns that reach the value `bound` although each link without a price keeps a part free.
 * Then only the links with prices must be full, and few columns suffice for the rest of rounded
 * amounts. False if there are none.
 */
static bool leave_room(struct columns_task *task, bool *full, double bound)
{
    bool changed = true;

    for (uint32_t i = 0; i < task->rows; i++)
        if (!full[i] && task->limits[i] <= UNITS_MAX)
            by_lp_limit(task->lp, i, task->limits[i] * (FREE_PART - 1), FREE_PART);
    while (changed) {
        if (!generate(task, bound))
            return false;
        if (task->value >= bound * (1 - 1e-9))
            return true;
        changed = false;
        for (uint32_t i = 0; i < task->rows; i++)
            if (!full[i] && task->duals[i] > 1e-9) {
                full[i] = changed = true;
                by_lp_limit(task->lp, i, task->limits[i], 1);
            }
    }
    return false;
}

/* Amounts in whole units of 1 / scale. */
struct units {
    int64_t scale;
    int64_t *left, *given; /* by row: of the limit; by column */
};

static void units_free(struct units *units)
{
    free(units->left);
    free(units->given);
}

/* Gives each column the whole units of its amount. False if the limits need too many bits. */
static bool units_make(const struct columns_task *task, const double *amounts, int64_t scale,
                       struct units *units)
{
    bool right = true;

    *units = (struct units){.scale = scale};
    units->left = by_alloc(task->rows, sizeof(*units->left));
    units->given = by_alloc(task->column_count, sizeof(*units->given));
    for (uint32_t i = 0; i < task->rows && right; i++) {
        right = task->limits[i] <= UNITS_MAX / scale;
        units->left[i] = task->limits[i] * scale;
    }
    for (uint32_t j = 0; j < task->column_count && right; j++) {
        const struct column *column = &task->columns[j];
        int64_t most = amounts[j] > 0 ? (int64_t)(amounts[j] * (double)scale + 1e-6) : 0;

        for (uint32_t k = 0; k < column->row_count; k++)
            if (units->left[column->rows[k].row] / column->rows[k].count < most)
                most = units->left[column->rows[k].row] / column->rows[k].count;
        for (uint32_t k = 0; k < column->row_count; k++)
            units->left[column->rows[k].row] -= most * column->rows[k].count;
        units->given[j] = most;
    }
    return right;
}

/* Adds the amounts of the exact solution to the units (NULL: none). Returns BY_ERANGE if they, or
 * their sum, need too many bits. */
static int add_exact(const struct columns_task *task, const struct units *units, struct by_fraction *amounts,
                     struct by_fraction *sum)
{
    *sum = (struct by_fraction){0, 1};
    for (uint32_t j = 0; j < task->column_count; j++) {
        struct by_fraction given = {0, 1};

        if ((units && by_fraction_set(units->given[j], units->scale, &given) != 0) ||
            by_lp_fraction(by_lp_primals(task->lp)[j], &amounts[j]) != 0 ||
            by_fraction_add(given, amounts[j], &amounts[j]) != 0 ||
            by_fraction_add(*sum, amounts[j], sum) != 0)
            return BY_ERANGE;
    }
    return 0;
}

/* Solves the program for what the units leave, and adds its solution to them. Returns BY_ERANGE if
 * the amounts need too many bits, or if their sum is not `value`. */
static int add_rest(const struct columns_task *task, const struct units *units, struct by_fraction value,
                    struct by_fraction *amounts)
{
    struct by_lp_options options = {.deadline = task->gap->deadline};
    struct by_problem problem = {0};
    struct by_fraction sum;

    set_limits(task, units->left, units->scale);
    if (by_lp_solve(task->lp, &options, &problem) != 0 || add_exact(task, units, amounts, &sum) != 0)
        return BY_ERANGE;
    return by_fraction_compare(sum, value) == 0 ? 0 : BY_ERANGE;
}

/*
 * Finds amounts of 63 bits with the same sum as those of a vertex of the program, which often need
 * hundreds: most of each amount is in whole units, and the rest is a vertex of a program in which
 * few links are full. Returns BY_ERANGE if there are none.
 */
static int find_small(struct columns_task *task, struct by_fraction **amounts)
{
    bool *full = by_alloc(task->rows, sizeof(*full));
    struct by_fraction value;
    double *now = NULL;
    int error = BY_ERANGE;
    bool right;
    mpq_t sum;

    mpq_init(sum);
    by_lp_value(task->lp, sum);
    right = by_lp_fraction(sum, &value) == 0;
    mpq_clear(sum);
    for (uint32_t i = 0; i < task->rows; i++)
        full[i] = mpq_sgn(by_lp_duals(task->lp)[i]) > 0;
    right = right && leave_room(task, full, by_fraction_value(value));
    free(full);
    if (right) {
        *amounts = by_realloc(*amounts, task->column_count, sizeof(**amounts));
        now = by_alloc(task->column_count, sizeof(*now));
        right = by_lp_estimate(task->lp, task->gap->deadline, &task->value, now, NULL);
    }
    for (size_t k = 0; k < sizeof(unit_factors) / sizeof(unit_factors[0]) && right && error; k++) {
        struct units units = {0};

        right = value.den <= UNITS_MAX / unit_factors[k] &&
                units_make(task, now, value.den * unit_factors[k], &units);
        if (right)
            error = add_rest(task, &units, value, *amounts);
        units_free(&units);
    }
    free(now);
    return error;
}

/* The amounts of the last estimate, rounded down to multiples of 2^-ROUNDED_BITS, or of more if the
 * limits are large. */
static int round_amounts(struct columns_task *task, struct by_fraction *amounts)
{
    double *now = by_alloc(task->column_count, sizeof(*now));
    int64_t scale = (int64_t)1 << ROUNDED_BITS;
    struct units units = {0};
    int error = 0;

    for (uint32_t i = 0; i < task->rows; i++)
        while (scale > 1 && task->limits[i] > UNITS_MAX / scale)
            scale /= 2;
    if (!by_lp_estimate(task->lp, 0, &task->value, now, NULL) || !units_make(task, now, scale, &units))
        error = BY_ERANGE;
    for (uint32_t j = 0; j < task->column_count && !error; j++)
        error = by_fraction_set(units.given[j], scale, &amounts[j]);
    units_free(&units);
    free(now);
    return error;
}

/* Finds the amounts of the columns: those of the exact solution, others with the same sum, or
 * rounded ones. Without an exact solution (`solved`) they are rounded. */
static int find_amounts(struct columns_task *task, bool solved, struct by_fraction **amounts)
{
    struct by_fraction sum;

    *amounts = by_alloc(task->column_count, sizeof(**amounts));
    if (solved && (add_exact(task, NULL, *amounts, &sum) == 0 || find_small(task, amounts) == 0))
        return 0;
    set_limits(task, task->limits, 1);
    *amounts = by_realloc(*amounts, task->column_count, sizeof(**amounts));
    return round_amounts(task, *amounts);
}

/* Appends the trees with their weights. */
static int append(const struct columns_task *task, const struct by_fraction *amounts,
                  struct by_tree_list *list, struct by_fraction *rate)
{
    const struct by_plan_gap *gap = task->gap;

    *rate = (struct by_fraction){0, 1};
    for (uint32_t i = 0; i < task->column_count; i++) {
        const struct column *column = &task->columns[i];
        struct by_fraction weight;

        if (amounts[i].num == 0)
            continue;
        if (by_fraction_add(*rate, amounts[i], rate) != 0 ||
            by_fraction_multiply(amounts[i], gap->both->unit, &weight) != 0) {
            by_tree_list_free(list);
            *rate = (struct by_fraction){0, 1};
            return BY_ERANGE;
        }
        if (column->given != UINT32_MAX) {
            by_tree_list_copy(list, gap->trees, column->given, weight);
            if (gap->trees->trees[column->given].use != BY_TREE_BOTH)
                by_tree_list_copy(list, gap->trees, column->given + 1, weight);
            continue;
        }
        if (task->steiner) {
            by_tree_list_add(list, gap->both, column->root, BY_TREE_BOTH, weight, column->up,
                             column->up_count);
            continue;
        }
        by_tree_list_add(list, gap->up, column->root, BY_TREE_UP, weight, column->up, column->up_count);
        by_tree_list_add(list, gap->down, column->root, BY_TREE_DOWN, weight, column->down,
                         column->down_count);
    }
    return 0;
}

/* Packs pairs, or trees in both directions. */
static int pack(const struct by_plan_gap *gap, bool pairs, struct by_tree_list *list,
                struct by_packed *packed, struct by_problem *problem)
{
    struct columns_task task = {.gap = gap};
    struct by_fraction *amounts = NULL;
    bool solved;
    __int128 floor;
    int error = 0;

    *packed = (struct by_packed){.rate = {0, 1}, .bound = {0, 1}};
    if (task_make(&task, pairs)) {
        add_given(&task);
        task.column_max += task.column_count;
        by_packing_price(task.limits, task.limits, task.rows, task.prices);
        find(&task, false, &floor);
        add(&task);
        solved = generate(&task, by_fraction_value(gap->bound)) && finish(&task, packed, problem) == 0;
        error = find_amounts(&task, solved, &amounts);
        if (!error)
            error = append(&task, amounts, list, &packed->rate);
        free(amounts);
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
