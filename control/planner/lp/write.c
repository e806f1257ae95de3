/* Writes linear programs in CPLEX format, for other solvers. See lp.h. */
#include "control/planner/lp/model.h"

#include "control/base/alloc.h"

/* Writes " + 3 x7"; nothing for 0. Returns whether anything was written. */
static bool write_term(FILE *file, const mpq_t value, const mpz_t scale, uint32_t column)
{
    mpq_t scaled;

    if (mpq_sgn(value) == 0)
        return false;
    mpq_init(scaled);
    mpq_set_z(scaled, scale);
    mpq_mul(scaled, scaled, value);
    gmp_fprintf(file, " %s %Zd x%u", mpq_sgn(scaled) < 0 ? "" : "+", mpq_numref(scaled), column);
    mpq_clear(scaled);
    return true;
}

/* The format requires a term everywhere. */
static void write_none(FILE *file, bool written)
{
    if (!written)
        fputs(" 0 x0", file);
}

/* Writes the entries of a row. */
static void write_row(const struct by_lp *lp, uint32_t row, FILE *file)
{
    static const char *const signs[] = {[BY_LP_AT_MOST] = "<=", [BY_LP_AT_LEAST] = ">=", [BY_LP_EQUAL] = "="};
    bool written = false;
    mpz_t scale;
    mpq_t limit;

    mpz_init_set(scale, mpq_denref(lp->rows[row].limit));
    for (uint32_t j = 0; j < lp->column_count; j++)
        for (uint32_t k = 0; k < lp->columns[j].count; k++)
            if (lp->columns[j].entries[k].row == row)
                mpz_lcm(scale, scale, mpq_denref(lp->columns[j].entries[k].value));
    fprintf(file, " r%u:", row);
    for (uint32_t j = 0; j < lp->column_count; j++)
        for (uint32_t k = 0; k < lp->columns[j].count; k++)
            if (lp->columns[j].entries[k].row == row)
                written |= write_term(file, lp->columns[j].entries[k].value, scale, j);
    write_none(file, written);
    mpq_init(limit);
    mpq_set_z(limit, scale);
    mpq_mul(limit, limit, lp->rows[row].limit);
    gmp_fprintf(file, " %s %Zd\n", signs[lp->rows[row].sense], mpq_numref(limit));
    mpq_clear(limit);
    mpz_clear(scale);
}

void by_lp_write(const struct by_lp *lp, void *stream)
{
    FILE *file = stream;
    bool written = false;
    mpz_t scale;

    mpz_init_set_ui(scale, 1);
    for (uint32_t j = 0; j < lp->column_count; j++)
        mpz_lcm(scale, scale, mpq_denref(lp->columns[j].cost));
    gmp_fprintf(file, "\\ value times %Zd\nMaximize\n value:", scale);
    for (uint32_t j = 0; j < lp->column_count; j++)
        written |= write_term(file, lp->columns[j].cost, scale, j);
    write_none(file, written);
    fputs("\nSubject To\n", file);
    for (uint32_t i = 0; i < lp->row_count; i++)
        write_row(lp, i, file);
    fputs("End\n", file);
    mpz_clear(scale);
}
