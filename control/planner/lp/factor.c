/*
 * Sparse elimination in rationals. See factor.h. Rows are lists of entries. A pivot freezes its row
 * and subtracts multiples of it from the other rows with an entry in its column. These steps are
 * the lower factor; the frozen rows are the upper one.
 */
#include "control/planner/lp/factor.h"

#include <string.h>

#include "control/base/alloc.h"

/* Columns that are examined for a pivot when no column has a single entry (count). */
#define SEARCH_MAX 8u

struct factor_entry {
    uint32_t column;
    mpq_t value;
};

struct factor_row {
    uint32_t count, room;
    struct factor_entry *entries;
    bool frozen;
};

/* Rows that have, or once had, an entry in a column. */
struct factor_column {
    uint32_t count, room; /* of `rows` */
    uint32_t *rows;
    uint32_t live; /* entries in rows that are not frozen */
    bool done;
};

/* `value` times row `from` was subtracted from row `to` */
struct factor_step {
    uint32_t from, to;
    mpq_t value;
};

struct by_factor {
    uint32_t size, columns;
    struct factor_row *rows;
    struct factor_column *column;
    uint32_t *single_columns, *single_rows; /* stacks of candidates, possibly outdated */
    uint32_t single_column_count, single_column_room, single_row_count, single_row_room;
    uint32_t pivot_count;
    uint32_t *pivot_row, *pivot_column; /* by pivot */
    uint32_t step_count, step_room;
    struct factor_step *steps;
    uint32_t *place; /* by column: scratch, position in the current row + 1 */
};

struct by_factor *by_factor_new(uint32_t size, uint32_t columns)
{
    struct by_factor *factor = by_alloc(1, sizeof(*factor));

    factor->size = size;
    factor->columns = columns;
    factor->rows = by_alloc(size, sizeof(*factor->rows));
    factor->column = by_alloc(columns, sizeof(*factor->column));
    factor->pivot_row = by_alloc(size, sizeof(*factor->pivot_row));
    factor->pivot_column = by_alloc(size, sizeof(*factor->pivot_column));
    factor->place = by_alloc(columns, sizeof(*factor->place));
    return factor;
}

void by_factor_free(struct by_factor *factor)
{
    if (!factor)
        return;
    for (uint32_t i = 0; i < factor->size; i++) {
        for (uint32_t k = 0; k < factor->rows[i].count; k++)
            mpq_clear(factor->rows[i].entries[k].value);
        free(factor->rows[i].entries);
    }
    for (uint32_t i = 0; i < factor->columns; i++)
        free(factor->column[i].rows);
    for (uint32_t i = 0; i < factor->step_count; i++)
        mpq_clear(factor->steps[i].value);
    free(factor->rows);
    free(factor->column);
    free(factor->single_columns);
    free(factor->single_rows);
    free(factor->pivot_row);
    free(factor->pivot_column);
    free(factor->steps);
    free(factor->place);
    free(factor);
}

/* Appends an entry to a row; the value is uninitialised. */
static mpq_t *append(struct by_factor *factor, uint32_t row, uint32_t at)
{
    struct factor_row *to = &factor->rows[row];
    struct factor_column *column = &factor->column[at];

    BY_GROW(to->entries, to->count, to->room);
    BY_GROW(column->rows, column->count, column->room);
    column->rows[column->count++] = row;
    column->live++;
    to->entries[to->count].column = at;
    mpq_init(to->entries[to->count].value);
    return &to->entries[to->count++].value;
}

void by_factor_set(struct by_factor *factor, uint32_t row, uint32_t column, const mpq_t value)
{
    mpq_set(*append(factor, row, column), value);
}

static void note_column(struct by_factor *factor, uint32_t column)
{
    if (factor->column[column].live != 1)
        return;
    BY_GROW(factor->single_columns, factor->single_column_count, factor->single_column_room);
    factor->single_columns[factor->single_column_count++] = column;
}

static void note_row(struct by_factor *factor, uint32_t row)
{
    if (factor->rows[row].count != 1)
        return;
    BY_GROW(factor->single_rows, factor->single_row_count, factor->single_row_room);
    factor->single_rows[factor->single_row_count++] = row;
}

/* Returns the unfrozen row with an entry in the column and the fewest entries. Drops outdated
 * references. Rows listed twice are harmless. */
