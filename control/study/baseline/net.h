/*
 * Routing for baselines. Parallel links are merged. Paths are chosen as in a network without a
 * planner: fewest hops, then widest, then least loaded. One thread for each net.
 */
#ifndef BY_STUDY_BASELINE_NET_H
#define BY_STUDY_BASELINE_NET_H

#include "control/fabric/topology.h"

#define BY_NET_NO_ARC UINT32_MAX

/* All links from one node to another, merged. */
struct by_net_arc {
    uint32_t from;
    uint32_t to;
    int64_t capacity; /* in 1/scale of the topology's unit */
    int64_t left;     /* capacity left for by_net_reach; starts as `capacity`, and the caller lowers it */
    int64_t load;     /* load of the routes of by_net_route; breaks ties */
};

struct by_baseline_net {
    const struct by_topology *topology;
    uint32_t node_count;
    uint32_t compute_count;
    uint32_t *compute; /* node index of each rank */
    uint32_t arc_count;
    struct by_net_arc *arcs; /* sorted by `from`, then `to` */
    uint32_t *first;         /* [node_count + 1]: first of the arcs that leave a node */
    bool symmetric;          /* every two nodes have equal capacity in both directions */
    /* Memory of the searches. */
    uint32_t *hops;
    uint32_t *queue;
    uint32_t *via; /* the arc that reached a node */
    int64_t *width;
};

/* With `transposed`, every arc is reversed, so paths run against the data. */
struct by_baseline_net *by_net_new(const struct by_topology *topology, bool transposed);
void by_net_free(struct by_baseline_net *net);
/* Returns the number of the arc from `from` to `to`, or BY_NET_NO_ARC. */
uint32_t by_net_arc(const struct by_baseline_net *net, uint32_t from, uint32_t to);
/* Clears all loads. */
void by_net_clear(struct by_baseline_net *net);
/*
 * Finds a path for `units` of load and adds them to the loads. Writes the path's nodes into `nodes`
 * (room for node_count) and returns their count, 0 if there is no path. With `left`, only arcs with
 * remaining capacity are used, and the remaining capacity is their width. Without it, compute nodes
 * relay if no path through switches exists.
 */
uint32_t by_net_route(struct by_baseline_net *net, uint32_t from, uint32_t to, int64_t units, bool left,
                      uint32_t *nodes);
/*
 * Searches from `from` through switches, on arcs with remaining capacity. Sets hops[v] (UINT32_MAX
 * if not reached) and width[v], the width of the widest path with that many hops.
 */
void by_net_reach(struct by_baseline_net *net, uint32_t from);

#endif
