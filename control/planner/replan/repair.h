/*
 * Mending trees: trees that were packed for another fabric are made to fit this one with as few
 * changes as possible. What hangs on a link that is gone, or that now carries too much, is taken
 * off and hung elsewhere, whole branches at a time: from any node still in the tree, over links
 * with room, to any node of the branch, which is turned round to start there. Neighbours: replan.c,
 * which says how much each link may carry. One thread for each job.
 */
#ifndef BY_PLANNER_REPLAN_MEND_H
#define BY_PLANNER_REPLAN_MEND_H

#include "control/planner/graph.h"
#include "control/planner/pack/tree.h"

/* Marks the parent of a node that hangs in the air, and of the root and of nodes outside. */
#define BY_REPAIR_LOOSE   (UINT32_MAX - 1)
#define BY_REPAIR_OUTSIDE UINT32_MAX

struct by_repair {
    const struct by_graph *graph;
    const int64_t *capacity; /* by half of graph->net, in trees */
    uint32_t full_cost;      /* what an eighth of a link's capacity in use weighs against a hop of height */
    bool backwards;          /* the last tree first */
    const bool *branch[3];   /* by use less one, by node: switches that may have children in such a tree */
    struct by_paths paths;   /* of all trees, old and new */
    int64_t *room;           /* by half: what is left; the job's own */
    int64_t moves;           /* branches that were hung elsewhere */
};

/* A tree at work: by node, the path from its parent. */
struct by_repaired {
    enum by_tree_use use; /* which way along its hops data runs in the graph: DOWN from parent to child */
    uint32_t root;
    uint32_t origin; /* the old tree that it comes from */
    int64_t amount;  /* equal trees */
    uint32_t *parent;
    uint32_t
        *above;   /* by node, where branches stay below the node that they hung below: that one; else NULL */
    bool copy;    /* split off: its origin stands elsewhere, too */
    bool touched; /* some edge was moved */
};

struct by_repaired_list {
    uint32_t count, room;
    struct by_repaired *trees;
};

/*
 * Makes every tree whole and every load fit. Trees may be split: their copies are appended. False
 * when no place was found for some branch; then the trees are of no use. All nodes that are in a
 * tree must be there already, loose or not.
 */
bool by_repair(struct by_repair *repair, struct by_repaired_list *trees);
void by_repaired_free(struct by_repaired_list *trees);

#endif
