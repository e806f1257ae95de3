/*
 * Switch removal: replaces capacity u->w->t through a switch by logical capacity u->t, without
 * losing a tree. ForestColl, NSDI'26, section 5.3, algorithm 3 and theorem 6. First, all switches
 * of a piece are spread evenly, which keeps trees shallow, and one oracle call checks the result. A
 * violated cut is repaired by exchanging pairs across it (split_even.c). If that does not
 * terminate, switches are removed one by one, with learned cuts and the exact amounts of theorem 6,
 * which always succeeds (split_exact.c). Each piece belongs to one thread.
 */
#ifndef BY_PLANNER_SPLIT_SPLIT_H
#define BY_PLANNER_SPLIT_SPLIT_H

#include "control/planner/split/laminar.h"

/* Joins `amount` of u->w and w->t to u->t; dropped if u == t. Nodes are local nodes
 * of the piece. */
struct by_join {
    uint32_t from;
    uint32_t through;
    uint32_t to;
    int64_t amount;
};

struct by_split {
    uint32_t node_count;
    int64_t *capacity;    /* [from * node_count + to], after all joins so far */
    const int64_t *roots; /* trees that start at each node */
    bool *targets;        /* nodes that all trees must still reach */
    bool *remove;         /* switches to remove; none of them is a target or a root */
    bool *compute;        /* by node: remains, and holds compute nodes; only guides the choice of pairs */
    uint32_t outside;     /* capacity from here should not return here; UINT32_MAX for none */
    double deadline;      /* a time of by_plan_clock, 0 for none */
    uint32_t join_count, join_room;
    struct by_join *joins; /* in the order of execution */
};

/* Starts with a piece before its switches are removed. The piece must have switches to remove. */
void by_split_make(struct by_split *split, const struct by_piece *piece, double deadline);
void by_split_free(struct by_split *split);
/* Removes the switches. Every node must have as much capacity in as out, and the oracle must pass.
 * Both hold afterwards, and removed switches have no capacity left. BY_ETIMEDOUT when the deadline
 * passes first. */
int by_split_run(struct by_split *split);
/* Removes the switches one by one only (split_exact.c). */
int by_split_exactly(struct by_split *split);
/* Records a join and changes the capacities. */
void by_split_join(struct by_split *split, uint32_t u, uint32_t w, uint32_t t, int64_t amount);
/* Sets `level`: hops from the nearest node that remains. Switches far from such nodes are removed
 * first, so that their neighbours are paired with lower switches. Fills `order` with the switches
 * to remove, in order; returns their count. */
uint32_t by_split_order(const struct by_split *split, uint32_t *level, uint32_t *order);

#endif
