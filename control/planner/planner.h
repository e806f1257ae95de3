/* Planning: turns a fabric and a collective into a plan (control/plan/plan.h) with a certificate of
 * its quality. Each call runs in one thread. */
#ifndef BY_PLANNER_PLANNER_H
#define BY_PLANNER_PLANNER_H

#include "control/base/stage.h"
#include "control/plan/plan.h"

struct by_graph;
struct by_packed;
struct by_tree_list;

/* An allreduce whose trees miss the bound, or are high, in units of capacity. */
struct by_plan_gap {
    const struct by_graph *both, *up, *down; /* the fabric for both directions, up and down */
    bool pairs;                              /* trees up and down may differ */
    bool branching;                          /* some switch branches, in at least one direction */
    bool bound_only;                         /* where switches branch: find no trees */
    bool lower;                              /* the trees reach the bound: find lower ones, quickly */
    struct by_fraction bound;                /* of all trees */
    const struct by_tree_list *trees;        /* those found so far */
    double deadline;                         /* a time of by_plan_clock, 0 for none */
};

/*
 * Finds trees, a bound, or both by linear programs outside the planner, which does not link with
 * their solver (control/study/bound/pack.h). Appends the best trees to the empty list and fills
 * `packed`, with rate 0 when it finds none. Returns 0, or a negative BY_E* with `problem` filled.
 */
typedef int by_plan_programs_fn(const struct by_plan_gap *gap, struct by_tree_list *list,
                                struct by_packed *packed, struct by_problem *problem);

struct by_plan_options {
    unsigned collective; /* enum by_collective */
    int64_t root;        /* node index for broadcast and reduce */
    const bool *member;  /* by node: the compute nodes that take part, at least two; NULL: all */
    /* by node: parts of the data (allgather, reduce-scatter), 0 for switches; NULL: equal shares */
    const int64_t *shares;
    int64_t fixed_k; /* 0 = the optimal k */
    /* num > 0: use the least k that costs at most this fraction of the rate, below 1 */
    struct by_fraction loss;
    /* at most so many trees share the data of one rank (control/plan/merge.h): the best rate that
     * is found with them; 0 = any number */
    int64_t trees_max;
    bool latency_aware;            /* trade part of the rate for lower trees: see shallow.h */
    struct by_fraction loss_max;   /* the largest such part: 1/10 is a tenth */
    bool ordered;                  /* partial sums cover contiguous intervals of ranks */
    bool classes;                  /* plan alike parts of the fabric once (classes/classes.h) */
    bool in_network;               /* false: switches only forward, and bounds hold for such a fabric */
    double time_limit_s;           /* 0 = none; after it: the best plan so far, marked `hurried` */
    struct by_stage *stage;        /* receives progress; may be NULL */
    by_plan_programs_fn *programs; /* called when an allreduce misses its bound; may be NULL */
};

/* Makes a plan. Returns 0 and a plan that the caller frees, or a negative BY_E* with `problem`
 * filled. */
int by_plan_make(const struct by_topology *topology, const struct by_plan_options *options,
                 struct by_plan **plan, struct by_problem *problem);
/* The same, but a plan that the time limit has ended early is BY_ETIMEDOUT: for callers that need
 * the planner's best. */
int by_plan_make_whole(const struct by_topology *topology, const struct by_plan_options *options,
                       struct by_plan **plan, struct by_problem *problem);

#endif
