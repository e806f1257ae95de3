/*
 * The Reduce-Broadcast rate as a linear program, in polynomial time: how many pairs of trees, one
 * up to a compute node and one down from it, fit into a fabric whose switches only forward. One
 * thread for each call.
 *
 * Zhou and Sun, "On the Computation Rate of All-Reduce", theorem 2, state it over all K^(2K-3)
 * pairs of trees; ForestColl (NSDI'26), appendix G, over shares of the links and flows, which has
 * the same optimum. Here the flows to each node are replaced by the cuts that they must cross,
 * found one by one with maximum flows, so the program stays small; switches keep ForestColl's level
 * of indirection, flows between compute nodes.
 */
#ifndef BY_STUDY_BOUND_PROGRAM_H
#define BY_STUDY_BOUND_PROGRAM_H

#include "control/plan/certificate.h"
#include "control/planner/graph.h"

/* Uses of the links: for the trees that carry down, and for those that carry up. */
enum by_program_use { BY_PROGRAM_DOWN = 0, BY_PROGRAM_UP, BY_PROGRAM_USES };

/* A way of data from one compute node to another, through switches. */
struct by_program_way {
    uint32_t node_count;
    uint32_t *nodes;
    int64_t amount; /* in 1/scale of the graph's unit */
};

struct by_program_ways {
    uint32_t count, room;
    struct by_program_way *ways; /* ascending by first and then last node */
};

struct by_bound_program {
    struct by_fraction bound;     /* no trees carry more, in the graph's unit; num 0: not known */
    struct by_certificate *proof; /* of the bound, by prices of links; NULL: not known */
    struct by_fraction rate; /* what the ways carry: the bound, or num 0 where numbers need too many bits */
    bool mirrored;           /* the fabric is symmetric: trees that carry down serve both ways */
    int64_t scale;
    int64_t *roots;                               /* by node: trees that start there, in 1/scale */
    struct by_program_ways ways[BY_PROGRAM_USES]; /* UP is empty where mirrored */
    uint32_t rounds, cuts, columns, pivots;       /* the work: solutions, cuts, variables, exact pivots */
};

/* How many variables the program of this graph has, or somewhat less: the measure of the work. */
uint64_t by_program_size(const struct by_graph *graph);
/*
 * Solves. `graph` has data along its arcs, and no switch that branches. 0; BY_ERANGE, BY_ETIMEDOUT
 * after `deadline` (a time of by_plan_clock, 0 for none), BY_ESTATE when a verification failed,
 * with `problem` filled. Free after success and failure.
 */
int by_program_solve(const struct by_graph *graph, double deadline, struct by_bound_program *program,
                     struct by_problem *problem);
void by_program_free(struct by_bound_program *program);

#endif
