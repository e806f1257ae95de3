/*
 * The Reduce-Broadcast rate of a fabric, the trees that reach it, and a proof that no trees carry
 * more. Trees start at compute nodes, and switches only forward. Source: Zhou and Sun, "On the
 * Computation Rate of All-Reduce", theorem 2. One thread for each call.
 */
#ifndef BY_STUDY_BOUND_RATE_H
#define BY_STUDY_BOUND_RATE_H

#include "control/plan/plan.h"

/* How the rate was found. */
enum by_rate_method {
    BY_RATE_SPANNING = 1, /* spanning trees in undirected links; proof: a tight partition */
    BY_RATE_STRENGTH,     /* trees with free roots; proof: tight disjoint sets */
    BY_RATE_PROGRAM,      /* the linear program; proof: its prices */
    BY_RATE_PACKED        /* the planner's trees: the bound may exceed the rate */
};

struct by_bound_rate {
    enum by_rate_method method;
    struct by_plan *plan; /* an allreduce plan: `achieved` is the rate, `optimum` the bound */
    uint32_t rounds, cuts, columns, pivots; /* of the program, if it was solved */
};

/*
 * Finds the rate. `topology` must have no switch that multicasts or aggregates (see
 * by_bound_strip). Returns 0, or with `problem` filled: BY_EINVAL; BY_ERANGE; BY_ETIMEDOUT after
 * `deadline` (a time of by_plan_clock, 0 for none); BY_ESTATE if a verification failed. The caller
 * frees `rate` after success and failure.
 */
int by_rate_find(const struct by_topology *topology, double deadline, struct by_bound_rate *rate,
                 struct by_problem *problem);
void by_rate_free(struct by_bound_rate *rate);
/* Returns "spanning trees", "free roots", "linear program" or "planner". */
const char *by_rate_method_name(enum by_rate_method method);

#endif
