/*
 * Upper bounds for the rate of any schedule on a fabric, for each collective, with their proof: a
 * cut, a partition or prices. Also the rates that banyan's trees reach. All rates are algorithm
 * bandwidths (total data size divided by time), exact, in the topology's unit.
 *
 * Neighbours: rate.h computes trees at compute nodes, planner/ all other trees; `banyan bound`
 * prints the results. One thread for each call.
 *
 * Sources: ForestColl, NSDI'26, section 5.2; Zhao and Krishnamurthy, "Bandwidth Optimal Pipeline
 * Schedule", appendices A and B; Zhou and Sun, "On the Computation Rate of All-Reduce".
 */
#ifndef BY_STUDY_BOUND_BOUND_H
#define BY_STUDY_BOUND_BOUND_H

#include "control/study/bound/rate.h"

/* A cut: a set of nodes that the data must leave, and the bandwidth of the links that leave it. */
struct by_bound_cut {
    uint32_t count;
    uint32_t *nodes;
    uint32_t compute_count; /* compute nodes in the set */
    struct by_fraction exiting;
};

/* Allgather and reduce-scatter: bound = compute nodes / inv_x. */
struct by_bound_shared {
    struct by_fraction bound, reached, inv_x;
    struct by_bound_cut cut;
};

/* One root of broadcast or reduce. */
struct by_bound_root {
    uint32_t node;
    struct by_fraction bound, reached; /* reached.num is 0 if no trees were made */
    uint32_t cut;                      /* index into `cuts` */
};

struct by_bound_rooted {
    uint32_t root_count;
    struct by_bound_root *roots; /* in the order of the topology file */
    uint32_t cut_count;
    struct by_bound_cut *cuts;
};

/*
 * What is proved about the rate of reduce-scatter followed by allgather: no schedule of this class
 * is faster.
 */
enum by_bound_proved {
    BY_PROVED_NOT = 0,
    BY_PROVED_CUT, /* any schedule: the rate equals the cut-set bound (half of the ranks, theorem 19a) */
    BY_PROVED_PROCESSES, /* schedules that add in compute nodes only (theorem 19b) */
    BY_PROVED_TREES      /* trees at compute nodes */
};

struct by_bound_allreduce {
    struct by_fraction cut_set; /* holds for every schedule: Zhou and Sun, theorem 1 */
    struct by_bound_cut cut;
    struct by_fraction processes;    /* corollary 18: holds if no switch adds or copies */
    uint32_t process;                /* the compute node that limits `processes` */
    struct by_fraction links;        /* Zhou and Sun, corollary 2.1: trees, if no switch adds or copies */
    struct by_fraction rs_ag, re_bc; /* num is 0 if no trees are known for the parts */
    uint32_t re_bc_root;
    enum by_bound_proved rs_ag_proved;
    struct by_bound_rate rate; /* trees at compute nodes are in rate.plan */
    /*
     * Trees at compute nodes and capable switches; NULL if no switch is capable. `sums` and
     * `copies` (by node) mark the switches at which the trees add and copy.
     */
    struct by_plan *in_network;
    bool *sums, *copies;
    uint32_t sum_count, copy_count;
};

struct by_bound {
    uint32_t compute_count;
    uint32_t capable_count; /* switches that can add or copy */
    /*
     * Why some rates are not reached (num 0): switches cannot be split off if a node is not
     * balanced. Empty if all rates are reached.
     */
    char unreached[sizeof(((struct by_problem *)0)->text)];
    struct by_bound_shared allgather, reduce_scatter;
    struct by_bound_rooted broadcast, reduce;
    struct by_bound_allreduce allreduce;
    double seconds;
};

struct by_bound_options {
    bool all_roots; /* make the trees of every broadcast and reduce root, not just one root for each bound */
    double time_limit_s;    /* 0: none; after it the call returns BY_ETIMEDOUT */
    struct by_stage *stage; /* receives progress, or NULL */
    /*
     * Checks every plan, on the fabric that the plan is for, before its rate counts. NULL: no
     * check. Returns 0, or a negative BY_E* with `problem` filled.
     */
    int (*check)(const struct by_plan *plan, const struct by_topology *topology, struct by_problem *problem);
};

/*
 * Computes all bounds. Returns 0 and `*bound`, which the caller frees with by_bound_free, or a
 * negative BY_E* with `problem` filled.
 */
int by_bound_make(const struct by_topology *topology, const struct by_bound_options *options,
                  struct by_bound **bound, struct by_problem *problem);
void by_bound_free(struct by_bound *bound);

/*
 * Copies a fabric without the multicast and aggregation capabilities of its switches. Node indices
 * stay the same.
 */
int by_bound_strip(const struct by_topology *topology, struct by_topology **stripped,
                   struct by_problem *problem);
/*
 * by_bound_reached returns the greatest rate that is reached. by_bound_least returns the least
 * bound: either the bound for every schedule or, if that is less, the bound for the trees that
 * could reach more. The optimum of allreduce is known up to the ratio of the two.
 */
struct by_fraction by_bound_reached(const struct by_bound_allreduce *allreduce);
struct by_fraction by_bound_least(const struct by_bound_allreduce *allreduce);

#endif
