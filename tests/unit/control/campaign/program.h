/*
 * Writes the linear program that bounds allreduce, for an external solver: free roots, each link's
 * capacity split between reduction and distribution, a flow to and from each compute node
 * (ForestColl, NSDI'26, appendix G; here capable switches stay in the graph and may be roots). On
 * fabrics of compute nodes only, trees reach this bound (Edmonds), so the planner must reach it
 * too. Pure functions: any thread.
 */
#ifndef TESTS_CAMPAIGN_PROGRAM_H
#define TESTS_CAMPAIGN_PROGRAM_H

#include "control/fabric/topology.h"

/* Writes FOLDER/SEED.lp in CPLEX format. Its first line is a comment: "\ expect equal|atmost NUM
 * DEN NAME", the planner's rate in capacity units. Returns 0, or -1 with errno. */
int program_write(const struct by_topology *topology, struct by_fraction achieved, const char *folder,
                  uint64_t seed);

#endif
