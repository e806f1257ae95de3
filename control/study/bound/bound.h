/*
 * What no schedule on a fabric can beat, for each collective, with the cut, the partition or the
 * prices that say so, and the rates that trees of banyan reach. All rates are algorithm bandwidths
 * (total data size over time), exact, in the topology's unit. Neighbours: rate.h for trees at
 * compute nodes, planner/ for all others; `banyan bound` prints it. One thread for each call.
 *
 * ForestColl, NSDI'26, section 5.2; Zhao and Krishnamurthy, "Bandwidth Optimal Pipeline Schedule",
 * appendices A and B; Zhou and Sun, "On the Computation Rate of All-Reduce".
 */
#ifndef BY_STUDY_BOUND_BOUND_H
#define BY_STUDY_BOUND_BOUND_H

#include "control/study/bound/rate.h"

/* Nodes that the data must leave, and the bandwidth of the links that leave them. */
struct by_bound_cut {
    uint32_t count;
    uint32_t *nodes;
    uint32_t compute_count; /* of them */
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
    struct by_fraction bound, reached; /* reached: num 0 where no trees were made */
    uint32_t cut;                      /* in `cuts` */
};

struct by_bound_rooted {
    uint32_t root_count;
    struct by_bound_root *roots; /* in the order of the file */
    uint32_t cut_count;
    struct by_bound_cut *cuts;
};

/* What reduce-scatter and then allgather cannot be beaten by. */
enum by_bound_proved {
    BY_PROVED_NOT = 0,
    BY_PROVED_CUT, /* no schedule at all: it reaches the cut-set bound (half of the ranks, theorem 19a) */
    BY_PROVED_PROCESSES, /* no schedule that sums in compute nodes alone (theorem 19b) */
    BY_PROVED_TREES      /* no trees at compute nodes */
};

struct by_bound_allreduce {
    struct by_fraction cut_set; /* Zhou and Sun, theorem 1: every schedule */
    struct by_bound_cut cut;
    struct by_fraction processes;    /* corollary 18: while no switch sums or copies */
    uint32_t process;                /* the node that limits it */
    struct by_fraction links;        /* Zhou and Sun, corollary 2.1: trees, while no switch sums or copies */
    struct by_fraction rs_ag, re_bc; /* num 0 where no trees are known for their parts */
    uint32_t re_bc_root;
    enum by_bound_proved rs_ag_proved;
    struct by_bound_rate rate; /* trees at compute nodes: rate.plan */
    /* Trees at compute nodes and capable switches; NULL where there is none such. Its switches that
     * sum and that copy are marked by node. */
    struct by_plan *in_network;
    bool *sums, *copies;
    uint32_t sum_count, copy_count;
};

struct by_bound {
    uint32_t compute_count;
    uint32_t capable_count; /* switches that sum or copy */
    /* Why some rates are not reached (num 0): switches cannot be split off where a node is not
     * balanced; empty where all are. */
    char unreached[sizeof(((struct by_problem *)0)->text)];
    struct by_bound_shared allgather, reduce_scatter;
    struct by_bound_rooted broadcast, reduce;
    struct by_bound_allreduce allreduce;
    double seconds;
};

struct by_bound_options {
    bool all_roots;      /* make the trees of every root of broadcast and reduce, else one for each bound */
    double time_limit_s; /* 0 = none; past it BY_ETIMEDOUT */
    struct by_stage *stage; /* where progress is told; NULL: nowhere */
    /* Asked of every plan before its rate counts, with the fabric that it is for (NULL: nobody is):
     * 0, or a negative BY_E* with `problem` filled. */
    int (*check)(const struct by_plan *plan, const struct by_topology *topology, struct by_problem *problem);
};

/* Finds all bounds. Returns 0 and bounds that the caller frees, or a negative BY_E* with `problem`
 * filled. */
int by_bound_make(const struct by_topology *topology, const struct by_bound_options *options,
                  struct by_bound **bound, struct by_problem *problem);
void by_bound_free(struct by_bound *bound);

/* The same fabric when no switch multicasts or aggregates; indices are the same. */
int by_bound_strip(const struct by_topology *topology, struct by_topology **stripped,
                   struct by_problem *problem);
/* The greatest rate that is reached, and the least bound of every schedule or, where that is less,
 * of the trees that could reach more: reached / bound is what is known of allreduce. */
struct by_fraction by_bound_reached(const struct by_bound_allreduce *allreduce);
struct by_fraction by_bound_least(const struct by_bound_allreduce *allreduce);

#endif
