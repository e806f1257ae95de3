/*
 * The primal simplex method in rationals, from a given basis. See lp.h. Each iteration factors the
 * basis from scratch: Clp's proposals need no pivot or a few. Phase one reduces the sum of the
 * infeasibilities of the basic variables; feasible variables stay feasible. Steps follow the
 * steepest price until a step is degenerate. From there until the next step that makes progress,
 * variables are chosen in order (Bland 1977), which guarantees termination.
 */
#include "control/planner/lp/factor.h"
#include "control/planner/lp/model.h"

#include <time.h>

#include "control/base/alloc.h"
#include "control/base/clock.h"
#include "offload/base/errors.h"

static const struct by_place nowhere = {0, 0};

/* Variables by number: first the columns, then the rows' logical variables. */
struct simplex_work {
    struct by_lp *lp;
    uint32_t rows;
    uint32_t *basic; /* variables of the basis */
    struct by_factor *factor;
    mpq_t *amount; /* by place in `basic` */
    mpq_t *price;  /* by row, for the current phase */
    mpq_t *alpha;  /* by place: decrease of the basic variables as the entering one grows */
    mpq_t scratch, product;
    bool second; /* phase */
    bool careful;
};

static bool is_logical(const struct simplex_work *work, uint32_t variable)
{
    return variable >= work->lp->column_count;
}

static uint32_t row_of(const struct simplex_work *work, uint32_t variable)
{
    return variable - work->lp->column_count;
}

static enum by_lp_sense sense_of(const struct simplex_work *work, uint32_t variable)
{
    return is_logical(work, variable) ? work->lp->rows[row_of(work, variable)].sense : BY_LP_AT_MOST;
}

/* -1, 0, 1: the variable must grow, is feasible, must fall. Logical variables of `at least` rows
 * are <= 0. */
static int excess(const struct simplex_work *work, uint32_t place)
{
    int sign = mpq_sgn(work->amount[place]);
    enum by_lp_sense sense = sense_of(work, work->basic[place]);

    return sense == BY_LP_EQUAL ? sign : sense == BY_LP_AT_MOST ? (sign < 0 ? -1 : 0) : (sign > 0 ? 1 : 0);
}

static bool *basic_flag(struct by_lp *lp, uint32_t variable)
{
    return variable < lp->column_count ? &lp->columns[variable].basic
                                       : &lp->rows[variable - lp->column_count].basic;
}

static mpq_t *numbers_new(uint32_t count)
{
    mpq_t *numbers = by_alloc(count, sizeof(*numbers));

    for (uint32_t i = 0; i < count; i++)
        mpq_init(numbers[i]);
    return numbers;
}

static void numbers_free(mpq_t *numbers, uint32_t count)
{
    for (uint32_t i = 0; i < count && numbers; i++)
        mpq_clear(numbers[i]);
    free(numbers);
}

static void enter_column(const struct simplex_work *work, struct by_factor *factor, uint32_t variable,
                         uint32_t place)
{
    const struct by_lp *lp = work->lp;
    mpq_t one;

    if (!is_logical(work, variable)) {
        for (uint32_t k = 0; k < lp->columns[variable].count; k++)
            if (mpq_sgn(lp->columns[variable].entries[k].value) != 0)
                by_factor_set(factor, lp->columns[variable].entries[k].row, place,
                              lp->columns[variable].entries[k].value);
        return;
    }
    mpq_init(one);
    mpq_set_ui(one, 1, 1);
    by_factor_set(factor, row_of(work, variable), place, one);
    mpq_clear(one);
}

/* Factors the basis. An invalid basis (dependent columns, too many, too few) loses the columns that
 * depend on the rest, and rows that are left over get their logical variables. */
static void factor_basis(struct simplex_work *work)
{
    struct by_lp *lp = work->lp;
    uint32_t all = lp->column_count + work->rows;
    uint32_t *chosen = by_alloc(all, sizeof(*chosen)), *row_for = by_alloc(all, sizeof(*row_for)),
             *column_for = by_alloc(work->rows, sizeof(*column_for));

    for (bool whole = false; !whole;) {
        uint32_t count = 0, rank;

        for (uint32_t v = 0; v < all; v++)
            if (*basic_flag(lp, v))
                chosen[count++] = v;
        by_factor_free(work->factor);
        work->factor = by_factor_new(work->rows, count);
        for (uint32_t k = 0; k < count; k++)
            enter_column(work, work->factor, chosen[k], k);
        rank = by_factor_run(work->factor, row_for, column_for);
        whole = rank == work->rows && count == work->rows;
        for (uint32_t k = 0; k < count && !whole; k++)
            if (row_for[k] == BY_FACTOR_NONE) {
                *basic_flag(lp, chosen[k]) = false;
                lp->work.repairs++;
            }
        for (uint32_t i = 0; i < work->rows && !whole; i++)
            if (column_for[i] == BY_FACTOR_NONE)
                lp->rows[i].basic = true;
    }
    memcpy(work->basic, chosen, work->rows * sizeof(*work->basic));
    free(chosen);
    free(row_for);
    free(column_for);
}

