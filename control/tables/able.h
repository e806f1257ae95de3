/*
 * Which operators, types and modes all inner nodes of a tree support; mode det needs enough slots.
 * Also whether all queues on its paths are those of switches that run banyan, and so mark packets.
 * The hosts' tables contain the result, so a host can decide whether the trees can serve a call
 * before it starts. Neighbours: lower.c calls it, emit.c writes the result into LEAF. Pure; any
 * thread.
 */
#ifndef BY_TABLES_ABLE_H
#define BY_TABLES_ABLE_H

#include "control/tables/lower.h"
#include "offload/wire/types.h"

/*
 * Everything that the kernels of this source tree support: the default for a node whose topology
 * entry lists nothing.
 */
#define BY_LOWER_OPS    ((1u << BY_OP_COUNT) - 2)
#define BY_LOWER_DTYPES ((1u << BY_DTYPE_COUNT) - 2)

/* Sets `modes`, with BY_LEAF_MARKS, `ops` and `dtypes` of the tree, whose hops must be laid. */
void by_lower_able(const struct by_lowering *lowering, struct by_lowered_tree *tree);

/* Limits both trees of a pair to what both support. */
void by_lower_able_pair(struct by_lowered_tree *up, struct by_lowered_tree *down);

#endif
