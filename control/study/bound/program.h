/*
 * The Reduce-Broadcast rate as a linear program, solved in polynomial time: how many tree pairs,
 * one tree up to a root and one down from it, fit into a fabric. Where switches only forward, the
 * program is exact; where they branch, it is an upper bound. One thread for each call.
 *
 * Zhou and Sun, "On the Computation Rate of All-Reduce", theorem 2, define the program over all
 * K^(2K-3) tree pairs. ForestColl (NSDI'26), appendix G, defines it over shares of the links and
 * flows, with the same optimum. Switches that multicast or aggregate are nodes that trees of one
 * direction may have, but need not. Here cuts replace the flows to each node. Maximum flows find
 * the violated cuts one by one, so the program stays small. Switches are handled as in ForestColl,
 * by one level of indirection: flows between compute nodes.
 */
#ifndef BY_STUDY_BOUND_PROGRAM_H
#define BY_STUDY_BOUND_PROGRAM_H

#include "control/plan/certificate.h"
#include "control/planner/graph.h"

/* Uses of the links: by the trees that carry data down, and by those that carry it up. */
enum by_program_use { BY_PROGRAM_DOWN = 0, BY_PROGRAM_UP, BY_PROGRAM_USES };

/* A path of data from one compute node to another, through switches. */
struct by_program_way {
    uint32_t node_count;
    uint32_t *nodes;
    int64_t amount; /* in units of 1/scale of the graph's unit */
};

struct by_program_ways {
    uint32_t count, room;
    struct by_program_way *ways; /* sorted by first node, then by last node */
};

/* The graphs of a fabric for both directions, up and down: the arcs are those of `both`, in the
 * direction of data. */
struct by_program_graphs {
    const struct by_graph *both, *up, *down;
};

struct by_bound_program {
    struct by_fraction bound;     /* upper bound for any trees, in the graph's unit; num 0: unknown */
    struct by_certificate *proof; /* proof of the bound by link prices and cuts; NULL: none */
    struct by_fraction rate; /* what the ways carry: the bound, or num 0 if the numbers need too many bits */
    bool mirrored;           /* the fabric is symmetric: the trees down also serve as trees up */
    int64_t scale;
    int64_t *roots;                               /* by node: trees that start there, in units of 1/scale */
    struct by_program_ways ways[BY_PROGRAM_USES]; /* UP is empty if mirrored */
    uint32_t rounds, cuts, columns, pivots;       /* work: solutions, cuts, variables, exact pivots */
};

/*
 * Returns a lower estimate of the number of variables of this graph's program: the measure of the
 * work.
 */
uint64_t by_program_size(const struct by_program_graphs *graphs);
/*
 * Solves the program. Where switches branch, its value is an upper bound for any trees, and there
 * are no ways: trees that reach it need not exist. Limits of additions are left out. Returns 0, or
 * with `problem` filled: BY_ERANGE; BY_ETIMEDOUT after `deadline` (a time of by_plan_clock, 0 for
 * none); BY_ESTATE if a verification failed. The caller frees `program` after success and failure.
 */
int by_program_solve(const struct by_program_graphs *graphs, double deadline,
                     struct by_bound_program *program, struct by_problem *problem);
void by_program_free(struct by_bound_program *program);

#endif