static void find_amounts(struct simplex_work *work)
{
    for (uint32_t i = 0; i < work->rows; i++)
        mpq_set(work->amount[i], work->lp->rows[i].limit);
    by_factor_solve(work->factor, work->amount);
    work->second = true;
    for (uint32_t i = 0; i < work->rows && work->second; i++)
        work->second = excess(work, i) == 0;
}

/* Computes the prices: of the value, or in phase one of the negated sum of infeasibilities. */
static void find_prices(struct simplex_work *work)
{
    for (uint32_t i = 0; i < work->rows; i++) {
        uint32_t variable = work->basic[i];

        if (!work->second)
            mpq_set_si(work->price[i], -excess(work, i), 1);
        else if (is_logical(work, variable))
            mpq_set_ui(work->price[i], 0, 1);
        else
            mpq_set(work->price[i], work->lp->columns[variable].cost);
    }
    by_factor_solve_left(work->factor, work->price);
}

/* Computes the gain of the value from one more unit of a variable outside the basis. */
static void gain_of(struct simplex_work *work, uint32_t variable, mpq_t gain)
{
    const struct by_lp_column *column;

    if (is_logical(work, variable)) {
        mpq_neg(gain, work->price[row_of(work, variable)]);
        return;
    }
    column = &work->lp->columns[variable];
    if (work->second)
        mpq_set(gain, column->cost);
    else
        mpq_set_ui(gain, 0, 1);
    for (uint32_t k = 0; k < column->count; k++) {
        mpq_mul(work->product, work->price[column->entries[k].row], column->entries[k].value);
        mpq_sub(gain, gain, work->product);
    }
}

/* Chooses the entering variable and its direction: 1 growing, -1 falling. False when
 * none improves. */
static bool choose_entering(struct simplex_work *work, uint32_t *entering, int *direction)
{
    uint32_t all = work->lp->column_count + work->rows;
    bool found = false;
    mpq_t gain, best;

    mpq_inits(gain, best, NULL);
    for (uint32_t v = 0; v < all && !(found && work->careful); v++) {
        enum by_lp_sense sense = sense_of(work, v);
        int way = sense == BY_LP_AT_LEAST ? -1 : 1;

        if (*basic_flag(work->lp, v) || sense == BY_LP_EQUAL)
            continue;
        gain_of(work, v, gain);
        if (way < 0)
            mpq_neg(gain, gain);
        if (mpq_sgn(gain) <= 0 || (found && mpq_cmp(gain, best) <= 0))
            continue;
        mpq_set(best, gain);
        *entering = v;
        *direction = way;
        found = true;
    }
    mpq_clears(gain, best, NULL);
    return found;
}

/* Returns the place that blocks the step first, and the step's length; BY_FACTOR_NONE when none
 * does. */
static uint32_t choose_leaving(struct simplex_work *work, uint32_t entering, int direction, mpq_t length)
{
    uint32_t leaving = BY_FACTOR_NONE;

    for (uint32_t i = 0; i < work->rows; i++)
        mpq_set_ui(work->alpha[i], 0, 1);
    if (is_logical(work, entering)) {
        mpq_set_ui(work->alpha[row_of(work, entering)], 1, 1);
    } else {
        const struct by_lp_column *column = &work->lp->columns[entering];

        for (uint32_t k = 0; k < column->count; k++)
            mpq_set(work->alpha[column->entries[k].row], column->entries[k].value);
    }
    by_factor_solve(work->factor, work->alpha);
    for (uint32_t i = 0; i < work->rows; i++) {
        int falls = mpq_sgn(work->alpha[i]) * direction, lacks = excess(work, i), order;
        enum by_lp_sense sense = sense_of(work, work->basic[i]);

        /* A feasible variable blocks when it reaches 0, an infeasible one when it
         * becomes feasible. */
        if (falls == 0 || (lacks != 0 && falls != lacks) ||
            (lacks == 0 && sense != BY_LP_EQUAL && falls != (sense == BY_LP_AT_LEAST ? -1 : 1)))
            continue;
        mpq_div(work->scratch, work->amount[i], work->alpha[i]);
        mpq_abs(work->scratch, work->scratch);
        order = leaving == BY_FACTOR_NONE ? -1 : mpq_cmp(work->scratch, length);
        if (order < 0 || (order == 0 && work->basic[i] < work->basic[leaving])) {
            mpq_set(length, work->scratch);
            leaving = i;
        }
    }
    return leaving;
}

