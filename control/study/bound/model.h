/*
 * Variables, rows and cuts of the linear program in program.h. Neighbours: model.c builds it,
 * separate.c finds violated cuts, program.c runs both. One thread for each model.
 */
#ifndef BY_STUDY_BOUND_MODEL_H
#define BY_STUDY_BOUND_MODEL_H

#include "control/planner/flow/flow.h"
#include "control/planner/lp/lp.h"
#include "control/study/bound/program.h"

/* An arc of the graph that has capacity. */
struct by_model_arc {
    uint32_t from, to;
    int64_t capacity;
    uint32_t row;     /* row of its capacity */
    uint32_t reverse; /* the arc in the opposite direction, or UINT32_MAX */
};

/* A variable: the part of an arc's capacity that data of one compute node uses. */
struct by_model_share {
    enum by_program_use use;
    uint32_t source; /* number of the compute node */
    uint32_t arc;
    uint32_t column;
};

struct by_model {
    const struct by_graph *graph;
    struct by_lp *lp;
    bool mirrored;
    uint32_t compute_count;
    uint32_t *node;   /* by compute node: its node index */
    uint32_t *number; /* by node: its number among the compute nodes, UINT32_MAX for switches */
    uint32_t *root;   /* by compute node: the column of the trees that start there */
    uint32_t arc_count;
    struct by_model_arc *arcs;
    uint32_t share_count, share_room;
    struct by_model_share *shares; /* sorted by use, source and arc */
    uint32_t cut_count, cut_room;
    /* [cut][compute node]: the set that trees must enter. The last element is the use. */
    bool **cuts;
};

struct by_model *by_model_new(const struct by_graph *graph);
void by_model_free(struct by_model *model);
/*
 * Adds the row of a cut unless it exists already. `inside` is a set of compute nodes. Returns
 * whether a row was added.
 */
bool by_model_cut(struct by_model *model, enum by_program_use use, const bool *inside);

/* Values of the variables as integers, in units of 1/scale. */
struct by_model_amounts {
    int64_t scale;
    bool exact;        /* false: rounded down */
    int64_t total;     /* sum of the roots */
    int64_t *roots;    /* by compute node */
    int64_t *shares;   /* by share */
    int64_t *capacity; /* [use][from * compute_count + to]: capacity between compute nodes */
};

/*
 * Converts the last solution to integers, exact or rounded down. Returns false if `exact` is set
 * and the numbers need more than 60 bits.
 */
bool by_model_amounts(const struct by_model *model, bool exact, struct by_model_amounts *amounts);
void by_model_amounts_free(struct by_model_amounts *amounts);
/*
 * Adds the cuts that these amounts violate, and returns their number. For rounded amounts, only
 * violations that exceed the rounding error count.
 */
uint32_t by_model_separate(struct by_model *model, const struct by_model_amounts *amounts);

#endif
