/* Proposes the optimal basis with Clp (COIN-OR) in floating point. Only the set of basic variables
 * is used from its result; lp.h describes how it is checked. See model.h. */
#include <coin/Clp_C_Interface.h>

#include <float.h>

#include "control/base/alloc.h"
#include "control/base/clock.h"
#include "control/planner/lp/model.h"

/* Clp's status of a variable. */
#define CLP_BASIC    1
#define CLP_AT_UPPER 2
#define CLP_AT_LOWER 3
/* Its setting that perturbs costs from the first step. */
#define CLP_PERTURB 50
/* No limit. */
#define CLP_INFINITE DBL_MAX

/* The model in Clp's form: columns one after the other. */
struct image {
    CoinBigIndex *start;
    int *row;
    double *value, *cost, *lower, *upper;
};

/* Copies the rows, and the columns from number `first` on. */
static void image_make(const struct by_lp *lp, uint32_t first, struct image *image)
{
    size_t entries = 0, at = 0;

    for (uint32_t j = first; j < lp->column_count; j++)
        entries += lp->columns[j].count;
    image->start = by_alloc((size_t)lp->column_count - first + 1, sizeof(*image->start));
    image->row = by_alloc(entries, sizeof(*image->row));
    image->value = by_alloc(entries, sizeof(*image->value));
    image->cost = by_alloc(lp->column_count - first, sizeof(*image->cost));
    image->lower = by_alloc(lp->row_count, sizeof(*image->lower));
    image->upper = by_alloc(lp->row_count, sizeof(*image->upper));
    for (uint32_t j = first; j < lp->column_count; j++) {
        const struct by_lp_column *column = &lp->columns[j];

        image->cost[j - first] = mpq_get_d(column->cost);
        for (uint32_t k = 0; k < column->count; k++) {
            image->row[at] = (int)column->entries[k].row;
            image->value[at++] = mpq_get_d(column->entries[k].value);
        }
        image->start[j - first + 1] = (CoinBigIndex)at;
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

/* Passes Clp the basis to start from. */
static void give_basis(const struct by_lp *lp, Clp_Simplex *clp)
{
    for (uint32_t j = 0; j < lp->column_count; j++)
        Clp_setColumnStatus(clp, (int)j, lp->columns[j].basic ? CLP_BASIC : CLP_AT_LOWER);
    for (uint32_t i = 0; i < lp->row_count; i++)
        Clp_setRowStatus(clp, (int)i,
                         lp->rows[i].basic                    ? CLP_BASIC
                         : lp->rows[i].sense == BY_LP_AT_MOST ? CLP_AT_UPPER
                                                              : CLP_AT_LOWER);
}

/* Copies the program to a new model of Clp, with the basis to start from. */
static Clp_Simplex *model_make(const struct by_lp *lp)
{
    Clp_Simplex *clp = Clp_newModel();
    struct image image;

    image_make(lp, 0, &image);
    Clp_setLogLevel(clp, 0);
    Clp_loadProblem(clp, (int)lp->column_count, (int)lp->row_count, image.start, image.row, image.value, NULL,
                    NULL, image.cost, image.lower, image.upper);
    Clp_setOptimizationDirection(clp, -1);
    give_basis(lp, clp);
    image_free(&image);
    return clp;
}

static void limit_time(Clp_Simplex *clp, double deadline)
{
    double now = by_plan_clock();

    if (deadline > 0)
        Clp_setMaximumSeconds(clp, deadline > now ? deadline - now : 0.001);
}

static void take_basis(struct by_lp *lp, Clp_Simplex *clp)
{
    for (uint32_t j = 0; j < lp->column_count; j++)
        lp->columns[j].basic = Clp_getColumnStatus(clp, (int)j) == CLP_BASIC;
    for (uint32_t i = 0; i < lp->row_count; i++)
        lp->rows[i].basic = Clp_getRowStatus(clp, (int)i) == CLP_BASIC;
}

bool by_lp_propose(struct by_lp *lp, const struct by_lp_options *options)
{
    Clp_Simplex *clp;
    bool useful;

    if (lp->row_count == 0 || lp->column_count == 0)
        return false;
    clp = model_make(lp);
    if (options->perturb)
        Clp_setPerturbation(clp, CLP_PERTURB);
    limit_time(clp, options->deadline);
    Clp_dual(clp, 0);
    useful = Clp_status(clp) == 0;
    if (useful)
        take_basis(lp, clp);
    Clp_deleteModel(clp);
    return useful;
}

void by_lp_drop_image(struct by_lp *lp)
{
    if (lp->image)
        Clp_deleteModel(lp->image);
    lp->image = NULL;
    lp->image_columns = 0;
}

/* Brings Clp's copy up to date: costs and limits, and columns that it lacks, outside the basis. */
static void image_update(struct by_lp *lp)
{
    int first = (int)lp->image_columns, count = (int)lp->column_count - first;
    double *costs = by_alloc(lp->column_count, sizeof(*costs));
    struct image image;

    image_make(lp, lp->image_columns, &image);
    if (count > 0)
        Clp_addColumns(lp->image, count, NULL, NULL, image.cost, image.start, image.row, image.value);
    for (int j = first; j < first + count; j++)
        Clp_setColumnStatus(lp->image, j, CLP_AT_LOWER);
    Clp_chgRowLower(lp->image, image.lower);
    Clp_chgRowUpper(lp->image, image.upper);
    image_free(&image);
    for (uint32_t j = 0; j < lp->column_count; j++)
        costs[j] = mpq_get_d(lp->columns[j].cost);
    Clp_chgObjCoefficients(lp->image, costs);
    free(costs);
}

bool by_lp_estimate(struct by_lp *lp, double deadline, double *value, double *primals, double *duals)
{
    if (lp->row_count == 0 || lp->column_count == 0)
        return false;
    if (lp->image) {
        image_update(lp);
    } else {
        lp->image = model_make(lp);
        Clp_setPerturbation(lp->image, CLP_PERTURB);
    }
    lp->image_columns = lp->column_count;
    limit_time(lp->image, deadline);
    Clp_primal(lp->image, 0);
    if (Clp_status(lp->image) != 0)
        return false;
    take_basis(lp, lp->image);
    *value = Clp_getObjValue(lp->image);
    for (uint32_t j = 0; j < lp->column_count && primals; j++)
        primals[j] = Clp_primalColumnSolution(lp->image)[j];
    for (uint32_t i = 0; i < lp->row_count && duals; i++)
        duals[i] = Clp_dualRowSolution(lp->image)[i];
    return true;
}