/* Stores the optimum. */
static void finish(struct simplex_work *work)
{
    struct by_lp *lp = work->lp;

    lp->state = BY_LP_OPTIMAL;
    lp->primal_count = lp->column_count;
    lp->primal = numbers_new(lp->column_count);
    lp->dual_count = work->rows;
    lp->dual = numbers_new(work->rows);
    mpq_set_ui(lp->value, 0, 1);
    for (uint32_t i = 0; i < work->rows; i++) {
        mpq_set(lp->dual[i], work->price[i]);
        if (is_logical(work, work->basic[i]))
            continue;
        mpq_set(lp->primal[work->basic[i]], work->amount[i]);
        mpq_mul(work->product, work->amount[i], lp->columns[work->basic[i]].cost);
        mpq_add(lp->value, lp->value, work->product);
    }
    lp->work.factor_size = by_factor_entries(work->factor);
}

static int refuse_infeasible(struct simplex_work *work, struct by_problem *problem)
{
    uint32_t row = 0;

    work->lp->state = BY_LP_INFEASIBLE;
    for (uint32_t i = 0; i < work->rows; i++) /* rows with prices prove it */
        if (mpq_sgn(work->price[i]) != 0)
            row = i;
    return by_problem_set(problem, BY_EINVAL, nowhere,
                          "a linear program of %u rows and %u columns has no solution: its rows contradict "
                          "each other (row %u among them)",
                          work->rows, work->lp->column_count, row);
}

/* One iteration: returns 0 to continue, 1 at the optimum, or a negative error. */
static int iterate(struct simplex_work *work, struct by_problem *problem)
{
    uint32_t entering = 0, leaving;
    int direction = 1;

    factor_basis(work);
    find_amounts(work);
    find_prices(work);
    if (!choose_entering(work, &entering, &direction)) {
        if (!work->second)
            return refuse_infeasible(work, problem);
        finish(work);
        return 1;
    }
    mpq_set_ui(work->scratch, 0, 1);
    {
        mpq_t length;

        mpq_init(length);
        leaving = choose_leaving(work, entering, direction, length);
        work->careful = leaving != BY_FACTOR_NONE && mpq_sgn(length) == 0;
        mpq_clear(length);
    }
    if (leaving == BY_FACTOR_NONE) {
        work->lp->state = BY_LP_UNBOUNDED;
        return by_problem_set(problem, BY_EINVAL, nowhere,
                              "a linear program of %u rows and %u columns is unbounded: variable %u may grow "
                              "without limit",
                              work->rows, work->lp->column_count, entering);
    }
    *basic_flag(work->lp, work->basic[leaving]) = false;
    *basic_flag(work->lp, entering) = true;
    work->lp->work.pivots++;
    return 0;
}

int by_lp_finish(struct by_lp *lp, double deadline, struct by_problem *problem)
{
    struct simplex_work work = {.lp = lp, .rows = lp->row_count};
    int done = 0;

    work.basic = by_alloc(lp->row_count, sizeof(*work.basic));
    work.amount = numbers_new(lp->row_count);
    work.price = numbers_new(lp->row_count);
    work.alpha = numbers_new(lp->row_count);
    mpq_inits(work.scratch, work.product, NULL);
    while (done == 0) {
        done = iterate(&work, problem);
        if (done == 0 && by_plan_late(deadline))
            done = by_problem_set(problem, BY_ETIMEDOUT, nowhere,
                                  "the time limit passed before a linear program of %u rows and %u columns "
                                  "was solved; allow more time",
                                  lp->row_count, lp->column_count);
    }
    by_factor_free(work.factor);
    free(work.basic);
    numbers_free(work.amount, lp->row_count);
    numbers_free(work.price, lp->row_count);
    numbers_free(work.alpha, lp->row_count);
    mpq_clears(work.scratch, work.product, NULL);
    return done == 1 ? 0 : done;
}
