/*
 * Converts one plan tree to hops: each node's parent, and the cables to it and back. Private to
 * tables/. A hop owns its steps.
 */
#ifndef BY_TABLES_TREE_H
#define BY_TABLES_TREE_H

#include "control/tables/lower.h"

/* Direction of a tree's data; it defines the arcs for which the tree was planned. */
enum by_table_flow { BY_FLOW_DOWN = 1, BY_FLOW_UP = 2, BY_FLOW_BOTH = 3 };

struct by_hops {
    uint32_t count;
    struct by_hop *hop;
};

/*
 * Load of each arc by one plan, in units of 2^-20 of weight, used to fill parallel cables evenly.
 * The caller zeroes it for each plan. It is an integer because it decides which cable a tree uses,
 * and the decision must be the same on every machine.
 */
struct by_lower_load {
    uint64_t *arc;
};

/*
 * Lays `tree` on cables. `where` names it in error texts ("allreduce tree 3"). Returns 0; BY_EINVAL
 * (not a spanning tree of this fabric); BY_EUNSUPPORTED (a switch branches that cannot; no way
 * back); BY_ELIMIT (too many children). After success the caller frees `hops`.
 */
int by_hops_make(const struct by_address_map *map, const struct by_plan *plan, const struct by_tree *tree,
                 enum by_table_flow flow, struct by_lower_load *load, const char *where, struct by_hops *hops,
                 struct by_problem *problem);
void by_hops_free(struct by_hops *hops);
/* Returns a copy, which the caller frees. */
struct by_hops by_hops_copy(const struct by_hop *hops, uint32_t count);
/* Makes the only child of a root that is a leaf too the root; the former root becomes its last
 * child. */
void by_hops_turn(struct by_hops *hops);
/* Compares in a total order; returns 0 if both trees are the same, including their cables. */
int by_hops_compare(const struct by_hops *a, const struct by_hops *b);

/*
 * Lays one tree edge on cables in both directions (path.c). `nodes` begins with the parent. Errors
 * are those of by_hops_make.
 */
int by_path_lay(const struct by_address_map *map, const uint32_t *nodes, uint32_t node_count,
                enum by_table_flow flow, struct by_fraction weight, struct by_lower_load *load,
                const char *where, struct by_hop *hop, struct by_problem *problem);

#endif
