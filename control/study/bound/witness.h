/* The proof of a solved program: its dual solution in integers. One thread for each call. */
#ifndef BY_STUDY_BOUND_WITNESS_H
#define BY_STUDY_BOUND_WITNESS_H

#include "control/study/bound/model.h"

/* Fills the program's bound and its proof by prices and cuts, rounded where the exact numbers need
 * too many bits: the bound is then slightly above the program's value. Bound 0: it does not fit.
 * Without `branches` no switch branches, and the prices suffice. */
void by_witness_keep(const struct by_model *model, bool branches, struct by_bound_program *program);

#endif
