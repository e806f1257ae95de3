/*
 * The linear program that bounds allreduce, written for an outside solver: free roots, every link's
 * capacity split between reducing and distributing, a flow to and from each compute node
 * (ForestColl, NSDI'26, appendix G; here with capable switches kept in the graph and allowed as
 * roots). Where a fabric is of compute nodes alone, trees reach it (Edmonds), so that the planner
 * must, too. Pure functions: any thread.
 */
#ifndef TESTS_CAMPAIGN_PROGRAM_H
#define TESTS_CAMPAIGN_PROGRAM_H

#include "control/fabric/topology.h"

/* Writes FOLDER/SEED.lp in CPLEX format. Its first line is a comment: "\ expect equal|atmost NUM
 * DEN NAME", what the planner achieved, in capacity units. 0, or -1 with errno. */
int program_write(const struct by_topology *topology, struct by_fraction achieved, const char *folder,
                  uint64_t seed);

#endif
