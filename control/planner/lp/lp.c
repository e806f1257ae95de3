/* Linear programs: the model and its solution. See lp.h. */
#include "control/planner/lp/lp.h"

#include "control/base/alloc.h"
#include "control/base/fraction.h"
#include "control/planner/lp/model.h"
#include "offload/base/assert.h"
#include "offload/base/errors.h"

struct by_lp *by_lp_new(void)
{
    struct by_lp *lp = by_alloc(1, sizeof(*lp));

    mpq_init(lp->value);
    return lp;
}

static void free_numbers(mpq_t **numbers, uint32_t *count)
{
    for (uint32_t i = 0; i < *count; i++)
        mpq_clear((*numbers)[i]);
    free(*numbers);
    *numbers = NULL;
    *count = 0;
}

/* Discards the solution of a changed program. */
static void forget(struct by_lp *lp)
{
    lp->state = BY_LP_UNSOLVED;
    free_numbers(&lp->primal, &lp->primal_count);
    free_numbers(&lp->dual, &lp->dual_count);
}

void by_lp_free(struct by_lp *lp)
{
    if (!lp)
        return;
    forget(lp);
    for (uint32_t j = 0; j < lp->column_count; j++) {
        for (uint32_t k = 0; k < lp->columns[j].count; k++)
            mpq_clear(lp->columns[j].entries[k].value);
        free(lp->columns[j].entries);
        mpq_clear(lp->columns[j].cost);
    }
    for (uint32_t i = 0; i < lp->row_count; i++)
        mpq_clear(lp->rows[i].limit);
    mpq_clear(lp->value);
    by_lp_drop_image(lp);
    free(lp->columns);
    free(lp->rows);
    free(lp);
}

uint32_t by_lp_column_q(struct by_lp *lp, const mpq_t cost)
{
    struct by_lp_column *column;

    forget(lp);
    BY_GROW(lp->columns, lp->column_count, lp->column_room);
    column = &lp->columns[lp->column_count];
    *column = (struct by_lp_column){.count = 0};
    mpq_init(column->cost);
    mpq_set(column->cost, cost);
    return lp->column_count++;
}

uint32_t by_lp_row_q(struct by_lp *lp, enum by_lp_sense sense, const mpq_t limit)
{
    struct by_lp_row *row;

    forget(lp);
    by_lp_drop_image(lp);
    BY_GROW(lp->rows, lp->row_count, lp->row_room);
    row = &lp->rows[lp->row_count];
    *row = (struct by_lp_row){.sense = sense, .basic = true};
    mpq_init(row->limit);
    mpq_set(row->limit, limit);
    return lp->row_count++;
}

void by_lp_add_q(struct by_lp *lp, uint32_t row, uint32_t column, const mpq_t value)
{
    struct by_lp_column *at = &lp->columns[column];

    BY_ASSERT(row < lp->row_count && column < lp->column_count);
    forget(lp);
    if (column < lp->image_columns)
        by_lp_drop_image(lp);
    for (uint32_t k = 0; k < at->count && row < at->top; k++)
        if (at->entries[k].row == row) {
            mpq_add(at->entries[k].value, at->entries[k].value, value);
            return;
        }
    BY_GROW(at->entries, at->count, at->room);
    at->top = row < at->top ? at->top : row + 1;
    at->entries[at->count].row = row;
    mpq_init(at->entries[at->count].value);
    mpq_set(at->entries[at->count++].value, value);
}

static void set_ratio(mpq_t value, int64_t num, int64_t den)
{
    BY_ASSERT(den > 0);
    mpq_set_si(value, num, (unsigned long)den);
    mpq_canonicalize(value);
}

uint32_t by_lp_column(struct by_lp *lp, int64_t num, int64_t den)
{
    uint32_t column;
    mpq_t cost;

    mpq_init(cost);
    set_ratio(cost, num, den);
    column = by_lp_column_q(lp, cost);
    mpq_clear(cost);
    return column;
}

void by_lp_cost(struct by_lp *lp, uint32_t column, int64_t num, int64_t den)
{
    BY_ASSERT(column < lp->column_count);
    forget(lp);
    set_ratio(lp->columns[column].cost, num, den);
}

void by_lp_limit(struct by_lp *lp, uint32_t row, int64_t num, int64_t den)
{
    BY_ASSERT(row < lp->row_count);
    forget(lp);
    set_ratio(lp->rows[row].limit, num, den);
}

