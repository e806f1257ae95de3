/*
 * All small fabrics of some kind, one after the other, each with a number that makes it again. Pure
 * functions: any thread.
 */
#ifndef TESTS_BOUND_GRAPHS_H
#define TESTS_BOUND_GRAPHS_H

#include "control/fabric/topology.h"

enum graph_kind {
    GRAPH_SYMMETRIC = 1, /* links both ways between each two nodes, of bandwidth 0 to `most` */
    GRAPH_CLASS,         /* the same, without 0 on the links that it has: one of each class
                    of equal shape */
    GRAPH_DIRECTED,      /* arcs, of bandwidth 0 to `most` */
    GRAPH_SWITCHED /* random: three or four hosts, one or two switches that only forward; odd seeds have links
                      that differ between their directions */
};

/* Shapes of connected graphs of up to 6 nodes (count): 112. */
#define GRAPHS_SHAPES_MAX 128u

struct graphs {
    enum graph_kind kind;
    uint32_t nodes;
    int64_t most;
    const char *what; /* for people */
    /* Filled by graphs_count, of GRAPH_CLASS: the links of each shape, as bits. */
    uint32_t shape_count;
    uint64_t shapes[GRAPHS_SHAPES_MAX];
};

/* How many there are to try; call it first. Those that are not in one part are none. */
uint64_t graphs_count(struct graphs *graphs);
/* Number `index`, or NULL where there is none such: not every node reaches every other. */
struct by_topology *graphs_make(const struct graphs *graphs, uint64_t index);

#endif
