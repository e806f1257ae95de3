/*
 * The Reduce-Broadcast rate of a fabric, the trees that reach it, and the proof that no trees carry
 * more: trees start at compute nodes, and switches only forward. Zhou and Sun, "On the Computation
 * Rate of All-Reduce", theorem 2. One thread for each call.
 */
#ifndef BY_STUDY_BOUND_RATE_H
#define BY_STUDY_BOUND_RATE_H

#include "control/plan/plan.h"

/* How the rate was found. */
enum by_rate_method {
    BY_RATE_SPANNING = 1, /* spanning trees in undirected links, and the tight partition */
    BY_RATE_STRENGTH,     /* trees with free roots, and tight disjoint sets */
    BY_RATE_PROGRAM,      /* the linear program, and its prices */
    BY_RATE_PACKED        /* the planner's trees: the rate is what is known, the bound may be above it */
};

struct by_bound_rate {
    enum by_rate_method method;
    struct by_plan *plan; /* allreduce: trees, `achieved` is the rate, `optimum` the bound */
    uint32_t rounds, cuts, columns, pivots; /* of the program, where there was one */
};

/*
 * Finds it. `topology` has no switch that multicasts or aggregates (by_bound_strip). 0, or
 * BY_EINVAL, BY_ERANGE, BY_ETIMEDOUT after `deadline` (a time of by_plan_clock, 0 for none),
 * BY_ESTATE when a verification failed, with `problem` filled. Free after success and failure.
 */
int by_rate_find(const struct by_topology *topology, double deadline, struct by_bound_rate *rate,
                 struct by_problem *problem);
void by_rate_free(struct by_bound_rate *rate);
/* "spanning trees", "free roots", "linear program", "planner". */
const char *by_rate_method_name(enum by_rate_method method);

#endif
