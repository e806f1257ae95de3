/*
 * Rooted connectivity: how much can reach a node from a source that has an arc to every node
 * (`root`), and of which some nodes are part (contracted). This is the one question behind the
 * optimum, the oracle, tight sets and tree growth, asked once for each node; so the search starts
 * at the node, stops as soon as it meets the source, and a query costs what it touches. Dinic's
 * method, backward; after a few rounds on shortest ways the source is taken wherever it is met,
 * which long fabrics (rings) need. One thread for each.
 */
#ifndef BY_PLANNER_FLOW_REACH_H
#define BY_PLANNER_FLOW_REACH_H

#include "control/planner/flow/mesh.h"

/* Flows asked for stay below this. */
#define BY_REACH_MAX (INT64_MAX / 4)

struct by_reach_frame {
    uint32_t node;
    uint32_t half; /* from this node to the one before it */
    int64_t want;
    int64_t got;
};

struct by_reach {
    const struct by_mesh *net;
    int64_t *capacity; /* by half: a copy, changed by by_reach_set */
    int64_t *root;     /* by node: capacity from the source, changed by by_reach_set_root */
    bool *contracted;  /* by node: part of the source; write freely */
    /* The flow of the last query. */
    int64_t *left;      /* by half */
    int64_t *root_left; /* by node */
    uint32_t round;     /* marks the levels that are valid */
    uint64_t *level;    /* by node: round << 32 | distance to the node asked for */
    uint32_t *current;  /* by node: the neighbour to try next */
    uint32_t *queue;    /* nodes labelled in the last round, in order */
    uint32_t queue_count;
    struct by_reach_frame *frames;
    uint32_t touched_count, touched_room;
    uint32_t *touched; /* pairs, and nodes with the highest bit set, that differ from their capacity */
};

/* Capacities of the net, no roots, nothing contracted. The net is kept and must not change its
 * shape. */
struct by_reach *by_reach_new(const struct by_mesh *net);
void by_reach_free(struct by_reach *reach);
/* Changes a capacity. Not between a query and what is asked about it. */
void by_reach_set(struct by_reach *reach, uint32_t half, int64_t capacity);
void by_reach_set_root(struct by_reach *reach, uint32_t node, int64_t amount);
/* The most that reaches `node`, or `limit` once that is known to be possible. `node` is not
 * contracted. */
int64_t by_reach_flow(struct by_reach *reach, uint32_t node, int64_t limit);
/* After a query that ended below its limit: the smallest set of nodes behind a minimum cut; in
 * `reach->queue`, the node asked for first. Returns the count. */
static inline uint32_t by_reach_side(const struct by_reach *reach)
{
    return reach->queue_count;
}
/* Whether `node` is on that side. */
static inline bool by_reach_inside(const struct by_reach *reach, uint32_t node)
{
    return reach->level[node] >> 32 == reach->round;
}

#endif
