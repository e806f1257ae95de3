/*
 * Cuts of a fabric for each collective, in the topology's unit. Private to bound.c. One thread for
 * each graph.
 */
#ifndef BY_STUDY_BOUND_CUTS_H
#define BY_STUDY_BOUND_CUTS_H

#include "control/planner/graph.h"
#include "control/study/bound/bound.h"

/* Finds 1/x*, the bound and the cut for allgather (`graph` points down) or reduce-scatter (up). */
int by_cuts_shared(const struct by_graph *graph, bool up, struct by_bound_shared *shared,
                   struct by_problem *problem);
/* Finds the bound and cut of every root for broadcast (down) or reduce (up). */
int by_cuts_rooted(const struct by_graph *graph, bool up, struct by_bound_rooted *rooted,
                   struct by_problem *problem);
/* Finds the cut-set bound of allreduce. */
int by_cuts_allreduce(const struct by_graph *graph, struct by_fraction *bound, struct by_bound_cut *cut,
                      struct by_problem *problem);
/*
 * Finds the bound of allreduce if no switch adds or copies. Some process sends, and some process
 * receives, 2 (N - 1) / N of the data (Patarasuk and Yuan). So the process with the greatest
 * bandwidth bounds the rate. `*process` is the compute node with the greatest minimum cut that
 * separates it from all other compute nodes.
 */
int by_cuts_processes(const struct by_graph *graph, struct by_fraction *bound, uint32_t *process,
                      struct by_problem *problem);
/*
 * Finds the bound of allreduce by trees if no switch adds or copies: each tree pair leaves compute
 * nodes 2 (N - 1) times, and enters them as often.
 */
int by_cuts_links(const struct by_graph *graph, struct by_fraction *bound, struct by_problem *problem);
void by_bound_cut_free(struct by_bound_cut *cut);

#endif
