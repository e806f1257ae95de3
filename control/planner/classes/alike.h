/* Which nodes of a fabric look alike (colour refinement), and whether parts of it are equal. Used
 * by symmetry.c only. Each object belongs to one thread. */
#ifndef BY_PLANNER_CLASSES_ALIKE_H
#define BY_PLANNER_CLASSES_ALIKE_H

#include <stdbool.h>
#include <stdint.h>

#include "control/planner/graph.h"

/* Numbers of parts: 0 for nodes that stay in place, else from 1. */
#define BY_PART_FIXED   0u
#define BY_PART_UNKNOWN UINT32_MAX

struct by_alike {
    const struct by_graph *graph;
    uint32_t count;
    uint32_t *nodes;  /* the nodes that are looked at, ascending */
    bool *present;    /* by node: is it one of them? */
    uint64_t *colour; /* by node: nodes of different colours are not alike */
    uint32_t *part;   /* by node: the caller's division into parts */
    uint32_t *twin;   /* by node of a part: the node of part 1 that it corresponds to */
    /* private */
    uint64_t *fine, *fresh;
    uint32_t set_mask;
    uint64_t *set;
};

/* Starts with all nodes of the graph. */
void by_alike_init(struct by_alike *alike, const struct by_graph *graph);
void by_alike_free(struct by_alike *alike);
/* Sets the colours. Nodes with different values of `apart` (by node) are not alike. */
void by_alike_colour(struct by_alike *alike, const uint32_t *apart);
/* Whether the parts 1 to `parts` are equal, where fixed nodes correspond to themselves; sets
 * `twin`. Exact when it returns true: every link has been compared. Parts that are equal, but not
 * in the order of their nodes, may be missed. */
bool by_alike_parts(struct by_alike *alike, uint32_t parts, const uint32_t *apart);

#endif
