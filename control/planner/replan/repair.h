/*
 * Repairs trees: changes trees that were packed for another fabric as little as possible so that
 * they fit this one. Branches attached over a lost or overloaded link are detached and attached
 * elsewhere, whole branches at a time. The new path starts at any node still in the tree, uses
 * links with spare capacity, and ends at any node of the branch, which is re-rooted at that node.
 * A tree is a list of edges, and is copied only when it changes: a repair of few trees costs two
 * passes over the edges of all. Neighbours: replan.c, which sets the capacity of each link. Each
 * job belongs to one thread.
 */
#ifndef BY_PLANNER_REPLAN_REPAIR_H
#define BY_PLANNER_REPLAN_REPAIR_H

#include "control/planner/graph.h"
#include "control/planner/pack/tree.h"

/* A tree under repair. */
struct by_repaired {
    /* direction of data along its hops in the graph: DOWN is from parent to child */
    enum by_tree_use use;
    uint32_t root;
    uint32_t origin; /* the old tree that it is derived from */
    int64_t amount;  /* equal trees */
    /* path numbers, parents before children; a path that cannot stay marks a loose child */
    const uint32_t *edges;
    uint32_t edge_count;
    uint64_t hops; /* of all old edges */
    uint32_t high; /* at most so many hops lead to nodes that were moved */
    bool unfit;    /* some old edge cannot stay */
    bool one_leaf; /* that is one alone, and nothing is below it */
    uint32_t leaf; /* its position in `edges` */
    bool changed;  /* `edges` are not those of the old tree */
    bool copy;     /* split off: another tree has the same origin */
};

struct by_repaired_list {
    uint32_t count, room;
    struct by_repaired *trees;
};

/* How a path of the old plan fared. */
enum by_path_fate {
    BY_PATH_WHOLE, /* all its nodes exist */
    BY_PATH_GONE,  /* a node before its end is lost: the paths table has other nodes, but the end */
    BY_PATH_DEAD   /* its end is lost: its edges are to be dropped */
};

/* A path, for quick access. */
struct by_repair_path {
    uint16_t from, to, hops;
    uint16_t fate : 2;   /* enum by_path_fate */
    uint16_t enters : 2; /* hops into `inside` (count), at most 3 */
    uint16_t broken : 4; /* one bit for each use (1 << use) in which a hop is missing; all if not WHOLE */
    uint16_t plain : 1;  /* whole, not broken, enters nothing, no mark: as nearly all */
    uint16_t mark : 6;   /* not 0: its first node is where a broken path ends, one of those with the mark */
};

struct by_repair {
    /* set by the caller before by_repair_begin */
    const struct by_graph *graph;
    const struct by_plan *from; /* whose edges the trees have */
    const uint32_t *now;        /* by node of the old plan: its number, UINT32_MAX if it is lost */
    const bool *branch[3];      /* by use - 1, by node: switches that may have children in such a tree */
    bool *fresh_node;           /* by node: compute nodes that the old plan lacks; NULL: none */
    struct by_paths paths;      /* of the old trees, and of the new ones; owned by the repair */
    const uint8_t *fate;        /* by old path: enum by_path_fate; NULL: all are whole */
    /* by node: the side of the bottleneck that the data must enter; NULL: unknown */
    const bool *inside;
    double deadline;    /* a time of by_plan_clock, 0 for none; after it, a repair fails */
    uint32_t low_hops;  /* trees of at most this height are not lowered */
    uint32_t high_hops; /* ... and are not `high` */
    /* set by the caller before each by_repair */
    const int64_t *capacity; /* by half of graph->net, in trees */
    uint32_t full_cost;      /* cost, in hops, of each used eighth of the fullest link's capacity */
    bool low;                /* a hop above the height of the old trees weighs as much as a turned edge */
    bool backwards;          /* process the last tree first */
    bool tight;              /* no tree may enter `inside` more often than it must */
    bool keep_parents;       /* branches stay below their old parents */
    /* results */
    int64_t *carried; /* by path: how many trees have it, counted with multiplicity */
    int64_t moves;    /* branches that were moved */
    /* some changed tree is over 1.5 times as high as the old ones, and over `high_hops` */
    bool high;
    struct by_repair_path *path; /* by path */
    /* private */
    uint32_t path_count_old, path_room;
    uint32_t *half; /* by index into paths.nodes: the half of the hop that ends there, or UINT32_MAX */
    uint32_t half_room;
    int64_t *load, *room;        /* by half: by the old trees; what remains now */
    int64_t *carried_old;        /* by old path */
    uint8_t *full;               /* by half: used eighths */
    uint32_t over;               /* halves that are overloaded (count) */
    int64_t excess;              /* by how much they are, together (trees) */
    int64_t whole;               /* the least amount of an old tree */
    uint8_t uses;                /* of the trees: one bit for each (1 << use) */
    bool runs_up;                /* some tree loads the halves from child to parent */
    uint32_t *open, *open_count; /* by node, at net->first[node]: halves into it with room for `whole` */
    bool *is_listed;             /* by half: it is in `open`; those without room leave late */
    struct by_paths fresh_paths; /* the new paths alone, to find equal ones; their numbers follow the old */
    uint32_t **blocks;           /* of the lists of edges that were made in this try */
    uint32_t block_count, block_room, block_used;
    struct repair_work *work;
};

/*
 * Surveys the old paths and trees, once for all tries. `trees` have use, root, origin and amount;
 * the rest is set here.
 */
void by_repair_begin(struct by_repair *repair, struct by_repaired_list *trees);
/*
 * Completes every tree and removes every overload. `trees` is a copy of the list of
 * by_repair_begin. Trees may be split: their copies are appended. Returns false when some branch
 * cannot be attached; the trees are then unusable. All nodes that a tree must have must be in it
 * already, loose or not, except `fresh_node`.
 */
bool by_repair(struct by_repair *repair, struct by_repaired_list *trees);
/* Frees all lists of edges too. */
void by_repair_end(struct by_repair *repair);
void by_repaired_copy(struct by_repaired_list *trees, const struct by_repaired_list *from);
void by_repaired_free(struct by_repaired_list *trees);

#endif
