/*
 * The final check of a solution, from the model, the variables and the prices alone, independent of
 * how they were found. A solution that is primal feasible, dual feasible and of equal value is
 * optimal (weak duality). See model.h.
 */
#include "control/planner/lp/model.h"

#include "control/base/alloc.h"

/* Whether a row's left side satisfies its limit. */
static bool row_holds(const struct by_lp_row *row, const mpq_t left)
{
    int order = mpq_cmp(left, row->limit);

    return row->sense == BY_LP_AT_MOST ? order <= 0 : row->sense == BY_LP_AT_LEAST ? order >= 0 : order == 0;
}

static bool primal_holds(const struct by_lp *lp)
{
    mpq_t *left = by_alloc(lp->row_count, sizeof(*left)), product;
    bool holds = true;

    mpq_init(product);
    for (uint32_t i = 0; i < lp->row_count; i++)
        mpq_init(left[i]);
    for (uint32_t j = 0; j < lp->column_count; j++) {
        holds &= mpq_sgn(lp->primal[j]) >= 0;
        for (uint32_t k = 0; k < lp->columns[j].count && mpq_sgn(lp->primal[j]) != 0; k++) {
            const struct by_lp_entry *entry = &lp->columns[j].entries[k];

            mpq_mul(product, entry->value, lp->primal[j]);
            mpq_add(left[entry->row], left[entry->row], product);
        }
    }
    for (uint32_t i = 0; i < lp->row_count; i++) {
        holds &= row_holds(&lp->rows[i], left[i]);
        mpq_clear(left[i]);
    }
    mpq_clear(product);
    free(left);
    return holds;
}

/* Whether y A >= c for each column, and y has the sign that each row's sense requires. */
static bool dual_holds(const struct by_lp *lp)
{
    bool holds = true;
    mpq_t sum, product;

    mpq_inits(sum, product, NULL);
    for (uint32_t i = 0; i < lp->row_count; i++) {
        int sign = mpq_sgn(lp->dual[i]);

        holds &= lp->rows[i].sense == BY_LP_AT_MOST    ? sign >= 0
                 : lp->rows[i].sense == BY_LP_AT_LEAST ? sign <= 0
                                                       : true;
    }
    for (uint32_t j = 0; j < lp->column_count; j++) {
        mpq_set_ui(sum, 0, 1);
        for (uint32_t k = 0; k < lp->columns[j].count; k++) {
            const struct by_lp_entry *entry = &lp->columns[j].entries[k];

            mpq_mul(product, entry->value, lp->dual[entry->row]);
            mpq_add(sum, sum, product);
        }
        holds &= mpq_cmp(sum, lp->columns[j].cost) >= 0;
    }
    mpq_clears(sum, product, NULL);
    return holds;
}

/* Whether c x = y b = the value. */
static bool values_agree(const struct by_lp *lp)
{
    mpq_t primal, dual, product;
    bool agree;

    mpq_inits(primal, dual, product, NULL);
    for (uint32_t j = 0; j < lp->column_count; j++) {
        mpq_mul(product, lp->columns[j].cost, lp->primal[j]);
        mpq_add(primal, primal, product);
    }
    for (uint32_t i = 0; i < lp->row_count; i++) {
        mpq_mul(product, lp->rows[i].limit, lp->dual[i]);
        mpq_add(dual, dual, product);
    }
    agree = mpq_equal(primal, dual) != 0 && mpq_equal(primal, lp->value) != 0;
    mpq_clears(primal, dual, product, NULL);
    return agree;
}

bool by_lp_verify(const struct by_lp *lp)
{
    return lp->state == BY_LP_OPTIMAL && lp->primal_count == lp->column_count &&
           lp->dual_count == lp->row_count && primal_holds(lp) && dual_holds(lp) && values_agree(lp);
}
