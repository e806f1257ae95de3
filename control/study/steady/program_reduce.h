/*
 * The inside of the program of reductions: its messages, the ways to combine them, and how much of
 * each is done. Neighbours: program_reduce.c builds and solves, reduction_tree.c takes trees out of
 * a solution, also out of one that somebody else found. One thread for each.
 */
#ifndef BY_STUDY_STEADY_PROGRAM_REDUCE_H
#define BY_STUDY_STEADY_PROGRAM_REDUCE_H

#include "control/study/steady/program.h"

/* `left` and `right` make `message`; the values of `left` begin first. */
struct by_steady_split {
    uint32_t message, left, right;
};

struct by_reduction {
    const struct by_steady_problem *problem;
    const struct by_platform *platform;
    uint32_t message_count;
    uint64_t *values; /* by message: the set */
    mpq_t *size;      /* by message */
    uint32_t whole;   /* the message that is the result */
    uint32_t split_count;
    struct by_steady_split *splits;
    uint32_t *first_split; /* by message, and the end */
    /* A solution, in a unit of time: */
    mpq_t throughput;
    mpq_t *sends; /* by link and message: messages */
    mpq_t *makes; /* by node and split: combinations */
};

/* With an empty solution. `problem` is one of a reduction that fits the limits. */
void by_reduction_make(struct by_reduction *reduction, const struct by_steady_problem *problem,
                       const struct by_platform *platform);
void by_reduction_free(struct by_reduction *reduction);
/* The number of the message of these values, that of the split of `message` whose left part is
 * `left`. */
uint32_t by_reduction_message(const struct by_reduction *reduction, uint64_t values);
uint32_t by_reduction_split(const struct by_reduction *reduction, uint32_t message, uint32_t left);
/*
 * Takes reduction trees out of the solution (LMR section 4.4), after sends in circles. Their
 * weights add up to the throughput. Each empties a send or a combination, so there are no more than
 * these. Uses the solution up: what is left is zero everywhere. False when the solution is none: a
 * tree ends where nothing comes from.
 */
bool by_reduction_trees(struct by_reduction *reduction, struct by_lanes *lanes);

#endif
