/*
 * A plan: weighted trees for one collective on one fabric, with the certificate of their quality.
 * The planner makes it, the plan file stores it (docs/man/banyan-plan.5), `verify` checks the file
 * with independent code, `lower` compiles it into tables.
 *
 * Trees always list their edges from the root outwards. An edge is a path parent -> ... -> child
 * whose inner nodes only forward. A plan of a thousand nodes has a million edges over some hundred
 * thousand different paths, so each path is stored once, in a table, and an edge is the number of
 * its path. Data flows down the edges (allgather, broadcast), up (reduce-scatter, reduce), or up
 * and then down (allreduce, barrier). A tree's weight is its bandwidth: an exact fraction in the
 * topology's unit. The load of a tree is its weight on each arc of each path, in the direction or
 * directions of the data.
 */
#ifndef BY_PLAN_PLAN_H
#define BY_PLAN_PLAN_H

#include "control/fabric/topology.h"
#include "control/plan/certificate.h"
#include "control/plan/paths.h"
#include "control/plan/rotations.h"

/* The direction of a tree, for plans that hold trees of different directions (allreduce on
 * asymmetric fabrics). */
enum by_tree_use { BY_TREE_BOTH = 1, BY_TREE_UP, BY_TREE_DOWN };

struct by_tree {
    /* node index: a compute node, or a switch that aggregates and multicasts
     * (allreduce, barrier) */
    uint32_t root;
    enum by_tree_use use;
    struct by_fraction weight;
    uint32_t edge_count;
    size_t first_edge; /* in the plan's (or list's) `edges`; parents come before their children */
};

/* A possible height of the trees, and the rate at that height. */
struct by_trade {
    uint32_t height; /* hops */
    struct by_fraction rate;
};

/* Heights of trees in hops: the maximum, and the mean by weight (for display only). */
struct by_heights {
    uint32_t max;
    double mean;
};

struct by_plan {
    char *topology_name;
    char *unit;
    unsigned collective;    /* enum by_collective */
    int64_t root;           /* node index for broadcast and reduce, else -1 */
    uint32_t compute_count; /* compute nodes that take part */
    bool *member;           /* by node: the compute nodes that take part (fabric/members.h); NULL: all */
    int64_t *shares; /* by node: parts of the data if shards are of unequal size (shares.h), else NULL */
    struct by_fraction optimum;  /* bound of algbw = total data size / time, in unit */
    struct by_fraction achieved; /* the same for these trees */
    struct by_fraction inv_x;    /* 1/x* of the papers (allgather, reduce-scatter), else num 0 */
    /* trees for each root (with shares: for each part), counted with multiplicity; 0
     * if undefined */
    int64_t k;
    uint32_t cut_count; /* bottleneck cut: the number of nodes on the side that the data must leave */
    uint32_t *cut;
    struct by_fraction cut_exiting; /* bandwidth leaving that side, in unit */
    /* capable switches only forward: bound and proof hold for the fabric without
     * their capabilities */
    bool hosts_only;
    /* no more trees than this share the data of one rank (merge.h); 0: no such limit was asked for
     */
    int64_t trees_max;
    bool ordered; /* every partial sum covers a contiguous interval of ranks */
    bool hurried; /* the time limit prevented better trees (not part of the plan file) */
    /* allreduce: proves `optimum` if that is less than the cut, else NULL */
    struct by_certificate *proof;
    /* allreduce: the linear program over all trees allows no more than `optimum`, so that a gap is
     * most likely one of the trees (not part of the plan file) */
    bool bound_is_firm;
    struct by_fraction two_phases; /* allreduce: the rate of reduce-scatter and then allgather, else num 0 */
    uint32_t trade_count;          /* latency-aware plan: the number of possible heights; lowest first */
    struct by_trade *trades;
    /* a plan by classes: each tree stands for its images under these rotations; NULL: all trees are
     * there */
    struct by_rotations *rotations;
    uint32_t tree_count;
    struct by_tree *trees;
    struct by_paths paths;
    struct by_heights packed; /* heights before by_height_lower (height.h); 0 if not tried */
    size_t edge_count;        /* edges of all trees */
    uint32_t *edges;          /* path numbers */
    struct {
        double optimum, split, pack, in_network, total;
    } seconds;
};

void by_plan_free(struct by_plan *plan);
/* Returns edge number `edge` of a tree: a view, valid as long as the plan. */
static inline struct by_path by_plan_edge(const struct by_plan *plan, const struct by_tree *tree,
                                          uint32_t edge)
{
    return by_paths_get(&plan->paths, plan->edges[tree->first_edge + edge]);
}
/* Hops on physical links from the root to the farthest node. */
uint32_t by_plan_height(const struct by_plan *plan, const struct by_tree *tree, uint32_t node_count);
struct by_heights by_plan_heights(const struct by_plan *plan, uint32_t node_count);
/* Plan files: JSON with names instead of indices. */
int by_plan_write(const struct by_plan *plan, const struct by_topology *topology, void *stream);
/* From memory, or from a file. Of a plan by classes all trees are made (by_rotations_expand); the
 * last two functions read it as it is. */
int by_plan_parse(const char *text, size_t bytes, const struct by_topology *topology, struct by_plan **plan,
                  struct by_problem *problem);
int by_plan_read(const char *path, const struct by_topology *topology, struct by_plan **plan,
                 struct by_problem *problem);
int by_plan_read_classes(const char *path, const struct by_topology *topology, struct by_plan **plan,
                         struct by_problem *problem);
int by_plan_parse_classes(const char *text, size_t bytes, const struct by_topology *topology,
                          struct by_plan **plan, struct by_problem *problem);

#endif
