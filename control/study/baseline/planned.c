/*
 * Blink (Wang et al., MLSys 2020): spanning trees of a single root, here packed as well as can be;
 * switches are handled as ForestColl (NSDI'26, section 6.2) does for its "Blink+Switch". A
 * broadcast or reduce is what the planner makes of it. An allreduce is one root's best reduce and
 * broadcast, packed together: on a fabric whose links are alike both ways, the planner's trees
 * turned to that root (by_sketch_copy_at says why no trees of one root, nor of many, carry more).
 * See baseline.h.
 */
#include "control/base/clock.h"
#include "control/fabric/build.h"
#include "control/planner/planner.h"
#include "control/study/baseline/baseline.h"
#include "offload/base/errors.h"
#include "offload/wire/types.h"

int by_baseline_blink(struct by_baseline_task *task)
{
    bool allreduce = task->collective == BY_COLLECTIVE_ALLREDUCE;
    struct by_plan_options options = {.collective = task->collective,
                                      .root = task->root,
                                      .forwarding = task->forwarding,
                                      .stage = task->stage};
    double now = by_plan_clock();
    struct by_plan *plan = NULL;
    int error;

    if (by_collective_is_sharded(task->collective))
        return by_problem_set(
            task->problem, BY_EUNSUPPORTED, (struct by_place){0, 0},
            "Blink packs trees of one root: broadcast, reduce and allreduce; %s has a root at "
            "every node",
            by_collective_name(task->collective));
    if (allreduce && !task->net->symmetric)
        return by_problem_set(
            task->problem, BY_EUNSUPPORTED, (struct by_place){0, 0},
            "Blink's allreduce uses the same trees both ways; this fabric's links differ by "
            "direction");
    if (task->deadline > 0)
        options.time_limit_s = task->deadline > now ? task->deadline - now : 1e-9;
    error = by_plan_make(task->net->topology, &options, &plan, task->problem);
    if (!error && plan->hurried) {
        by_plan_free(plan);
        return by_problem_set(task->problem, BY_ETIMEDOUT, (struct by_place){0, 0},
                              "it did not end within its time limit; --time-limit gives it more");
    }
    if (!error)
        error = allreduce
                    ? by_sketch_copy_at(task->sketch, plan, task->net->compute[0])
                    : by_sketch_copy(task->sketch, plan,
                                     task->collective == BY_COLLECTIVE_REDUCE ? BY_TREE_UP : BY_TREE_DOWN);
    if (error == BY_ERANGE)
        error = by_problem_set(task->problem, BY_ERANGE, (struct by_place){0, 0},
                               "the trees' weights need more than 63 bits; round the bandwidths");
    by_plan_free(plan);
    return error;
}
