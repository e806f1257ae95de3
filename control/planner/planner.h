/*
 * Planning: from a fabric and a collective to a plan (control/plan/plan.h) with the certificate of
 * how good it is. One thread for each call.
 */
#ifndef BY_PLANNER_PLANNER_H
#define BY_PLANNER_PLANNER_H

#include "control/base/stage.h"
#include "control/plan/plan.h"

struct by_graph;
struct by_packed;
struct by_tree_list;

/*
 * Trees of allreduce on a fabric whose switches only forward, by means that the planner itself has
 * not (control/study/bound/pack.h): appends the best to the empty list and fills `packed`, rate 0
 * where it has none. The graphs are those of the fabric for both directions, up and down. 0, or a
 * negative BY_E* with `problem` filled.
 */
typedef int by_plan_forwarding_fn(const struct by_graph *both, const struct by_graph *up,
                                  const struct by_graph *down, double deadline, struct by_tree_list *list,
                                  struct by_packed *packed, struct by_problem *problem);

struct by_plan_options {
    unsigned collective;     /* enum by_collective */
    int64_t root;            /* node index for broadcast and reduce */
    const bool *member;      /* by node: the compute nodes that take part, at least two; NULL: all */
    const int64_t *shares;   /* by node: parts of the data (allgather, reduce-scatter), 0 for switches; NULL:
                                all compute nodes have the same */
    int64_t fixed_k;         /* 0 = the optimal k */
    struct by_fraction loss; /* num > 0: the least k that costs at most this part of the rate, below 1 */
    bool latency_aware;      /* lower trees, for a part of the rate: see shallow.h */
    struct by_fraction loss_max; /* that part, where latency_aware: 1/10 is a tenth */
    bool ordered;                /* partial sums cover contiguous intervals of ranks */
    bool in_network;             /* false: switches only forward, and bounds are those of such a fabric */
    double time_limit_s;         /* 0 = none; past it what was found until then, `hurried`, or BY_ETIMEDOUT */
    struct by_stage *stage;      /* where progress is told; NULL: nowhere */
    by_plan_forwarding_fn *forwarding; /* asked where trees of free roots miss their bound; NULL: nobody */
};

/* Plans. Returns 0 and a plan that the caller frees, or a negative BY_E* with `problem` filled. One
 * thread for each call. */
int by_plan_make(const struct by_topology *topology, const struct by_plan_options *options,
                 struct by_plan **plan, struct by_problem *problem);

#endif
