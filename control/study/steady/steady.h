/*
 * Steady states: the best throughput of a long series of scatters, gossips (personalised
 * all-to-all) or reductions on a fabric, and a periodic schedule that reaches it ("Optimizing the
 * steady-state throughput of scatter and reduce operations on heterogeneous platforms", Legrand,
 * Marchal, Robert; LMR below). A node sends, receives and computes at the same time (full overlap);
 * how its links share it is by_series_ports. All arithmetic is in rationals. Neighbours:
 * control/study/series holds the schedules, control/planner/lp solves the programs, control/verify
 * judges the result. One thread for each call.
 */
#ifndef BY_STUDY_STEADY_STEADY_H
#define BY_STUDY_STEADY_STEADY_H

#include "control/study/series/series.h"

/* Values of a reduction whose operator commutes (count): every set of them is a message of the
 * program. */
#define BY_STEADY_COMMUTATIVE_MAX 8u
/* Variables of a program (count): what rational arithmetic does in minutes. */
#define BY_STEADY_VARIABLES_MAX 200000u

/* The size of some messages; the last that fits counts. */
struct by_steady_size {
    uint32_t first, last; /* reduce: partial results of these values; scatter, gossip: `first` is the
                             receiver; BY_SERIES_NONE: all */
    struct by_fraction size;
};

/*
 * Reductions: of all best schedules, one that loads the busiest processor least. That often takes
 * more trees and a longer period: CHEAP takes it where the period is at most
 * BY_STEADY_BALANCE_PERIODS times as long.
 */
enum by_steady_balance { BY_BALANCE_NEVER = 1, BY_BALANCE_CHEAP, BY_BALANCE_ALWAYS };
#define BY_STEADY_BALANCE_PERIODS 16u

struct by_steady_problem {
    const struct by_topology *topology;
    enum by_series_operation operation;
    enum by_series_ports ports;
    bool commutative;               /* reduce */
    enum by_steady_balance balance; /* reduce */
    uint32_t source_count;          /* scatter: 1; gossip: those who send */
    const uint32_t *sources;
    uint32_t target_count; /* scatter, gossip: those who receive; reduce: 1 */
    const uint32_t *targets;
    uint32_t holder_count; /* reduce: the node of each value, in the operator's order */
    const uint32_t *holders;
    uint32_t size_count; /* 1 for messages that none of them names */
    const struct by_steady_size *sizes;
    double deadline; /* a time of CLOCK_MONOTONIC in seconds, 0 for none */
};

/*
 * The best schedule. 0; BY_EINVAL where there is none (a node cannot be reached, nobody can
 * compute), BY_ELIMIT where the program is too large, BY_ETIMEDOUT, each with `problem` filled.
 */
int by_steady_make(const struct by_steady_problem *problem, struct by_series **series,
                   struct by_problem *trouble);

/*
 * The same lanes in a given period (LMR section 4.6): each as often as the whole periods of it
 * allow, and again where ports and processors have room for whole operations; so a shorter schedule
 * that is slower by at most `lanes / period`, lanes being the most of one message (reduce: of all),
 * which `*loss` (initialised by the caller) receives. 0, or BY_EINVAL when the period is too short
 * for a single operation.
 */
int by_steady_fix(const struct by_series *series, const struct by_topology *topology, const mpz_t period,
                  struct by_series **fixed, mpq_t loss, struct by_problem *trouble);

#endif
