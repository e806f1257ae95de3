/*
 * Rooted connectivity: the maximum flow into a node from a source. The source has an arc of
 * capacity `root[v]` to every node v, and contracted nodes are part of the source. The optimum, the
 * oracle, tight sets and tree growth all reduce to this query, which they run once for each node.
 * The search therefore starts at the queried node and stops as soon as it meets the source, so that
 * a query costs only what it touches. The method is Dinic's, run backward. After a few rounds on
 * shortest paths, the search uses the source wherever it meets it; long fabrics (rings) need this.
 * Each by_reach belongs to one thread.
 */
#ifndef BY_PLANNER_FLOW_REACH_H
#define BY_PLANNER_FLOW_REACH_H

#include "control/planner/flow/mesh.h"

/* Limits of queries must stay below this. */
#define BY_REACH_MAX (INT64_MAX / 4)

struct by_reach_frame {
    uint32_t node;
    uint32_t half; /* from this node to the previous one */
    int64_t want;
    int64_t got;
};

struct by_reach {
    const struct by_mesh *net;
    int64_t *capacity; /* by half: a copy, changed by by_reach_set */
    int64_t *root;     /* by node: capacity from the source, changed by by_reach_set_root */
    bool *contracted;  /* by node: part of the source; callers may write it */
    /* The flow of the last query. */
    int64_t *left;      /* by half */
    int64_t *root_left; /* by node */
    uint32_t round;     /* marks the levels that are valid */
    uint64_t *level;    /* by node: round << 32 | distance to the queried node */
    uint32_t *current;  /* by node: the next neighbour to try */
    uint32_t *queue;    /* nodes labelled in the last round, in that order */
    uint32_t queue_count;
    struct by_reach_frame *frames;
    uint32_t touched_count, touched_room;
    bool late;         /* a query gave up: see by_reach_flow */
    uint32_t *touched; /* pairs, and nodes (highest bit set), whose values differ from their capacity */
};

/* Starts with the capacities of the net, without roots and without contracted nodes. Keeps a
 * pointer to the net, whose shape must not change. */
struct by_reach *by_reach_new(const struct by_mesh *net);
void by_reach_free(struct by_reach *reach);
/* Changes a capacity. Must not be called between a query and the evaluation of its cut. */
void by_reach_set(struct by_reach *reach, uint32_t half, int64_t capacity);
void by_reach_set_root(struct by_reach *reach, uint32_t node, int64_t amount);
/*
 * Returns the maximum flow into `node`, or `limit` as soon as the flow is at least that. `node`
 * must not be contracted. After the deadline of the net, or when searches have to end
 * (by_plan_late), every query returns `limit` at once and sets `reach->late`: loops over many
 * queries then end soon, and their callers discard the result.
 */
int64_t by_reach_flow(struct by_reach *reach, uint32_t node, int64_t limit);
/* Returns the size of the smallest set of nodes behind a minimum cut, after a query that ended
 * below its limit. The set is in `reach->queue`, the queried node first. */
static inline uint32_t by_reach_side(const struct by_reach *reach)
{
    return reach->queue_count;
}
/* Whether `node` is in that set. */
static inline bool by_reach_inside(const struct by_reach *reach, uint32_t node)
{
    return reach->level[node] >> 32 == reach->round;
}

#endif
