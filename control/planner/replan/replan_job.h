/*
 * A re-plan at work: what replan.c, which chooses rates and ways, and replan_write.c, which makes a
 * plan of mended trees, know in common. One thread for each job.
 */
#ifndef BY_PLANNER_REPLAN_REPLAN_JOB_H
#define BY_PLANNER_REPLAN_REPLAN_JOB_H

#include "control/planner/replan/repair.h"
#include "control/planner/replan/replan.h"
#include "offload/wire/types.h"

struct by_replan_job {
    const struct by_topology *before, *topology;
    const struct by_plan *from;
    struct by_plan *plan;
    struct by_graph *graph, *up,
        *down;                /* the last two for what switches do one way, in plans that go both ways */
    bool pairs;               /* trees up and trees down stand in pairs */
    bool keep_parents;        /* branches stay below the nodes that they hung below */
    uint32_t *now;            /* by old node: its number now, UINT32_MAX when it is lost */
    bool same_nodes;          /* the nodes of the two fabrics are the same, in the same order */
    bool *known;              /* by new node: it is in the old fabric */
    uint32_t *path_now;       /* by old path: its number in `mend.paths`, UINT32_MAX when a node is lost */
    int64_t units;            /* of each root; of the whole plan for allreduce */
    struct by_fraction scale; /* units for each unit of capacity, at the optimum */
    int64_t *capacity;
    struct by_repair repair;
};

static inline bool by_replan_is_rooted(const struct by_replan_job *job)
{
    return by_collective_is_rooted(job->from->collective);
}

static inline bool by_replan_is_shared(const struct by_replan_job *job)
{
    return by_collective_is_sharded(job->from->collective);
}

static inline bool by_replan_goes_up(const struct by_replan_job *job)
{
    return by_collective_way(job->from->collective) == BY_DATA_UP;
}

/*
 * The mended trees as the plan of `job`, whose rate is 1/`slower` of the bound, and in `report`
 * what has changed. BY_EUNSUPPORTED where they break a limit or the order, BY_ERANGE where a weight
 * does not fit; the plan has no trees then, and the trees stay the caller's.
 */
int by_replan_write(struct by_replan_job *job, const struct by_repaired_list *trees,
                    struct by_fraction slower, struct by_replan_report *report);

#endif
