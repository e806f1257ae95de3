/* Weights of columns in 63 bits. See columns_task.h. */
#include <gmp.h>

#include "control/base/alloc.h"
#include "control/base/fraction.h"
#include "control/study/bound/columns_task.h"
#include "offload/base/errors.h"

/* The part of a link that is left free for small denominators, if it can be: 1 / FREE_PART. */
#define FREE_PART 32
/* Weights are first multiples of the value's own denominator times these, one after the other. */
static const int64_t unit_factors[] = {1, 6, 60};
/* The largest limit in such units. */
#define UNITS_MAX ((int64_t)1 << 52)

void by_columns_limit(const struct by_columns *task, const int64_t *limits, int64_t scale)
{
    for (uint32_t i = 0; i < task->rows; i++)
        by_lp_limit(task->lp, i, limits[i], scale);
}

/*
 * Finds columns that reach the value `bound` although each link without a price keeps a part free.
 * Then only the links with prices must be full, and few columns suffice for the rest of rounded
 * amounts. False if there are none.
 */
static bool leave_room(struct by_columns *task, bool *full, double bound)
{
    bool changed = true;

    for (uint32_t i = 0; i < task->rows; i++)
        if (!full[i] && task->limits[i] <= UNITS_MAX)
            by_lp_limit(task->lp, i, task->limits[i] * (FREE_PART - 1), FREE_PART);
    while (changed) {
        if (!by_columns_generate(task, bound))
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
static bool units_make(const struct by_columns *task, const double *amounts, int64_t scale,
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
        const struct by_column *column = &task->columns[j];
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
static int add_exact(const struct by_columns *task, const struct units *units, struct by_amounts *amounts)
{
    amounts->sum = (struct by_fraction){0, 1};
    for (uint32_t j = 0; j < task->column_count; j++) {
        struct by_fraction given = {0, 1};

        if ((units && by_fraction_set(units->given[j], units->scale, &given) != 0) ||
            by_lp_fraction(by_lp_primals(task->lp)[j], &amounts->of[j]) != 0 ||
            by_fraction_add(given, amounts->of[j], &amounts->of[j]) != 0 ||
            by_fraction_add(amounts->sum, amounts->of[j], &amounts->sum) != 0)
            return BY_ERANGE;
    }
    return 0;
}

/* Solves the program for what the units leave, and adds its solution to them. Returns BY_ERANGE if
 * the amounts need too many bits, or if their sum is not `value`. */
static int add_rest(const struct by_columns *task, const struct units *units, struct by_fraction value,
                    struct by_amounts *amounts)
{
    struct by_lp_options options = {.deadline = task->gap->deadline};
    struct by_problem problem = {0};

    by_columns_limit(task, units->left, units->scale);
    if (by_lp_solve(task->lp, &options, &problem) != 0 || add_exact(task, units, amounts) != 0)
        return BY_ERANGE;
    return by_fraction_compare(amounts->sum, value) == 0 ? 0 : BY_ERANGE;
}

/*
 * Finds amounts of 63 bits with the same sum as those of a vertex of the program, which often need
 * hundreds: most of each amount is in whole units, and the rest is a vertex of a program in which
 * few links are full. Returns BY_ERANGE if there are none.
 */
static int find_small(struct by_columns *task, struct by_amounts *amounts)
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
        amounts->of = by_realloc(amounts->of, task->column_count, sizeof(*amounts->of));
        now = by_alloc(task->column_count, sizeof(*now));
        right = by_lp_estimate(task->lp, task->gap->deadline, &task->value, now, NULL);
    }
    for (size_t k = 0; k < sizeof(unit_factors) / sizeof(unit_factors[0]) && right && error; k++) {
        struct units units = {0};

        right = value.den <= UNITS_MAX / unit_factors[k] &&
                units_make(task, now, value.den * unit_factors[k], &units);
        if (right)
            error = add_rest(task, &units, value, amounts);
        units_free(&units);
    }
    free(now);
    return error;
}

/* The amounts of the last estimate, rounded down to multiples of 2^-bits, or of more if the limits
 * are large. */
static int round_amounts(struct by_columns *task, unsigned bits, struct by_amounts *amounts)
{
    double *now = by_alloc(task->column_count, sizeof(*now));
    int64_t scale = (int64_t)1 << bits;
    struct units units = {0};
    int error = 0;

    for (uint32_t i = 0; i < task->rows; i++)
        while (scale > 1 && task->limits[i] > UNITS_MAX / scale)
            scale /= 2;
    if (!by_lp_estimate(task->lp, 0, &task->value, now, NULL) || !units_make(task, now, scale, &units))
        error = BY_ERANGE;
    amounts->sum = (struct by_fraction){0, 1};
    for (uint32_t j = 0; j < task->column_count && !error; j++) {
        error = by_fraction_set(units.given[j], scale, &amounts->of[j]);
        if (!error)
            error = by_fraction_add(amounts->sum, amounts->of[j], &amounts->sum);
    }
    units_free(&units);
    free(now);
    return error;
}

int by_columns_weigh(struct by_columns *task, bool solved, unsigned round_bits, struct by_amounts *amounts)
{
    int error = 0;

    amounts->of = by_alloc(task->column_count, sizeof(*amounts->of));
    if (!solved || (add_exact(task, NULL, amounts) != 0 && find_small(task, amounts) != 0)) {
        by_columns_limit(task, task->limits, 1);
        amounts->of = by_realloc(amounts->of, task->column_count, sizeof(*amounts->of));
        error = round_amounts(task, round_bits, amounts);
        amounts->rounded = true;
    }
    amounts->count = task->column_count;
    if (error) {
        free(amounts->of);
        *amounts = (struct by_amounts){0};
    }
    return error;
}
