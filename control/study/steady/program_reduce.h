/*
 * Data of the reduction program: messages, the ways to combine them, and how often each is done.
 * Neighbours: program_reduce.c builds and solves the program; reduction_tree.c extracts trees from
 * a solution, also from one computed elsewhere. One thread for each.
 */
#ifndef BY_STUDY_STEADY_PROGRAM_REDUCE_H
#define BY_STUDY_STEADY_PROGRAM_REDUCE_H

#include "control/study/steady/program.h"

/* `left` and `right` combine to `message`; `left` contains the first value. */
struct by_steady_split {
    uint32_t message, left, right;
};

struct by_reduction {
    const struct by_steady_problem *problem;
    const struct by_platform *platform;
    uint32_t message_count;
    uint64_t *values; /* by message: set of values */
    mpq_t *size;      /* by message */
    uint32_t whole;   /* the message of the complete result */
    uint32_t split_count;
    struct by_steady_split *splits;
    uint32_t *first_split; /* by message, plus an end: index of its first split */
    /* A solution, per unit of time. */
    mpq_t throughput;
    mpq_t *sends; /* by link and message: messages sent */
    mpq_t *makes; /* by node and split: combinations done */
};

/* Initialises with an empty solution. `problem` must be a reduction within the limits. */
void by_reduction_make(struct by_reduction *reduction, const struct by_steady_problem *problem,
                       const struct by_platform *platform);
void by_reduction_free(struct by_reduction *reduction);
/*
 * Return the number of the message with these values, and the number of the split of `message` with
 * left part `left`.
 */
uint32_t by_reduction_message(const struct by_reduction *reduction, uint64_t values);
uint32_t by_reduction_split(const struct by_reduction *reduction, uint32_t message, uint32_t left);
/*
 * Extracts reduction trees from the solution (LMR section 4.4) after removing circular sends. The
 * weights of the trees sum to the throughput. Each tree empties a send or a combination, which
 * bounds their number. Afterwards the solution is all zero. Returns false if the solution is
 * invalid: a tree needs a message that no task provides.
 */
bool by_reduction_trees(struct by_reduction *reduction, struct by_lanes *lanes);

#endif
