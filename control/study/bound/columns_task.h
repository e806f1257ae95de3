/*
 * A program of columns, shared by its parts: columns.c generates them, columns_grow.c does so on
 * large fabrics, columns_low.c replaces high trees by low ones, columns_weigh.c finds weights of 63
 * bits. Each program belongs to one thread.
 */
#ifndef BY_STUDY_BOUND_COLUMNS_TASK_H
#define BY_STUDY_BOUND_COLUMNS_TASK_H

#include "control/plan/tree_list.h"
#include "control/planner/lp/lp.h"
#include "control/planner/planner.h"

/* The price of a column that neither gains nor loses, where prices come from floating point. */
#define BY_COLUMNS_ONE ((int64_t)1 << 34)

struct by_grown;
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
    /* One of these finds the columns: */
    struct by_steiner *steiner;     /* the cheapest trees in both directions */
    struct by_tree_pair *tree_pair; /* the cheapest pairs */
    struct by_grown *grown;         /* both, on large fabrics */
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
/* Adds the column in `counts`, whose tree, or pair, is the last in the list of trees. */
void by_columns_add(struct by_columns *task);
/* Sets the prices between those of the last estimate (part 0) and the kept ones (part 1). */
void by_columns_mix_prices(struct by_columns *task, double part);
/* Keeps the prices if the bound that they prove, provided that no column is cheaper than `price`,
 * is the least so far. */
void by_columns_keep_prices(struct by_columns *task, __int128 price);

/* Whether the fabric is small enough for by_columns_grow. */
bool by_grown_fits(const struct by_plan_gap *gap);
/* Rows are the one-way links, then the switches with a budget of additions. The caller frees it. */
struct by_grown *by_grown_new(const struct by_plan_gap *gap);
void by_grown_free(struct by_grown *grown);
uint32_t by_grown_row_count(const struct by_grown *grown);
int64_t by_grown_row_capacity(const struct by_grown *grown, uint32_t row);
/* From and to of a link, or a switch twice. */
void by_grown_row_ends(const struct by_grown *grown, uint32_t row, uint32_t ends[2]);
/* Adds grown columns until none improves, the value is at least `bound`, or the work or the time is
 * used up. */
void by_columns_grow(struct by_columns *task, double bound);
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
