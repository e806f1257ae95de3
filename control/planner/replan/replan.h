/*
 * Planning again from a previous plan, after links or nodes of the fabric were lost or came back:
 * trees that still work stay as they are, the others are mended (repair.h). The bound is found anew
 * and exactly; where the old trees cannot be made to reach it, they give up a part of the rate,
 * which the report tells. One thread for each call.
 */
#ifndef BY_PLANNER_REPLAN_REPLAN_H
#define BY_PLANNER_REPLAN_REPLAN_H

#include "control/plan/plan.h"
#include "control/planner/planner.h"

struct by_replan_report {
    uint32_t trees_before;
    uint32_t trees_kept;    /* the same edges; the weight may be another */
    uint32_t trees_changed; /* some edges moved */
    uint32_t trees_new;     /* split off from changed ones, or of a node that came */
    uint32_t trees_gone;    /* of a root that is lost */
    bool anew;              /* an ordered plan that no mending kept in order: all trees are new */
    uint64_t entries;       /* (tree, node) pairs of the new plan: entries of tables, relays included */
    uint64_t entries_changed;
    bool optimal; /* the bound is reached; else `plan->achieved` over `plan->optimum` is the price */
    double seconds;
};

/*
 * The plan for `topology` from `from`, a plan for `before`. Nodes are told by name. Root and
 * collective are those of `from`, and so is an order of ranks: where no mending keeps it, the plan
 * is made anew. 0, or BY_EUNSUPPORTED when this plan cannot be mended (the collective's root lost,
 * no place found at any rate), or what by_plan_make returns; `problem` filled.
 */
int by_replan(const struct by_topology *before, const struct by_plan *from,
              const struct by_topology *topology, bool in_network, struct by_plan **plan,
              struct by_replan_report *report, struct by_problem *problem);
/*
 * Reads a plan that may use nodes and links which `topology` has lost: `before` receives a topology
 * with them (their bandwidths and kinds are not known, and not to be used). Both are the caller's
 * to free.
 */
int by_replan_read(const char *path, const struct by_topology *topology, struct by_topology **before,
                   struct by_plan **plan, struct by_problem *problem);

#endif
