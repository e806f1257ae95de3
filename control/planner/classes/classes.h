/*
 * Plans by classes, for fabrics made of alike parts: trees for one compute node of each class, and
 * the rotations (control/plan/rotations.h) that make them the trees of all others. Their number of
 * edges grows with the nodes instead of with their square. Each call runs in one thread.
 */
#ifndef BY_PLANNER_CLASSES_CLASSES_H
#define BY_PLANNER_CLASSES_CLASSES_H

#include "control/planner/classes/inner.h"
#include "control/planner/planner.h"

/*
 * Fills a plan of allgather, reduce-scatter, allreduce or barrier, whose names, counts and `cut`
 * are set (planner.c). Each tree goes to the other parts by as few links between parts as possible,
 * from the outermost level to the innermost. Such trees reach the bound where the cuts around parts
 * or around single nodes are the narrowest; else the plan states both. `plan_part` plans a single
 * part. Returns 0; BY_EUNSUPPORTED if the fabric has no alike parts, or BY_ELIMIT, with `problem`
 * filled.
 */
int by_classes_plan(const struct by_topology *topology, const struct by_plan_options *options,
                    by_inner_plan_fn *plan_part, struct by_plan *plan, struct by_problem *problem);

#endif