static uint32_t shortest_row(struct by_factor *factor, uint32_t at)
{
    struct factor_column *column = &factor->column[at];
    uint32_t best = BY_FACTOR_NONE, kept = 0;

    for (uint32_t i = 0; i < column->count; i++) {
        const struct factor_row *row = &factor->rows[column->rows[i]];
        bool present = false;

        for (uint32_t k = 0; k < row->count && !row->frozen && !present; k++)
            present = row->entries[k].column == at;
        if (!present)
            continue;
        if (best == BY_FACTOR_NONE || row->count < factor->rows[best].count)
            best = column->rows[i];
        column->rows[kept++] = column->rows[i];
    }
    column->count = kept;
    return best;
}

/* Chooses a pivot with little fill-in: first columns and rows with one entry, then the columns with
 * the fewest entries. False when no entry is left. */
static bool choose_pivot(struct by_factor *factor, uint32_t *row, uint32_t *column)
{
    uint64_t best = UINT64_MAX;
    uint32_t least = UINT32_MAX, looked = 0;

    while (factor->single_column_count > 0) {
        *column = factor->single_columns[--factor->single_column_count];
        if (factor->column[*column].done || factor->column[*column].live != 1)
            continue;
        *row = shortest_row(factor, *column);
        return true;
    }
    while (factor->single_row_count > 0) {
        *row = factor->single_rows[--factor->single_row_count];
        if (factor->rows[*row].frozen || factor->rows[*row].count != 1)
            continue;
        *column = factor->rows[*row].entries[0].column;
        return true;
    }
    for (uint32_t i = 0; i < factor->columns; i++)
        if (!factor->column[i].done && factor->column[i].live > 0 && factor->column[i].live < least)
            least = factor->column[i].live;
    for (uint32_t i = 0; i < factor->columns && looked < SEARCH_MAX; i++) {
        const struct factor_column *at = &factor->column[i];
        uint32_t short_row;
        uint64_t fill;

        if (at->done || at->live != least)
            continue;
        looked++;
        short_row = shortest_row(factor, i);
        fill = (uint64_t)(factor->rows[short_row].count - 1) * (at->live - 1);
        if (fill < best) {
            best = fill;
            *row = short_row;
            *column = i;
        }
    }
    return best != UINT64_MAX;
}

/* Removes the entry at `k` from an unfrozen row. */
static void drop(struct by_factor *factor, struct factor_row *row, uint32_t k)
{
    uint32_t column = row->entries[k].column;

    mpq_clear(row->entries[k].value);
    row->entries[k] = row->entries[--row->count];
    factor->column[column].live--;
    if (!factor->column[column].done)
        note_column(factor, column);
}

/* Subtracts a multiple of the pivot's row from row `to`, which removes its entry in the pivot's
 * column. */
static void eliminate(struct by_factor *factor, uint32_t from, uint32_t to, uint32_t column)
{
    const struct factor_row *pivot = &factor->rows[from];
    struct factor_row *row = &factor->rows[to];
    struct factor_step *step;
    mpq_t product;

    BY_GROW(factor->steps, factor->step_count, factor->step_room);
    step = &factor->steps[factor->step_count++];
    step->from = from;
    step->to = to;
    mpq_inits(step->value, product, NULL);
    for (uint32_t k = 0; k < row->count; k++)
        factor->place[row->entries[k].column] = k + 1;
    for (uint32_t k = 0; k < pivot->count; k++)
        if (pivot->entries[k].column == column)
            mpq_div(step->value, row->entries[factor->place[column] - 1].value, pivot->entries[k].value);
    for (uint32_t k = 0; k < pivot->count; k++) {
        uint32_t at = pivot->entries[k].column;
        mpq_t *value;

        if (at == column)
            continue;
        mpq_mul(product, step->value, pivot->entries[k].value);
        if (factor->place[at]) {
            value = &row->entries[factor->place[at] - 1].value;
        } else {
            value = append(factor, to, at);
            factor->place[at] = row->count;
        }
        mpq_sub(*value, *value, product);
    }
    for (uint32_t k = 0; k < row->count; k++)
        factor->place[row->entries[k].column] = 0;
    for (uint32_t k = row->count; k-- > 0;)
        if (row->entries[k].column == column || mpq_sgn(row->entries[k].value) == 0)
            drop(factor, row, k);
    note_row(factor, to);
    mpq_clear(product);
}

/* Freezes a row and removes its pivot's column from the others. */
static void pivot(struct by_factor *factor, uint32_t row, uint32_t column)
{
    struct factor_column *at = &factor->column[column];

    at->done = true;
    factor->pivot_row[factor->pivot_count] = row;
    factor->pivot_column[factor->pivot_count++] = column;
    factor->rows[row].frozen = true;
    if (at->live > 1) {
        uint32_t count = at->count;

        for (uint32_t i = 0; i < count; i++) {
            struct factor_row *other = &factor->rows[at->rows[i]];
            bool present = false;

            for (uint32_t k = 0; k < other->count && !other->frozen && !present; k++)
                present = other->entries[k].column == column;
            if (present)
                eliminate(factor, row, at->rows[i], column);
        }
    }
    for (uint32_t k = 0; k < factor->rows[row].count; k++) {
        uint32_t other = factor->rows[row].entries[k].column;

        factor->column[other].live--;
        if (!factor->column[other].done)
            note_column(factor, other);
    }
}

