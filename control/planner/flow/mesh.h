/*
 * A sparse directed graph with integer capacities. The two directions between two nodes are the two
 * halves of one pair: half 2p runs from its lower node to its higher node, half 2p + 1 runs back.
 * The reverse of half h is therefore h ^ 1. Neighbours: reach.h computes flows in it; planner/
 * builds and changes it. Each net belongs to one thread.
 */
#ifndef BY_PLANNER_FLOW_MESH_H
#define BY_PLANNER_FLOW_MESH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct by_mesh_arc {
    uint32_t from;
    uint32_t to;
    int64_t capacity;
};

/* A neighbour, and the half from it to this node. */
struct by_near {
    uint32_t node;
    uint32_t half;
};

struct by_mesh {
    uint32_t node_count;
    uint32_t pair_count;
    uint32_t *tail;       /* by half */
    int64_t *capacity;    /* by half */
    uint32_t *first;      /* by node, plus one: index of its first neighbour in `near` */
    struct by_near *near; /* each node's neighbours, in ascending order of node */
    /* a time of by_plan_clock after which flows in this net give up (reach.h); 0 for none */
    double deadline;
};

/* Builds the net of these arcs. Arcs from a node to itself are left out; parallel arcs are added
 * up. */
struct by_mesh *by_mesh_new(uint32_t node_count, const struct by_mesh_arc *arcs, size_t arc_count);
void by_mesh_free(struct by_mesh *net);
static inline uint32_t by_mesh_head(const struct by_mesh *net, uint32_t half)
{
    return net->tail[half ^ 1];
}
/* Sums of the capacities into and out of `node`. */
int64_t by_mesh_entering(const struct by_mesh *net, uint32_t node);
int64_t by_mesh_leaving(const struct by_mesh *net, uint32_t node);
/* Sum of the capacities into the set of nodes with inside[node]. */
int64_t by_mesh_entering_set(const struct by_mesh *net, const bool *inside);
/* Returns the half from `from` to `to`, or UINT32_MAX when the nodes are not neighbours. */
uint32_t by_mesh_find(const struct by_mesh *net, uint32_t from, uint32_t to);
/* Returns the hops from `start` to the farthest node that it reaches. */
uint32_t by_mesh_farthest(const struct by_mesh *net, uint32_t start);

#endif
