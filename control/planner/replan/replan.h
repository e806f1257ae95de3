/*
 * Updates a previous plan after links or nodes of the fabric were lost or restored. Trees that
 * still work stay as they are, the others are repaired (repair.h). The bound is recomputed exactly.
 * If the old trees cannot reach it, part of the rate is given up; the report records this. Each
 * call runs in one thread.
 */
#ifndef BY_PLANNER_REPLAN_REPLAN_H
#define BY_PLANNER_REPLAN_REPLAN_H

#include "control/plan/plan.h"
#include "control/planner/planner.h"

struct by_replan_report {
    uint32_t trees_before;
    uint32_t trees_kept;    /* the same edges; the weight may differ */
    uint32_t trees_changed; /* some edges changed */
    uint32_t trees_new;     /* split off from changed trees */
    uint32_t trees_gone;    /* trees whose root is lost */
    bool anew;        /* made without the old plan: no ordered repair, no time, `high`, `many` or `slow` */
    bool high;        /* the repaired trees were too high */
    bool many;        /* the repaired trees were too many */
    bool slow;        /* the repaired trees missed the bound, and new ones are faster */
    bool late;        /* there was no time to repair the trees */
    uint64_t entries; /* (tree, node) pairs of the new plan: table entries, relays included */
    uint64_t entries_changed;
    bool optimal; /* the bound is reached; else the loss is plan->optimum / plan->achieved */
    double seconds;
};

/*
 * Makes a plan for `topology` from `from`, a plan for `before`. Nodes are matched by name.
 * Collective, root and the order of ranks (if any) are those of `from`; if no repair keeps the
 * order, the plan is made from scratch. So it is where a repair misses the bound and a plan from
 * scratch is faster, or where repaired trees are over one and a half times as high or over a tenth
 * more, unless the old plan missed its bound or the new one has over twice as many trees. If
 * `time_limit_s` (0 for none) passes first, all trees are new, and the plan is marked `hurried`.
 * Returns 0; BY_EUNSUPPORTED when this plan cannot be repaired (the collective's root is lost, or
 * some branch has no place at any rate); or an error of by_plan_make; with `problem` filled.
 */
int by_replan(const struct by_topology *before, const struct by_plan *from,
              const struct by_topology *topology, bool in_network, double time_limit_s, struct by_plan **plan,
              struct by_replan_report *report, struct by_problem *problem);
/* The same, but keeps the trees of the repair where new ones would be faster. */
int by_replan_keep(const struct by_topology *before, const struct by_plan *from,
                   const struct by_topology *topology, bool in_network, double time_limit_s,
                   struct by_plan **plan, struct by_replan_report *report, struct by_problem *problem);
/*
 * Reads a plan that may use nodes and links that `topology` has lost. `before` receives a topology
 * that includes them; their bandwidths and kinds are unknown and must not be used. The caller frees
 * both.
 */
int by_replan_read(const char *path, const struct by_topology *topology, struct by_topology **before,
                   struct by_plan **plan, struct by_problem *problem);

#endif
