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

/* A variable: the part of an arc's capacity that data of one site uses. */
struct by_model_share {
    enum by_program_use use;
    uint32_t source; /* number of the site */
    uint32_t arc;
    uint32_t column;
};

/* The nodes that trees of one use may have: compute nodes, and switches that branch in it. */
struct by_model_sites {
    uint32_t count;
    uint32_t *node;   /* by site: its node index */
    uint32_t *number; /* by node: its number among the sites, UINT32_MAX for switches that only forward */
};

/* A node that is a site of both uses: trees may start there. */
struct by_model_root {
    uint32_t node;
    uint32_t column; /* the amount of trees that start there */
};

/* A set of sites with a compute node, which trees that start outside must cross. */
struct by_model_cut {
    enum by_program_use use;
    bool *inside; /* by site of the use */
    uint32_t row;
};

struct by_model {
    const struct by_graph *graph;
    struct by_lp *lp;
    bool mirrored;
    struct by_model_sites sites[BY_PROGRAM_USES];
    uint32_t root_count;
    struct by_model_root *roots;
    uint32_t arc_count;
    struct by_model_arc *arcs;
    uint32_t share_count, share_room;
    struct by_model_share *shares; /* sorted by use, source and arc */
    uint32_t cut_count, cut_room;
    struct by_model_cut *cuts;
};

struct by_model *by_model_new(const struct by_program_graphs *graphs);
void by_model_free(struct by_model *model);
/*
 * Adds the row of a cut unless it exists already. `inside` is a set of sites of the use. Returns
 * whether a row was added: not for a set without a compute node, nor for one that holds all roots.
 */
bool by_model_cut(struct by_model *model, enum by_program_use use, const bool *inside);

/* Values of the variables as integers, in units of 1/scale. */
struct by_model_amounts {
    int64_t scale;
    bool exact;      /* false: rounded down */
    int64_t total;   /* sum of the roots */
    int64_t *roots;  /* by root */
    int64_t *shares; /* by share */
    /* by use: [from * sites + to], capacity between sites */
    int64_t *capacity[BY_PROGRAM_USES];
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
