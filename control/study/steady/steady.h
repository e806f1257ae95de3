/*
 * Steady states: the best throughput of a long series of scatters, gossips (personalised
 * all-to-all) or reductions on a fabric, and a periodic schedule that reaches it. A node sends,
 * receives and computes at the same time (full overlap); by_series_ports defines how its links
 * share it. All arithmetic is rational.
 *
 * Neighbours: control/study/series stores the schedules, control/planner/lp solves the programs,
 * control/verify checks the results. One thread for each call.
 *
 * Source: "Optimizing the steady-state throughput of scatter and reduce operations on heterogeneous
 * platforms" (Legrand, Marchal, Robert), called LMR in the comments.
 */
#ifndef BY_STUDY_STEADY_STEADY_H
#define BY_STUDY_STEADY_STEADY_H

#include "control/study/series/series.h"

/*
 * Most values of a reduction with a commutative operator (count) if every set of values is a
 * message of the program: where sizes of partial results differ, or nodes without a value take time
 * to combine.
 */
#define BY_STEADY_COMMUTATIVE_MAX 8u
/* Beyond, most nodes without a value that combine (count): every set of them is tried. */
#define BY_STEADY_OPTIONAL_MAX 12u
/* From this number of variables on (count), the program of a reduction has one for each tree, and
 * generates trees. Below it the whole program is solved in a second, and its trees are balanced. */
#define BY_STEADY_TREES_FROM 4000u
/* Most nodes that combine, if trees are generated (count): a tree then takes 0.5 s. */
#define BY_STEADY_PLACES_MAX 512u
/* Most variables of a program (count). Rational arithmetic solves such a program in minutes. */
#define BY_STEADY_VARIABLES_MAX 200000u
/* From this number of variables on (count), alike ones of a scatter, gossip or exchange are one.
 * Below it the program is solved as it is: such solutions use fewer routes. */
#define BY_STEADY_CLASSES_FROM 6000u

/* The size of a group of messages. If several entries match a message, the last one applies. */
struct by_steady_size {
    /*
     * reduce: partial results of the values `first` to `last`; scatter, gossip: `first` is the
     * receiver; BY_SERIES_NONE: all
     */
    uint32_t first, last;
    struct by_fraction size;
};

/*
 * Whether to choose, among all optimal schedules of a reduction, one with the least load on the
 * busiest processor. That often requires more trees and a longer period. CHEAP accepts it if the
 * period is at most BY_STEADY_BALANCE_PERIODS times as long, and not for generated trees.
 */
enum by_steady_balance { BY_BALANCE_NEVER = 1, BY_BALANCE_CHEAP, BY_BALANCE_ALWAYS };
#define BY_STEADY_BALANCE_PERIODS 16u

struct by_steady_problem {
    const struct by_topology *topology;
    enum by_series_operation operation;
    enum by_series_ports ports;
    bool commutative;               /* reduce */
    enum by_steady_balance balance; /* reduce */
    uint32_t source_count;          /* scatter: 1; gossip, exchange: the senders */
    const uint32_t *sources;
    uint32_t target_count; /* scatter, gossip, exchange: the receivers; reduce: 1 */
    const uint32_t *targets;
    uint32_t holder_count; /* reduce: the node of each value, in the operator's order */
    const uint32_t *holders;
    uint32_t size_count; /* messages that no entry covers have size 1 */
    const struct by_steady_size *sizes;
    /* exchange: the sizes of messages, by source and target (source x target_count + target); 0:
     * there is none. What a node has for itself does not move. */
    const struct by_fraction *matrix;
    uint32_t classes_from; /* instead of BY_STEADY_CLASSES_FROM; 0: that */
    uint32_t trees_from;   /* instead of BY_STEADY_TREES_FROM; 0: that */
    double deadline;       /* CLOCK_MONOTONIC time in seconds; 0: none */
};

/*
 * Computes the best schedule. Returns 0, or with `problem` filled: BY_EINVAL if there is none (a
 * node cannot be reached, or no node can compute), BY_ELIMIT if the program is too large,
 * BY_ETIMEDOUT.
 */
int by_steady_make(const struct by_steady_problem *problem, struct by_series **series,
                   struct by_problem *trouble);

/* Whether balance CHEAP is as NEVER: the program of a reduction is so large that its trees are
 * generated. */
bool by_steady_never_balances(const struct by_steady_problem *problem);

/*
 * Puts the same lanes into a given period (LMR section 4.6). Each lane runs as often as the period
 * allows after rounding down, plus once more where ports and processors have room for whole
 * operations. The schedule is shorter, and slower by at most `lanes / period`; `lanes` is the
 * largest number of lanes of one message (reduce: of all). `*loss` (initialised by the caller)
 * receives this bound. Returns 0, or BY_EINVAL if the period is too short for one operation.
 */
int by_steady_fix(const struct by_series *series, const struct by_topology *topology, const mpz_t period,
                  struct by_series **fixed, mpq_t loss, struct by_problem *trouble);

#endif
