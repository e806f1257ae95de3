/*
 * One plan tree as hops: who is whose parent, by which cables there and back. Internal to tables/.
 * A hop owns its steps.
 */
#ifndef BY_TABLES_TREE_H
#define BY_TABLES_TREE_H

#include "control/tables/lower.h"

/* Which way a tree's data run: which arcs it was planned on. */
enum by_table_flow { BY_FLOW_DOWN = 1, BY_FLOW_UP = 2, BY_FLOW_BOTH = 3 };

struct by_hops {
    uint32_t count;
    struct by_hop *hop;
};

/*
 * What each arc carries so far of one plan, in weight x 2^20: parallel cables are filled evenly.
 * Zeroed by the caller for each plan; an integer, because it decides which cable a tree takes.
 */
struct by_lower_load {
    uint64_t *arc;
};

/*
 * Lays `tree` on cables. `where` names it in errors ("allreduce tree 3"). 0, BY_EINVAL (not a
 * spanning tree of this fabric), BY_EUNSUPPORTED (a switch branches that cannot; no way back),
 * BY_ELIMIT (children). On success the caller frees `hops`.
 */
int by_hops_make(const struct by_address_map *map, const struct by_plan *plan, const struct by_tree *tree,
                 enum by_table_flow flow, struct by_lower_load *load, const char *where, struct by_hops *hops,
                 struct by_problem *problem);
void by_hops_free(struct by_hops *hops);
/* Total order; 0 when both trees are the same, cables included. */
int by_hops_compare(const struct by_hops *a, const struct by_hops *b);

/* The cables of one tree edge in both directions (path.c): `nodes` is parent first. Same errors. */
int by_path_lay(const struct by_address_map *map, const uint32_t *nodes, uint32_t node_count,
                enum by_table_flow flow, struct by_fraction weight, struct by_lower_load *load,
                const char *where, struct by_hop *hop, struct by_problem *problem);

#endif
