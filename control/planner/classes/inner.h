/*
 * Trees within one part of the innermost level, where it has several compute nodes: an allgather of
 * its own, over what the routes to other parts leave of its links. Each part of the fabric gets the
 * data of all others at the node that corresponds to the sender, and spreads it by that node's
 * trees. Used by classes.c only. Each object belongs to one thread.
 */
#ifndef BY_PLANNER_CLASSES_INNER_H
#define BY_PLANNER_CLASSES_INNER_H

#include "control/plan/plan.h"
#include "control/planner/classes/routes.h"

/* Plans an allgather of a fabric whose switches only forward. Returns 0 and a plan that the caller
 * frees, or a negative BY_E* with `problem` filled. */
typedef int by_inner_plan_fn(const struct by_topology *topology, struct by_plan **plan,
                             struct by_problem *problem);

/* All zero before it is made. */
struct by_inner {
    struct by_plan *plan;      /* NULL where a part has one compute node */
    uint32_t *whole;           /* by node of that plan: the representative */
    struct by_fraction *parts; /* by tree of that plan: its part of the data of its root */
    int64_t k;                 /* equal trees for each root that the plan's trees stand for */
    struct by_fraction *load;  /* by half of the graph's net: parts of the data of single roots */
};

/* Makes the trees; `each` is the wanted rate of each compute node of the whole fabric.
 * BY_EUNSUPPORTED with `problem` filled if the routes leave too little to connect a part. */
int by_inner_make(struct by_inner *inner, const struct by_routes *routes, struct by_fraction each,
                  by_inner_plan_fn *plan_part, struct by_problem *problem);
void by_inner_free(struct by_inner *inner);
static inline struct by_fraction by_inner_load(const struct by_inner *inner, uint32_t half)
{
    return inner->plan ? inner->load[half] : (struct by_fraction){0, 1};
}

#endif
