/*
 * Cuts of a fabric for one collective after the other, in the topology's unit: the inside of
 * bound.c. One thread for each graph.
 */
#ifndef BY_STUDY_BOUND_CUTS_H
#define BY_STUDY_BOUND_CUTS_H

#include "control/planner/graph.h"
#include "control/study/bound/bound.h"

/* Allgather (`graph` of direction down) or reduce-scatter (up): 1/x*, the bound and the cut. */
int by_cuts_shared(const struct by_graph *graph, bool up, struct by_bound_shared *shared,
                   struct by_problem *problem);
/* Broadcast (down) or reduce (up): every root. */
int by_cuts_rooted(const struct by_graph *graph, bool up, struct by_bound_rooted *rooted,
                   struct by_problem *problem);
/* Allreduce: the cut-set bound. */
int by_cuts_allreduce(const struct by_graph *graph, struct by_fraction *bound, struct by_bound_cut *cut,
                      struct by_problem *problem);
/*
 * Allreduce while no switch sums or copies: some process sends, and some process receives, 2 (N -
 * 1) / N of the data (Patarasuk and Yuan), so the widest process bounds the rate: `*process`, of
 * whom the least cut that separates it from all others is the greatest.
 */
int by_cuts_processes(const struct by_graph *graph, struct by_fraction *bound, uint32_t *process,
                      struct by_problem *problem);
/* Allreduce by trees while no switch sums or copies: each pair leaves compute nodes 2 (N - 1)
 * times, and enters them as often. */
int by_cuts_links(const struct by_graph *graph, struct by_fraction *bound, struct by_problem *problem);
void by_bound_cut_free(struct by_bound_cut *cut);

#endif
