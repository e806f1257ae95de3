/*
 * Routes between alike parts of a fabric: a tree goes from a node of one part to the corresponding
 * node of another through switches that the level leaves in place, up a route and down the same
 * route on the other side. A tree of a class has a known number of such edges at each level; they
 * are distributed over the routes so that no link is loaded much more than the others. Used by
 * classes.c only. Each object belongs to one thread.
 */
#ifndef BY_PLANNER_CLASSES_ROUTES_H
#define BY_PLANNER_CLASSES_ROUTES_H

#include "control/planner/classes/symmetry.h"

/* Hops of a route, from a compute node to a switch in place (count). */
#define BY_ROUTE_HOPS_MAX 7u

struct by_route {
    uint32_t hops;
    uint32_t node[BY_ROUTE_HOPS_MAX + 1]; /* representatives; the last is not moved by the level */
    uint32_t half[BY_ROUTE_HOPS_MAX];     /* of the graph's net, from each node to the next */
    uint64_t edges;                       /* edges of the trees of this class that take the route */
};

/* The routes of one compute node at one level. */
struct by_route_list {
    uint32_t count, room;
    struct by_route *routes;
};

struct by_routes {
    const struct by_graph *graph;
    const struct by_symmetry *symmetry;
    bool both_ways; /* trees carry up as well: each edge loads its links in both directions */
    /* the levels in the order in which trees pass them: any order gives trees, with other loads */
    uint32_t turn[BY_ROTATIONS_MAX];
    uint32_t rank_count;
    uint32_t *ranks;             /* the compute nodes among the representatives */
    struct by_route_list *lists; /* [level * rank_count + rank] */
    uint32_t copies;             /* trees for each rank over which the edges are distributed */
    /* by half of the graph's net, between representatives: edges of all trees that pass it */
    uint64_t *load;
    /* by half: how often the images of one edge pass one image of it; 0 elsewhere, and without
     * capacity */
    int64_t *factor;
    int64_t *cost; /* by half: what an edge adds to its load in proportion to its capacity */
};

/* Finds the routes. Returns 0, or BY_EUNSUPPORTED with `problem` filled if a compute node has none
 * at some level. Free after success and failure. */
int by_routes_find(struct by_routes *routes, const struct by_graph *graph, const struct by_symmetry *symmetry,
                   bool both_ways, struct by_problem *problem);
void by_routes_free(struct by_routes *routes);
/* Edges of one tree at level turn[number]. */
uint64_t by_routes_edges(const struct by_routes *routes, uint32_t number);
/* Sets the next order of levels. Returns false when it is the first order again. */
bool by_routes_turn(struct by_routes *routes);
/* Distributes the edges of `copies` trees for each rank. */
void by_routes_share(struct by_routes *routes, uint32_t copies);

#endif
