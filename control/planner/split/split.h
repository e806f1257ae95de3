/*
 * Switch removal: replaces capacity u->w->t through a switch by logical capacity u->t, without
 * losing a tree. ForestColl, NSDI'26, section 5.3, algorithm 3 and theorem 6. All switches of a
 * piece are first spread evenly, so that trees stay shallow, and checked by one oracle; a violated
 * cut is repaired by exchanging pairs across it (split_even.c). Where that does not end, switch by
 * switch, with learned cuts and the exact amounts of theorem 6, the way that always succeeds
 * (split_exact.c). One thread for each piece.
 */
#ifndef BY_PLANNER_SPLIT_SPLIT_H
#define BY_PLANNER_SPLIT_SPLIT_H

#include "control/planner/split/laminar.h"

/* Joins `amount` of u->w and w->t to u->t; dropped where u == t. Local nodes of the piece. */
struct by_join {
    uint32_t from;
    uint32_t through;
    uint32_t to;
    int64_t amount;
};

struct by_split {
    uint32_t node_count;
    int64_t *capacity;    /* [from * node_count + to], as it is after all joins */
    const int64_t *roots; /* trees that start at each node */
    bool *targets;        /* nodes that all trees must still reach */
    bool *remove;         /* switches to remove; none of them is a target or a root */
    bool *compute;        /* by node: stays, and holds compute nodes; only guides the choice of pairs */
    uint32_t outside;     /* what enters from here should not leave to here again; UINT32_MAX for none */
    double deadline;      /* a time of by_plan_clock, 0 for none */
    uint32_t join_count, join_room;
    struct by_join *joins; /* in the order in which they are done */
};

/* A piece before its switches are removed. Only for pieces that have some to remove. */
void by_split_make(struct by_split *split, const struct by_piece *piece, double deadline);
void by_split_free(struct by_split *split);
/* Every node must have as much capacity in as out, and the oracle must pass. Both hold afterwards,
 * and removed switches have no capacity left. BY_ETIMEDOUT when the deadline passes first. */
int by_split_run(struct by_split *split);
/* The second way alone. */
int by_split_exactly(struct by_split *split);
/* Records a join and changes the capacities. */
void by_split_join(struct by_split *split, uint32_t u, uint32_t w, uint32_t t, int64_t amount);
/* Hops from the nearest node that stays: switches far from it are removed first, so that their
 * neighbours are pairs of lower switches. Fills `order` with the switches to remove, in order;
 * returns their count. */
uint32_t by_split_order(const struct by_split *split, uint32_t *level, uint32_t *order);

#endif
