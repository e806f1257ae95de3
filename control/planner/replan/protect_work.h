/* Internal declarations of protect.c (which set serves a failure) and protect_set.c (sets and their
 * trees). Each call runs in one thread. */
#ifndef BY_PLANNER_REPLAN_PROTECT_WORK_H
#define BY_PLANNER_REPLAN_PROTECT_WORK_H

#include "control/planner/graph.h"
#include "control/planner/replan/protect.h"

/* The fabric after a failure, as the job's ranks see it. */
struct by_protect_left {
    struct by_topology *topology;
    uint32_t *number; /* by node of the whole fabric: its number here, or UINT32_MAX */
    bool *member;     /* by node here: the ranks; NULL: all compute nodes */
    int64_t *shares;  /* by node here; NULL: equal shares */
    struct by_graph *graph;
    int8_t *avoids; /* by unit: 1: it avoids the failure, -1: it does not, 0: not known yet */
};

/* Adds the trees of a plan to the list, unless they are there, and makes a set of them. `number` is
 * by node of the plan's fabric: the node of the whole fabric; NULL: the same. BY_ERANGE. */
int by_protect_add(struct by_protect *protect, const struct by_plan *plan, const uint32_t *number,
                   struct by_protect_set *set);
void by_protect_set_free(struct by_protect_set *set);
/* The units of a set that neither the plan nor another set uses so far. */
uint32_t by_protect_new(const struct by_protect *protect, const struct by_protect_set *set);
/*
 * Makes the set of those trees of `from` that avoid the failure: the weights of each root are
 * scaled to its share of the data, then all weights until a link or an adder is full. Returns false
 * if a root has no tree left, or if a number exceeds 63 bits.
 */
bool by_protect_rest(const struct by_protect *protect, struct by_protect_left *left,
                     const struct by_protect_set *from, struct by_protect_set *set);
/*
 * The same for the trees of the plan, where a root without such a tree gets those of other sets, or
 * if these have none either, those of `more` (NULL: none), all of which avoid the failure.
 */
bool by_protect_patch(const struct by_protect *protect, struct by_protect_left *left,
                      const struct by_protect_set *more, struct by_protect_set *set);

#endif
