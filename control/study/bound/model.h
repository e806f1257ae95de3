/*
 * The inside of the program of program.h: its variables and rows, and the cuts found so far.
 * Neighbours: model.c makes it, separate.c finds cuts, program.c runs both. One thread for each
 * model.
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
    uint32_t row;     /* of its capacity */
    uint32_t reverse; /* the arc back, or UINT32_MAX */
};

/* A variable: what data of one compute node uses of an arc. */
struct by_model_share {
    enum by_program_use use;
    uint32_t source; /* number among the compute nodes */
    uint32_t arc;
    uint32_t column;
};

struct by_model {
    const struct by_graph *graph;
    struct by_lp *lp;
    bool mirrored;
    uint32_t compute_count;
    uint32_t *node;   /* by compute: its node */
    uint32_t *number; /* by node: its number among the compute nodes, UINT32_MAX for switches */
    uint32_t *root;   /* by compute: the column of the trees that start there */
    uint32_t arc_count;
    struct by_model_arc *arcs;
    uint32_t share_count, share_room;
    struct by_model_share *shares; /* ascending by use, source and arc */
    uint32_t cut_count, cut_room;
    bool **cuts; /* [cut][compute], the set that trees must enter; then the use, as a last element */
};

struct by_model *by_model_new(const struct by_graph *graph);
void by_model_free(struct by_model *model);
/* Adds the row of a cut, unless it is there: what is inside is a set of compute nodes. True when
 * added. */
bool by_model_cut(struct by_model *model, enum by_program_use use, const bool *inside);

/* Variables as integers, in 1/scale. */
struct by_model_amounts {
    int64_t scale;
    bool exact;        /* else rounded down */
    int64_t total;     /* of the roots */
    int64_t *roots;    /* by compute */
    int64_t *shares;   /* by share */
    int64_t *capacity; /* [use][from * compute_count + to]: between compute nodes */
};

/* The last solution as integers: exact where `exact` is wanted and 60 bits hold it (else false), or
 * rounded down. */
bool by_model_amounts(const struct by_model *model, bool exact, struct by_model_amounts *amounts);
void by_model_amounts_free(struct by_model_amounts *amounts);
/* Adds the cuts that these amounts violate; returns how many. Rounded amounts violate by more than
 * rounding explains. */
uint32_t by_model_separate(struct by_model *model, const struct by_model_amounts *amounts);

#endif
