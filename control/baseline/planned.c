/*
 * Blink (Wang et al., MLSys 2020): spanning trees of a single root, here packed as well as can be, which is
 * what the planner does for a broadcast; switches are handled as ForestColl (NSDI'26, section 6.2) does for
 * its "Blink+Switch". Allreduce reduces to the root over the same trees that broadcast from it. See
 * baseline.h.
 */
#include "control/baseline/baseline.h"
#include "control/plan/clock.h"
#include "control/topology/build.h"
#include "offload/base/errors.h"
#include "offload/wire/types.h"

int by_baseline_blink(struct by_baseline_task *task)
{
    struct by_plan_options options = {.collective = BY_COLLECTIVE_BROADCAST,
                                      .root =
                                          by_task_rooted(task) ? task->root : (int64_t)task->net->compute[0]};
    double now = by_plan_clock();
    bool allreduce = task->collective == BY_COLLECTIVE_ALLREDUCE;
    struct by_plan *plan = NULL;
    int error;

    if (task->collective == BY_COLLECTIVE_ALLGATHER || task->collective == BY_COLLECTIVE_REDUCE_SCATTER)
        return by_problem_set(
            task->problem, BY_EUNSUPPORTED, (struct by_place){0, 0},
            "Blink packs trees of one root: broadcast, reduce and allreduce; %s has a root at "
            "every node",
            by_collective_name(task->collective));
    if (allreduce && !task->net->symmetric)
        return by_problem_set(task->problem, BY_EUNSUPPORTED, (struct by_place){0, 0},
                              "Blink uses the same trees both ways; this fabric's links differ by direction");
    if (task->collective == BY_COLLECTIVE_REDUCE)
        options.collective = BY_COLLECTIVE_REDUCE;
    options.stage = task->stage;
    if (task->deadline > 0)
        options.time_limit_s = task->deadline > now ? task->deadline - now : 1e-9;
    error = by_plan_make(task->net->topology, &options, &plan, task->problem);
    if (!error && plan->hurried) {
        by_plan_free(plan);
        return by_problem_set(task->problem, BY_ETIMEDOUT, (struct by_place){0, 0},
                              "it did not end within its time limit; --time-limit gives it more");
    }
    if (!error && by_sketch_copy(task->sketch, plan,
                                 allreduce                                  ? BY_TREE_BOTH
                                 : task->collective == BY_COLLECTIVE_REDUCE ? BY_TREE_UP
                                                                            : BY_TREE_DOWN) != 0)
        error = by_problem_set(task->problem, BY_ERANGE, (struct by_place){0, 0},
                               "the trees' weights need more than 63 bits; round the bandwidths");
    by_plan_free(plan);
    return error;
}
