/*
 * Allreduce by trees rooted at compute nodes: sums are sent up to the roots while results come down
 * again, in parallel. With equal shares this is reduce-scatter and allgather; on balanced fabrics
 * roots may be free, which is never slower. Each by_phases belongs to one thread.
 */
#ifndef BY_PLANNER_NETWORK_PHASES_H
#define BY_PLANNER_NETWORK_PHASES_H

#include "control/planner/optimum/spanning.h"
#include "control/planner/optimum/strength.h"
#include "control/planner/pack/tree.h"

/* The rates and structure of such trees on one topology. */
struct by_phases {
    struct by_graph *both, *up, *down;       /* the three graphs of the topology */
    double deadline;                         /* a time of by_plan_clock, 0 for none */
    struct by_stage *stage;                  /* or NULL */
    bool symmetric;                          /* each link has equal bandwidth in both directions */
    bool balanced;                           /* each node can send as much as it receives */
    int64_t up_p, up_q;                      /* reduce-scatter: 1/x* */
    int64_t down_p, down_q;                  /* allgather */
    struct by_fraction up_share, down_share; /* of the links' time, if roots have equal shares */
    /* rate with equal shares (reduce-scatter, then allgather), in units of capacity */
    struct by_fraction equal;
    struct by_fraction rate; /* the rate to plan with: the best of the following, else `equal` */
    bool late; /* the deadline passed: `rate` is `equal`, which is 0 if it is not known either */
    struct by_strength strength; /* if balanced, with switches or one-way links */
    struct by_spanning spanning; /* if symmetric and without switches */
};

/* Finds the rates; after the deadline, those found so far. The caller keeps ownership of the
 * graphs. Free after success and failure. */
int by_phases_find(struct by_graph *both, struct by_graph *up, struct by_graph *down, double deadline,
                   struct by_phases *phases, struct by_problem *problem);
void by_phases_free(struct by_phases *phases);
/* From now on, all roots have equal shares, which need less time to pack. */
void by_phases_equal(struct by_phases *phases);
/* Fills the empty list with trees at `phases->rate`: for both directions if the fabric is
 * symmetric, else in pairs. Switches that would exceed their limit of additions only forward in the
 * graphs from then on. */
int by_phases_trees(const struct by_phases *phases, struct by_tree_list *list, struct by_plan *plan,
                    struct by_problem *problem);

#endif
