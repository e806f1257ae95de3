/*
 * All small fabrics of a kind, one after another, each with a number that reproduces it. Pure
 * functions: any thread.
 */
#ifndef TESTS_BOUND_GRAPHS_H
#define TESTS_BOUND_GRAPHS_H

#include "control/fabric/topology.h"

enum graph_kind {
    GRAPH_SYMMETRIC = 1, /* links in both directions between every two nodes, of bandwidth 0 to `most` */
    GRAPH_CLASS,    /* the same with links of bandwidth 1 to `most`: one of each class of isomorphic graphs */
    GRAPH_DIRECTED, /* arcs, of bandwidth 0 to `most` */
    GRAPH_SWITCHED  /* random: three or four hosts, one or two switches that only forward; with odd seeds the
                       two directions of a link differ */
};

/* Shapes of connected graphs of up to 6 nodes (count): 112. */
#define GRAPHS_SHAPES_MAX 128u

struct graphs {
    enum graph_kind kind;
    uint32_t nodes;
    int64_t most;
    const char *what; /* for messages */
    /* Set by graphs_count for GRAPH_CLASS: the links of each shape, as bits. */
    uint32_t shape_count;
    uint64_t shapes[GRAPHS_SHAPES_MAX];
};

/* Returns the number of fabrics to try; call it first. Fabrics that are not connected do not
 * count. */
uint64_t graphs_count(struct graphs *graphs);
/* Makes number `index`. Returns NULL if some node cannot reach another. */
struct by_topology *graphs_make(const struct graphs *graphs, uint64_t index);

#endif
