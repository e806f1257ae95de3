/*
 * An independent check of plan files: own reading, own arithmetic (GMP rationals), nothing of
 * planner/. It takes the trees and the cut that a file claims, adds up what they do to every link,
 * and says how good the plan is. Nothing that the file says about itself is believed. One thread
 * for each call.
 */
#ifndef BY_VERIFY_VERIFY_H
#define BY_VERIFY_VERIFY_H

#include "control/fabric/topology.h"

enum by_verdict {
    BY_VERDICT_OPTIMAL =
        1,            /* the trees reach the bound: no schedule (or, see of_trees, no trees) is faster */
    BY_VERDICT_VALID, /* the trees are right; the bound allows more */
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
    struct by_verify_number bound;    /* what the plan's cut allows, or its proof where that allows less */
    struct by_verify_number ratio;    /* achieved / bound */
    uint32_t tree_count;
    bool of_trees;    /* the bound is that of the proof: no trees, up to a root and down again, carry more */
    bool hosts_only;  /* the plan is for switches that only forward: the bound is, too */
    char reason[400]; /* INVALID: the first violation */
};

/*
 * Checks the plan file at `path` (or `bytes` of text) against a topology. Returns 0 and a report,
 * or a negative BY_E* with `problem` filled when there is no plan to check: the file cannot be
 * read, is not JSON or not of this format.
 */
int by_verify_file(const struct by_topology *topology, const char *path, struct by_verify_report *report,
                   struct by_problem *problem);
int by_verify_text(const struct by_topology *topology, const char *text, size_t bytes,
                   struct by_verify_report *report, struct by_problem *problem);

#endif
