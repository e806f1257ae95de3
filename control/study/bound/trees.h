/*
 * Converts a solved program to trees: the tree pairs that reach the Reduce-Broadcast rate, in the
 * planner's form. One thread for each call.
 */
#ifndef BY_STUDY_BOUND_TREES_H
#define BY_STUDY_BOUND_TREES_H

#include "control/planner/pack/tree.h"
#include "control/study/bound/program.h"

/*
 * Appends the trees of a program with a rate to the empty `list`: trees for both directions if it
 * is mirrored, else tree pairs. The graphs are those of the topology for both directions, up and
 * down, without switches that branch. Returns 0, or BY_ERANGE or BY_ETIMEDOUT with `problem`
 * filled.
 */
int by_program_trees(const struct by_bound_program *program, const struct by_graph *both,
                     const struct by_graph *up, const struct by_graph *down, double deadline,
                     struct by_tree_list *list, struct by_problem *problem);

#endif
