/*
 * Repairs trees: changes trees that were packed for another fabric as little as possible so that
 * they fit this one. Branches attached over a lost or overloaded link are detached and attached
 * elsewhere, whole branches at a time. The new path starts at any node still in the tree, uses
 * links with spare capacity, and ends at any node of the branch, which is re-rooted at that node.
 * Neighbours: replan.c, which sets the capacity of each link. Each job belongs to one thread.
 */
#ifndef BY_PLANNER_REPLAN_REPAIR_H
#define BY_PLANNER_REPLAN_REPAIR_H

#include "control/planner/graph.h"
#include "control/planner/pack/tree.h"

/* Values of a parent: of a detached node (LOOSE), and of the root and of nodes
 * outside (OUTSIDE). */
#define BY_REPAIR_LOOSE   (UINT32_MAX - 1)
#define BY_REPAIR_OUTSIDE UINT32_MAX

struct by_repair {
    const struct by_graph *graph;
    const int64_t *capacity; /* by half of graph->net, in trees */
    /* cost, in hops, of each used eighth of the fullest link's capacity */
    uint32_t full_cost;
    bool backwards;        /* process the last tree first */
    const bool *branch[3]; /* by use - 1, by node: switches that may have children in such a tree */
    struct by_paths paths; /* of all trees, old and new */
    int64_t *room;         /* by half: remaining capacity; owned by the job */
    int64_t moves;         /* branches that were moved */
    double deadline;       /* a time of by_plan_clock, 0 for none; after it, a repair fails */
};

/* A tree under repair: by node, the path from its parent. */
struct by_repaired {
    /* direction of data along its hops in the graph: DOWN is from parent to child */
    enum by_tree_use use;
    uint32_t root;
    uint32_t origin; /* the old tree that it is derived from */
    int64_t amount;  /* equal trees */
    uint32_t *parent;
    uint32_t *above; /* by node: the old parent, if branches must stay below it; else NULL */
    bool copy;       /* split off: another tree has the same origin */
    bool touched;    /* some edge was moved */
};

struct by_repaired_list {
    uint32_t count, room;
    struct by_repaired *trees;
};

/*
 * Completes every tree and removes every overload. Trees may be split: their copies are appended.
 * Returns false when some branch cannot be attached; the trees are then unusable. All nodes that a
 * tree must have must be in it already, loose or not.
 */
bool by_repair(struct by_repair *repair, struct by_repaired_list *trees);
void by_repaired_free(struct by_repaired_list *trees);

#endif
