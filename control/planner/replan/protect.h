/*
 * Plans for failures that have not happened: for each single link (cable), each single switch, or
 * both, a complete set of trees that avoids it, and its rate beside the optimum of the fabric that
 * remains. A set consists of trees of the plan that avoid the failure, weighed again, or of trees
 * of other sets, or of backup trees that are made for it. All sets share one list of trees, so a
 * tree counts once however many sets use it. Each call runs in one thread.
 */
#ifndef BY_PLANNER_REPLAN_PROTECT_H
#define BY_PLANNER_REPLAN_PROTECT_H

#include "control/plan/tree_list.h"
#include "control/planner/planner.h"

struct by_protect_request {
    bool links, switches;
    struct by_fraction part; /* of the optimum that must remain, at most 1; 1: as much as possible */
};

/* A tree of `trees`, or the two trees of a pair. */
struct by_protect_unit {
    uint32_t first, width; /* its first tree; 2 for a pair */
    uint64_t hash;         /* of root, use and paths */
    uint32_t users;        /* the number of failures whose sets contain it */
};

struct by_protect_part {
    uint32_t unit;
    struct by_fraction weight;
};

/* A complete set of trees. */
struct by_protect_set {
    uint32_t count;
    struct by_protect_part *parts;
    struct by_fraction rate; /* data over time, in the topology's unit; num 0: there is no set */
};

enum by_protect_state {
    BY_PROTECT_COVERED = 1,
    BY_PROTECT_CUT,    /* the failed part is the only way of a rank */
    BY_PROTECT_REFUSED /* the planner refuses the fabric that remains */
};

struct by_protect_failure {
    bool is_switch;
    uint32_t what; /* a node, or a link of the topology */
    enum by_protect_state state;
    uint32_t alone;          /* CUT: a rank without another way (node) */
    char *reason;            /* REFUSED: the planner's text */
    struct by_plan *bound;   /* COVERED: optimum and its proof, on the fabric that remains */
    struct by_fraction part; /* COVERED: rate of the set over this optimum, at most 1 */
    struct by_protect_set set;
    uint32_t added; /* units that were made for it */
};

struct by_protect {
    const struct by_topology *topology; /* these three are the caller's, and must outlive this */
    const struct by_plan_options *options;
    const struct by_plan *plan;
    struct by_protect_request request;
    struct by_protect_set own; /* the trees of the plan */
    struct by_tree_list trees; /* of all sets, with the node numbers of the whole fabric */
    uint32_t unit_count, unit_room, own_units;
    struct by_protect_unit *units; /* the first `own_units` are those of the plan */
    uint32_t slot_count, *slots;   /* hash table: unit + 1 */
    uint32_t failure_count;
    struct by_protect_failure *failures; /* switches, then links */
};

/*
 * Finds a set for each failure. `options` are those of `plan`, without latency_aware. Returns 0,
 * or BY_EINVAL with `problem` filled when the fabric has no such part. The caller frees
 * `*protect`. Takes about as long as one plan for each failure.
 */
int by_protect_make(const struct by_topology *topology, const struct by_plan_options *options,
                    const struct by_plan *plan, const struct by_protect_request *request,
                    struct by_protect **protect, struct by_problem *problem);
void by_protect_free(struct by_protect *protect);
/* Returns the covered failure with the least part, or NULL. */
const struct by_protect_failure *by_protect_worst(const struct by_protect *protect);
/* The number of failures in a state. */
uint32_t by_protect_count(const struct by_protect *protect, enum by_protect_state state);
/* The number of trees (of a pair, both) beside those of the plan that some set uses. */
uint32_t by_protect_backups(const struct by_protect *protect);
/*
 * Makes the fabric that remains after a covered failure, and the plan of its set there, with node
 * numbers and proof of that fabric. The caller frees both. Returns 0, or BY_ESTATE where it is not
 * covered.
 */
int by_protect_plan(const struct by_protect *protect, uint32_t failure, struct by_topology **left,
                    struct by_plan **plan);
/*
 * Makes a plan with the trees of the plan and of all sets: what tables hold. The weights of trees
 * of one root are equal; they are not those of any set. The caller frees it.
 */
int by_protect_all(const struct by_protect *protect, struct by_plan **plan);

#endif