uint32_t by_lp_row(struct by_lp *lp, enum by_lp_sense sense, int64_t num, int64_t den)
{
    uint32_t row;
    mpq_t limit;

    mpq_init(limit);
    set_ratio(limit, num, den);
    row = by_lp_row_q(lp, sense, limit);
    mpq_clear(limit);
    return row;
}

void by_lp_add(struct by_lp *lp, uint32_t row, uint32_t column, int64_t num, int64_t den)
{
    mpq_t value;

    mpq_init(value);
    set_ratio(value, num, den);
    by_lp_add_q(lp, row, column, value);
    mpq_clear(value);
}

uint32_t by_lp_column_count(const struct by_lp *lp)
{
    return lp->column_count;
}

uint32_t by_lp_row_count(const struct by_lp *lp)
{
    return lp->row_count;
}

/* Copies the basis, to restore it when a proposal fails. */
static bool *keep_basis(const struct by_lp *lp)
{
    bool *kept = by_alloc((size_t)lp->row_count + lp->column_count, sizeof(*kept));

    for (uint32_t i = 0; i < lp->row_count; i++)
        kept[i] = lp->rows[i].basic;
    for (uint32_t j = 0; j < lp->column_count; j++)
        kept[lp->row_count + j] = lp->columns[j].basic;
    return kept;
}

static void put_basis(struct by_lp *lp, const bool *kept)
{
    for (uint32_t i = 0; i < lp->row_count; i++)
        lp->rows[i].basic = kept[i];
    for (uint32_t j = 0; j < lp->column_count; j++)
        lp->columns[j].basic = kept[lp->row_count + j];
}

int by_lp_solve(struct by_lp *lp, const struct by_lp_options *options, struct by_problem *problem)
{
    static const struct by_lp_options none = {0};
    bool *kept = keep_basis(lp);
    int error;

    options = options ? options : &none;
    forget(lp);
    lp->work = (struct by_lp_work){0};
    if (!options->exact_only && !by_lp_propose(lp, options))
        put_basis(lp, kept);
    free(kept);
    error = by_lp_finish(lp, options->deadline, problem);
    if (!error && !by_lp_verify(lp)) {
        forget(lp);
        return by_problem_set(
            problem, BY_ESTATE, (struct by_place){0, 0},
            "the solution of a linear program (%u rows, %u columns) failed its verification "
            "in rationals; this is a bug, please report it with the topology",
            lp->row_count, lp->column_count);
    }
    return error;
}

enum by_lp_state by_lp_state(const struct by_lp *lp)
{
    return lp->state;
}

struct by_lp_work by_lp_work(const struct by_lp *lp)
{
    return lp->work;
}

void by_lp_value(const struct by_lp *lp, mpq_t value)
{
    BY_ASSERT(lp->state == BY_LP_OPTIMAL);
    mpq_set(value, lp->value);
}

void by_lp_primal(const struct by_lp *lp, uint32_t column, mpq_t value)
{
    BY_ASSERT(lp->state == BY_LP_OPTIMAL && column < lp->primal_count);
    mpq_set(value, lp->primal[column]);
}

void by_lp_dual(const struct by_lp *lp, uint32_t row, mpq_t value)
{
    BY_ASSERT(lp->state == BY_LP_OPTIMAL && row < lp->dual_count);
    mpq_set(value, lp->dual[row]);
}

const mpq_t *by_lp_primals(const struct by_lp *lp)
{
    BY_ASSERT(lp->state == BY_LP_OPTIMAL);
    return lp->primal;
}

const mpq_t *by_lp_duals(const struct by_lp *lp)
{
    BY_ASSERT(lp->state == BY_LP_OPTIMAL);
    return lp->dual;
}

int by_lp_fraction(const mpq_t value, struct by_fraction *fraction)
{
    if (mpq_sgn(value) < 0 || !mpz_fits_slong_p(mpq_numref(value)) || !mpz_fits_slong_p(mpq_denref(value)))
        return BY_ERANGE;
    *fraction = (struct by_fraction){mpz_get_si(mpq_numref(value)), mpz_get_si(mpq_denref(value))};
    return 0;
}

void by_lp_denominator(const mpq_t *values, uint32_t count, mpz_t denominator)
{
    mpz_set_ui(denominator, 1);
    for (uint32_t i = 0; i < count; i++)
        mpz_lcm(denominator, denominator, mpq_denref(values[i]));
}
