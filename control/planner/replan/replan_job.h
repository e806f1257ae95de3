/* The shared state of a re-plan: replan.c chooses rates and ways, replan_write.c makes a plan of
 * the repaired trees, replan_anew.c one without the old trees. Each job belongs to one thread. */
#ifndef BY_PLANNER_REPLAN_REPLAN_JOB_H
#define BY_PLANNER_REPLAN_REPLAN_JOB_H

#include "control/planner/replan/repair.h"
#include "control/planner/replan/replan.h"
#include "offload/wire/types.h"

struct by_replan_job {
    const struct by_topology *before, *topology;
    const struct by_plan *from;
    struct by_plan *plan;
    struct by_graph *graph, *up, *down; /* up, down: for switches capable in one direction */
    bool pairs;                         /* trees up and trees down are paired */
    uint32_t *now;                      /* by old node: its new number, UINT32_MAX if lost */
    bool same_nodes;                    /* the nodes of the two fabrics are the same, in the same order */
    bool *known;                        /* by new node: it is in the old fabric */
    uint8_t *fate;                      /* by old path: enum by_path_fate; NULL: all are whole */
    bool *inside;                       /* by node: the side of the bottleneck that the data enter */
    struct by_repaired_list trees;      /* the old trees, before any repair */
    bool in_network;                    /* as in by_replan */
    uint32_t trees_anew;                /* of a plan made without the old one; 0: none was made */
    bool keep;                          /* the repaired trees are kept where new ones are faster */
    int64_t k;                          /* per root that the optimum needs; for others the bound */
    int64_t units;                      /* per root; for allreduce, of the whole plan */
    struct by_fraction scale;           /* units per unit of capacity, at the optimum */
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

/* The shortest time limit of a plan (seconds). */
#define BY_REPLAN_SECONDS_LEAST 1e-9

/* What a plan made without the old one must be, to take the place of the repaired one. */
enum by_replan_way {
    BY_REPLAN_FASTEST, /* at the bound, when there are no repaired trees */
    BY_REPLAN_FEWEST,  /* the same, and trees fewer by a tenth than any repair leaves */
    BY_REPLAN_FASTER,
    BY_REPLAN_LEANER /* as fast, and lower by a third or fewer by a tenth */
};

/* Makes a plan from scratch, after a repair failed to keep the order or took too long. */
int by_replan_anew(struct by_replan_job *job, double time_limit_s, struct by_replan_report *report,
                   struct by_problem *problem);
/* Takes a plan made without the old one if it is better. Returns whether it does. */
bool by_replan_better(struct by_replan_job *job, enum by_replan_way way, struct by_replan_report *report);
/* Whether a plan made without the old one may be faster, and takes no longer than it may. */
bool by_replan_may_be_faster(const struct by_replan_job *job, const struct by_replan_report *report);
/* Whether a plan made without the old one may have far fewer than so many trees. */
bool by_replan_may_be_fewer(const struct by_replan_job *job, uint32_t trees);
/* Whether less than a quarter of the trees stayed. */
bool by_replan_few_stay(const struct by_replan_job *job, const struct by_replan_report *report);
/* The time until the deadline, at least BY_REPLAN_SECONDS_LEAST; 0 without a deadline. */
double by_replan_seconds_left(double deadline);
/*
 * Writes the repaired trees to the plan of `job`, whose rate is 1/`slower` of the bound, and the
 * changes to `report`. BY_EUNSUPPORTED if they violate a limit or the order, BY_ERANGE if a weight
 * does not fit; then the plan has no trees. The caller keeps ownership of `trees`.
 */
int by_replan_write(struct by_replan_job *job, const struct by_repaired_list *trees,
                    struct by_fraction slower, struct by_replan_report *report);

#endif
