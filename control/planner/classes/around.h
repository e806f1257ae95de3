/*
 * Bounds of fabrics of alike parts: the cuts around a part of each level, around one compute node,
 * and around what corresponds to each other in all parts; for an allreduce also the partitions into
 * parts. Used by classes.c only. Each object belongs to one thread.
 */
#ifndef BY_PLANNER_CLASSES_AROUND_H
#define BY_PLANNER_CLASSES_AROUND_H

#include "control/plan/plan.h"
#include "control/planner/classes/symmetry.h"

struct by_around {
    const struct by_graph *graph;
    bool both_ways;
    struct by_fraction bound;  /* of the rate of all data, in the graph's unit */
    struct by_fraction each;   /* the same for the data of one compute node */
    bool *inside;              /* by node: the side of the tightest cut */
    bool leaves;               /* data must leave that side, else enter it */
    struct by_fraction across; /* bandwidth across the cut, in the graph's unit */
    uint32_t part_count;       /* of the partition that proves the bound, 0 for none */
    uint32_t *part;            /* by node: the number of its part; part_count for none */
};

/* Finds the tightest of these bounds. Free after success and failure. */
int by_around_find(struct by_around *around, const struct by_graph *graph, const struct by_symmetry *symmetry,
                   bool both_ways, struct by_problem *problem);
void by_around_free(struct by_around *around);
/* If trees of `rate` for each compute node miss the bound, looks for the tightest of all cuts.
 * Returns whether the bound is lower now. */
bool by_around_tighten(struct by_around *around, struct by_fraction rate);
/* Sets the cut and the proof of a plan. */
int by_around_describe(const struct by_around *around, struct by_plan *plan, struct by_problem *problem);

#endif
