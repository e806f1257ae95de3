/* Proposes the optimal basis with Clp (COIN-OR) in floating point. Only the set of basic variables
 * is used from its result; lp.h describes how it is checked. See model.h. */
#include <coin/Clp_C_Interface.h>

#include <float.h>
#include <time.h>

#include "control/base/alloc.h"
#include "control/planner/lp/model.h"

/* Clp's status of a variable. */
#define CLP_BASIC    1
#define CLP_AT_LOWER 3
/* No limit. */
#define CLP_INFINITE DBL_MAX

/* The model in Clp's form: columns one after the other. */
struct image {
    CoinBigIndex *start;
    int *row;
    double *value, *cost, *lower, *upper;
};

static void image_make(const struct by_lp *lp, struct image *image)
{
    size_t entries = 0, at = 0;

    for (uint32_t j = 0; j < lp->column_count; j++)
        entries += lp->columns[j].count;
    image->start = by_alloc((size_t)lp->column_count + 1, sizeof(*image->start));
    image->row = by_alloc(entries, sizeof(*image->row));
    image->value = by_alloc(entries, sizeof(*image->value));
    image->cost = by_alloc(lp->column_count, sizeof(*image->cost));
    image->lower = by_alloc(lp->row_count, sizeof(*image->lower));
    image->upper = by_alloc(lp->row_count, sizeof(*image->upper));
    for (uint32_t j = 0; j < lp->column_count; j++) {
        const struct by_lp_column *column = &lp->columns[j];

        image->cost[j] = mpq_get_d(column->cost);
        for (uint32_t k = 0; k < column->count; k++) {
            image->row[at] = (int)column->entries[k].row;
            image->value[at++] = mpq_get_d(column->entries[k].value);
        }
        image->start[j + 1] = (CoinBigIndex)at;
    }
    for (uint32_t i = 0; i < lp->row_count; i++) {
        double limit = mpq_get_d(lp->rows[i].limit);

        image->lower[i] = lp->rows[i].sense == BY_LP_AT_MOST ? -CLP_INFINITE : limit;
        image->upper[i] = lp->rows[i].sense == BY_LP_AT_LEAST ? CLP_INFINITE : limit;
    }
}

static void image_free(struct image *image)
{
    free(image->start);
    free(image->row);
    free(image->value);
    free(image->cost);
    free(image->lower);
    free(image->upper);
}

static double now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* Passes Clp the basis to start from. */
static void give_basis(const struct by_lp *lp, Clp_Simplex *clp)
{
    for (uint32_t j = 0; j < lp->column_count; j++)
        Clp_setColumnStatus(clp, (int)j, lp->columns[j].basic ? CLP_BASIC : CLP_AT_LOWER);
    for (uint32_t i = 0; i < lp->row_count; i++)
        Clp_setRowStatus(clp, (int)i, lp->rows[i].basic ? CLP_BASIC : CLP_AT_LOWER);
}

bool by_lp_propose(struct by_lp *lp, double deadline)
{
    Clp_Simplex *clp;
    struct image image;
    bool useful;

    if (lp->row_count == 0 || lp->column_count == 0)
        return false;
    image_make(lp, &image);
    clp = Clp_newModel();
    Clp_setLogLevel(clp, 0);
    Clp_loadProblem(clp, (int)lp->column_count, (int)lp->row_count, image.start, image.row, image.value, NULL,
                    NULL, image.cost, image.lower, image.upper);
    Clp_setOptimizationDirection(clp, -1);
    if (deadline > 0)
        Clp_setMaximumSeconds(clp, deadline > now() ? deadline - now() : 0.001);
    give_basis(lp, clp);
    Clp_dual(clp, 0);
    useful = Clp_status(clp) == 0;
    for (uint32_t j = 0; j < lp->column_count && useful; j++)
        lp->columns[j].basic = Clp_getColumnStatus(clp, (int)j) == CLP_BASIC;
    for (uint32_t i = 0; i < lp->row_count && useful; i++)
        lp->rows[i].basic = Clp_getRowStatus(clp, (int)i) == CLP_BASIC;
    Clp_deleteModel(clp);
    image_free(&image);
    return useful;
}
