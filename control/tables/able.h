/*
 * What the inner nodes of a tree can do together: operators, types, and modes, for which det wants
 * slots. Hosts' tables say it, so that a call is known to be one for the trees before it is made.
 * Neighbours: lower.c asks, emit.c writes it into LEAF. Pure; any thread.
 */
#ifndef BY_TABLES_ABLE_H
#define BY_TABLES_ABLE_H

#include "control/tables/lower.h"
#include "offload/wire/types.h"

/* All that the kernels of this tree have: what a node can do of which its topology says nothing. */
#define BY_LOWER_OPS    ((1u << BY_OP_COUNT) - 2)
#define BY_LOWER_DTYPES ((1u << BY_DTYPE_COUNT) - 2)

/* Sets `modes`, `ops` and `dtypes` of the tree, whose hops are laid. */
void by_lower_able(const struct by_lowering *lowering, struct by_lowered_tree *tree);

#endif
