/*
 * Routing for baselines: the fabric with parallel links added up, and paths as a network without a
 * planner would choose them: fewest hops, then widest, then least loaded so far. One thread for
 * each net.
 */
#ifndef BY_STUDY_BASELINE_NET_H
#define BY_STUDY_BASELINE_NET_H

#include "control/fabric/topology.h"

#define BY_NET_NO_ARC UINT32_MAX

/* All links from one node to another, as one. */
struct by_net_arc {
    uint32_t from;
    uint32_t to;
    int64_t capacity; /* in 1/scale of the topology's unit */
    int64_t left;     /* what by_net_reach may use: the caller lowers it; starts as the capacity */
    int64_t load;     /* what by_net_route has laid: breaks ties */
};

struct by_baseline_net {
    const struct by_topology *topology;
    uint32_t node_count;
    uint32_t compute_count;
    uint32_t *compute; /* node index of each rank */
    uint32_t arc_count;
    struct by_net_arc *arcs; /* in the order of `from`, then `to` */
    uint32_t *first;         /* [node_count + 1]: the arcs that leave a node */
    bool symmetric;          /* each two nodes have equal capacity both ways */
    /* Memory of the searches. */
    uint32_t *hops;
    uint32_t *queue;
    uint32_t *via; /* the arc by which a node was reached */
    int64_t *width;
};

/* With `transposed`, every arc is turned round: paths then run against the data. */
struct by_baseline_net *by_net_new(const struct by_topology *topology, bool transposed);
void by_net_free(struct by_baseline_net *net);
/* Number of the arc from `from` to `to`, or BY_NET_NO_ARC. */
uint32_t by_net_arc(const struct by_baseline_net *net, uint32_t from, uint32_t to);
/* Forgets what has been laid. */
void by_net_clear(struct by_baseline_net *net);
/*
 * A path for `units` of load: writes its nodes into `nodes` (node_count of room) and returns their
 * count, 0 when there is none. With `left`, only arcs that have something left are used, and what
 * is left is their width; without, compute nodes relay where no path through switches exists. Adds
 * the units to the loads.
 */
uint32_t by_net_route(struct by_baseline_net *net, uint32_t from, uint32_t to, int64_t units, bool left,
                      uint32_t *nodes);
/*
 * Searches from `from` through switches, on arcs that have something left: afterwards hops[v]
 * (UINT32_MAX where not reached) and width[v], the widest path of so few hops.
 */
void by_net_reach(struct by_baseline_net *net, uint32_t from);

#endif
