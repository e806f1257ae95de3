/*
 * Allreduce by column generation: trees, or pairs of trees, are the columns of a linear program,
 * and those that improve it are found one by one from the prices of the links (Dantzig and Wolfe
 * 1960; the pricers are those of the planner, steiner.h and tree_pair.h). A floating-point solver
 * sets the prices on the way; the trees, their weights and the bound are exact in the end. For
 * fabrics that are too large for the planner's programs in integers (packing.h, pairs.h). One
 * thread for each call.
 */
#ifndef BY_STUDY_BOUND_COLUMNS_H
#define BY_STUDY_BOUND_COLUMNS_H

#include "control/planner/planner.h"

/* As by_program_pack, where switches branch. */
by_plan_programs_fn by_columns_pack;

#endif
