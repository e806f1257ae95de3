/*
 * Classes of alike flows. A multicommodity flow has a variable for each pair of a root and a link;
 * on regular fabrics most of these pairs are alike, and some optimal solution has the same value
 * for all pairs of a class. Its linear program has one variable for each class.
 *
 * Colour refinement finds the classes: it distinguishes pairs only by what the program sees, and
 * needs no automorphisms. The classes are checked exactly; they are equitable partitions of the
 * program's rows and columns, which is what the reduction requires (Grohe, Kersting, Mladenov,
 * Selman, "Dimension reduction via colour refinement", ESA 2014, theorem 1.1). Private to
 * control/study/steady. One thread for each call.
 */
#ifndef BY_STUDY_STEADY_FLOW_CLASSES_H
#define BY_STUDY_STEADY_FLOW_CLASSES_H

#include "control/study/steady/program.h"

/* The flows of a program: from each root to the nodes for which it has data. */
struct by_flow_pairs {
    const struct by_platform *platform;
    const struct by_resources *resources;
    uint32_t root_count;
    const uint32_t *roots;
    const struct by_fraction *sizes; /* by root and node: data for the node; 0: none */
    const bool *idle;                /* by root: has no data for any node */
    double deadline;                 /* time of by_plan_clock, 0: none */
};

/* A partition of things into classes, numbered by their first members. */
struct by_class_list {
    uint32_t count, room;
    uint32_t *of;    /* by thing: its class, or BY_SERIES_NONE for a thing without one */
    uint32_t *first; /* by class: its first member */
    uint32_t *size;  /* by class: members */
};

struct by_flow_classes {
    /* Pairs of a root and a link, root x links + link. Links into the root, and those of an idle
     * root, have no class. */
    struct by_class_list flows;
    /* Pairs of a root and a node, root x nodes + node; likewise. */
    struct by_class_list places;
    struct by_class_list resources;
};

/* Makes classes of one member each (the program as it is). */
void by_flow_classes_single(struct by_flow_classes *classes, const struct by_flow_pairs *pairs);
/*
 * Finds classes of alike flows. Returns 0, or BY_ETIMEDOUT. In either case the caller frees with
 * by_flow_classes_free.
 */
int by_flow_classes_find(struct by_flow_classes *classes, const struct by_flow_pairs *pairs);
void by_flow_classes_free(struct by_flow_classes *classes);

#endif