uint32_t by_factor_run(struct by_factor *factor, uint32_t *row_of, uint32_t *column_of)
{
    uint32_t row = 0, column = 0;

    for (uint32_t i = 0; i < factor->columns; i++) {
        row_of[i] = BY_FACTOR_NONE;
        note_column(factor, i);
    }
    for (uint32_t i = 0; i < factor->size; i++) {
        column_of[i] = BY_FACTOR_NONE;
        note_row(factor, i);
    }
    while (factor->pivot_count < factor->size && choose_pivot(factor, &row, &column)) {
        row_of[column] = row;
        column_of[row] = column;
        pivot(factor, row, column);
    }
    return factor->pivot_count;
}

size_t by_factor_entries(const struct by_factor *factor)
{
    size_t count = factor->step_count;

    for (uint32_t i = 0; i < factor->size; i++)
        count += factor->rows[i].count;
    return count;
}

/* Returns the entry of the pivot in its row. */
static const mpq_t *pivot_value(const struct factor_row *row, uint32_t column)
{
    for (uint32_t k = 0; k < row->count; k++)
        if (row->entries[k].column == column)
            return &row->entries[k].value;
    abort();
}

void by_factor_solve(const struct by_factor *factor, mpq_t *vector)
{
    mpq_t *solution = by_alloc(factor->size, sizeof(*solution));
    mpq_t product;

    mpq_init(product);
    for (uint32_t i = 0; i < factor->size; i++)
        mpq_init(solution[i]);
    for (uint32_t i = 0; i < factor->step_count; i++) {
        const struct factor_step *step = &factor->steps[i];

        if (mpq_sgn(vector[step->from]) == 0)
            continue;
        mpq_mul(product, step->value, vector[step->from]);
        mpq_sub(vector[step->to], vector[step->to], product);
    }
    for (uint32_t p = factor->pivot_count; p-- > 0;) {
        const struct factor_row *row = &factor->rows[factor->pivot_row[p]];
        uint32_t column = factor->pivot_column[p];
        mpq_t *sum = &vector[factor->pivot_row[p]];

        for (uint32_t k = 0; k < row->count; k++) {
            const struct factor_entry *entry = &row->entries[k];

            if (entry->column == column || mpq_sgn(solution[entry->column]) == 0)
                continue;
            mpq_mul(product, entry->value, solution[entry->column]);
            mpq_sub(*sum, *sum, product);
        }
        if (mpq_sgn(*sum) != 0)
            mpq_div(solution[column], *sum, *pivot_value(row, column));
    }
    for (uint32_t i = 0; i < factor->size; i++) {
        mpq_swap(vector[i], solution[i]);
        mpq_clear(solution[i]);
    }
    mpq_clear(product);
    free(solution);
}

void by_factor_solve_left(const struct by_factor *factor, mpq_t *vector)
{
    mpq_t *solution = by_alloc(factor->size, sizeof(*solution));
    mpq_t product;

    mpq_init(product);
    for (uint32_t i = 0; i < factor->size; i++)
        mpq_init(solution[i]);
    for (uint32_t p = 0; p < factor->pivot_count; p++) {
        const struct factor_row *row = &factor->rows[factor->pivot_row[p]];
        uint32_t column = factor->pivot_column[p];
        mpq_t *price = &solution[factor->pivot_row[p]];

        if (mpq_sgn(vector[column]) == 0)
            continue;
        mpq_div(*price, vector[column], *pivot_value(row, column));
        for (uint32_t k = 0; k < row->count; k++) {
            const struct factor_entry *entry = &row->entries[k];

            if (entry->column == column)
                continue;
            mpq_mul(product, entry->value, *price);
            mpq_sub(vector[entry->column], vector[entry->column], product);
        }
    }
    for (uint32_t i = factor->step_count; i-- > 0;) {
        const struct factor_step *step = &factor->steps[i];

        if (mpq_sgn(solution[step->to]) == 0)
            continue;
        mpq_mul(product, step->value, solution[step->to]);
        mpq_sub(solution[step->from], solution[step->from], product);
    }
    for (uint32_t i = 0; i < factor->size; i++) {
        mpq_swap(vector[i], solution[i]);
        mpq_clear(solution[i]);
    }
    mpq_clear(product);
    free(solution);
}
