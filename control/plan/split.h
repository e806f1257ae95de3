/*
 * Switch removal: replaces capacity u->w->t through a switch by logical capacity u->t, without losing a tree.
 * ForestColl, NSDI'26, section 5.3, algorithm 3 and theorem 6. A whole switch is tried at once first, spread
 * evenly so that trees stay shallow, and checked by one oracle; violated cuts are learned and kept; the exact
 * amounts of theorem 6 are the way that always succeeds. One thread for each graph.
 */
#ifndef BY_PLAN_SPLIT_H
#define BY_PLAN_SPLIT_H

#include <stdbool.h>

#include "control/plan/strand.h"

struct by_split {
    uint32_t node_count;
    int64_t *capacity;          /* changed in place */
    const int64_t *roots;       /* trees that start at each node */
    const bool *targets;        /* nodes that all trees must still reach */
    const bool *remove;         /* switches to remove; none of them is a target or a root */
    const bool *compute;        /* by node: only guides the choice of pairs */
    struct by_strands *strands; /* changed along with `capacity` */
    double deadline;            /* a time of by_plan_clock, 0 for none */
};

/* Every node must have as much capacity in as out, and by_oracle_check must pass. Both hold afterwards, and
 * removed switches have no capacity left. BY_ETIMEDOUT when the deadline passes first. */
int by_split_run(struct by_split *split);

#endif
