/*
 * A program of columns, shared by its parts: columns.c generates them, columns_low.c replaces high
 * trees by low ones, columns_weigh.c finds weights of 63 bits. Each program belongs to one thread.
 */
#ifndef BY_STUDY_BOUND_COLUMNS_TASK_H
#define BY_STUDY_BOUND_COLUMNS_TASK_H

#include "control/plan/tree_list.h"
#include "control/planner/lp/lp.h"
#include "control/planner/planner.h"

struct by_steiner;
struct by_tree_pair;

/* How often a column passes a link, or how many additions it needs at a switch. */
struct by_column_use {
    uint32_t row;
    int32_t count;
};

/* A tree in both directions, or a pair. */
struct by_column {
    uint32_t row_count;
    struct by_column_use *rows;
    uint32_t tree;   /* its number in the list of trees; that of a pair's tree down follows */
    uint32_t height; /* hops; of a pair: of its higher tree */
};

struct by_columns {
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
    uint32_t height_max; /* hops of columns that count; UINT32_MAX: any */
    uint32_t column_count, column_room, column_max;
    struct by_column *columns;
    struct by_tree_list trees; /* of the columns; their weights mean nothing */
};

/*
 * Adds columns, priced in floating point, until none improves or the value is at least `bound`.
 * Prices are taken between those of the estimate, which jump, and the best so far (Wentges 1997).
 * False: there was no time, or no estimate.
 */
bool by_columns_generate(struct by_columns *task, double bound);
/* Amounts of the columns, in units of capacity. All zero has none. */
struct by_amounts {
    uint32_t count; /* of the columns that existed when the amounts were found; later ones have none */
    struct by_fraction *of; /* by column; by_columns_weigh allocates it, the caller frees it */
    struct by_fraction sum;
    bool rounded; /* down, since the weights do not fit 63 bits */
};

/* Sets the limits of the program, which are in units of 1 / scale. */
void by_columns_limit(const struct by_columns *task, const int64_t *limits, int64_t scale);
/*
 * Finds the amounts of the columns: those of the exact solution, others with the same sum, or ones
 * that are rounded down to multiples of 2^-round_bits. Without an exact solution (`solved`) they
 * are rounded. Adds columns. Returns 0, or BY_ERANGE and no amounts.
 */
int by_columns_weigh(struct by_columns *task, bool solved, unsigned round_bits, struct by_amounts *amounts);
/* Replaces the amounts by those of lower columns with at least the same sum, if it finds such. Adds
 * columns, and ends at the deadline. */
void by_columns_lower(struct by_columns *task, struct by_amounts *amounts);

#endif
