/*
 * The internal model of a linear program: the columns, the basis and the solution. Neighbours: lp.c
 * fills it, clp.c and simplex.c read it and set the basis, check.c reads it. Each program belongs
 * to one thread.
 */
#ifndef BY_PLANNER_LP_MODEL_H
#define BY_PLANNER_LP_MODEL_H

#include "control/planner/lp/lp.h"

struct by_lp_entry {
    uint32_t row;
    mpq_t value;
};

struct by_lp_column {
    mpq_t cost;
    uint32_t count, room;
    struct by_lp_entry *entries; /* in the order of creation; one for each row */
    uint32_t top;                /* all entries have rows below it */
    bool basic;
};

/* A row and its logical variable s: a x + s = limit, with s >= 0, s <= 0 or s = 0. */
struct by_lp_row {
    enum by_lp_sense sense;
    mpq_t limit;
    bool basic; /* of the logical variable */
};

struct by_lp {
    uint32_t column_count, column_room;
    struct by_lp_column *columns;
    uint32_t row_count, row_room;
    struct by_lp_row *rows;
    enum by_lp_state state;
    struct by_lp_work work;
    mpq_t value;
    uint32_t primal_count, dual_count; /* of the solution */
    mpq_t *primal, *dual;
    void *image;            /* Clp's copy of the program, for estimates; NULL: none */
    uint32_t image_columns; /* of the program, in the copy */
};

/* Sets the basis to the one that Clp considers optimal. Returns false, and leaves the basis
 * unchanged, when Clp has no proposal. */
bool by_lp_propose(struct by_lp *lp, const struct by_lp_options *options);
/* Frees Clp's copy of the program, if there is one. */
void by_lp_drop_image(struct by_lp *lp);
/* Pivots from the current basis in rationals, and fills primal and dual. Errors as
 * for by_lp_solve. */
int by_lp_finish(struct by_lp *lp, double deadline, struct by_problem *problem);
/* Whether primal and dual are feasible and of equal value, computed from the model alone, without
 * the basis. */
bool by_lp_verify(const struct by_lp *lp);

#endif
