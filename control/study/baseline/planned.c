/*
 * Blink (Wang et al., MLSys 2020): spanning trees of a single root, here with optimal packing.
 * Switches are handled as in ForestColl's "Blink+Switch" (NSDI'26, section 6.2). See baseline.h.
 *
 * A broadcast or reduce is the planner's. An allreduce is one root's best reduce and broadcast,
 * packed together: on a fabric whose links are equal in both directions, these are the planner's
 * trees rerooted to that root (by_sketch_copy_at explains why trees with other roots carry no
 * more).
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
    struct by_plan_options options = {
        .collective = task->collective, .root = task->root, .programs = task->programs, .stage = task->stage};
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
            "Blink's allreduce uses the same trees in both directions; this fabric's links differ by "
            "direction");
    if (task->deadline > 0)
        options.time_limit_s = task->deadline > now ? task->deadline - now : 1e-9;
    error = by_plan_make_whole(task->net->topology, &options, &plan, task->problem);
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
