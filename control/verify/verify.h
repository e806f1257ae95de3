/*
 * An independent check of plan files: it has its own reader and arithmetic (GMP rationals), and
 * uses nothing of planner/. It reads the trees and the cut that a file claims, adds up the loads on
 * every link, and reports the quality of the plan. It trusts no figure of the file. Each call runs
 * in one thread.
 */
#ifndef BY_VERIFY_VERIFY_H
#define BY_VERIFY_VERIFY_H

#include "control/fabric/topology.h"

enum by_verdict {
    BY_VERDICT_OPTIMAL = 1, /* no schedule (with of_trees: no other trees) is faster */
    BY_VERDICT_VALID,       /* the trees are valid; the bound allows more */
    BY_VERDICT_INVALID
};

/* An exact fraction in decimal digits, for printing. */
struct by_verify_number {
    char num[80];
    char den[80];
    double value;
};

struct by_verify_report {
    enum by_verdict verdict;
    struct by_verify_number achieved; /* total data size over time, in the topology's unit */
    struct by_verify_number bound;    /* the bound of the plan's cut, or of its proof if that is lower */
    struct by_verify_number ratio;    /* achieved / bound */
    uint32_t tree_count;
    uint64_t images;  /* a plan by classes: trees that each of them stands for; else 1 */
    bool of_trees;    /* the bound is from the proof: it holds for all trees, up to a root and down again */
    bool hosts_only;  /* the plan and the bound are for switches that only forward */
    char reason[400]; /* INVALID: the first violation */
};

/*
 * Checks the plan file at `path` (or `bytes` of text) against a topology. Returns 0 and a report,
 * or a negative BY_E* with `problem` filled when there is no plan to check: the file cannot be
 * read, is not JSON or is of another format.
 */
int by_verify_file(const struct by_topology *topology, const char *path, struct by_verify_report *report,
                   struct by_problem *problem);
int by_verify_text(const struct by_topology *topology, const char *text, size_t bytes,
                   struct by_verify_report *report, struct by_problem *problem);

#endif
