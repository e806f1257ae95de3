/*
 * Distributes the trees of a plan over parallel cables. Each tree is first laid with all its weight
 * on one cable of each pair of nodes (path.c). Where that would load a cable beyond its bandwidth,
 * trees change cables, and some are split into trees with the same edges on different cables, whose
 * weights are parts of the whole. All numbers are integers. Private to tables/.
 */
#ifndef BY_TABLES_BALANCE_H
#define BY_TABLES_BALANCE_H

#include <gmp.h>

#include "control/tables/lower.h"
#include "control/tables/tree.h"

/*
 * Trees are split only while each node is in at most this many trees of a job (a tree with more
 * than 64 children at the node counts more than once): then windows of 64 slots fit into the
 * default BY_LOWER_SLOTS. It depends on no option, so that every lowering of a plan makes the same
 * trees.
 */
#define BY_BALANCE_PLACES_MAX (BY_LOWER_SLOTS / 64u)

/* A tree of a plan, or a pair of trees, as laid on cables. */
struct by_laid_tree {
    struct by_hops hops;
    struct by_hops down;     /* of a pair: the tree down, `hops` is the tree up; else empty */
    enum by_table_flow flow; /* direction of the data in `hops` */
    mpq_t weight;
    uint16_t collectives; /* bit set */
    uint16_t owner;       /* rank, or BY_RANK_NONE */
};

struct by_laid_trees {
    uint32_t count, room;
    struct by_laid_tree *trees;
};

/* What the trees of a job, of all its plans so far, use. */
struct by_balance_use {
    uint32_t trees;
    uint32_t *places; /* by node: slots for each position of a window */
};

/* The result for one plan. */
struct by_balance_facts {
    /* The part of the planned rate that parallel cables allow, at most 1. */
    struct by_fraction part;
    uint32_t split; /* trees that were added by splits */
};

/*
 * Balances the trees of one plan and adds what they need to `use`. Changes cables and weights of
 * `laid`, and adds trees to it. Cables that are not parallel to another are left as they are.
 */
void by_balance(const struct by_address_map *map, struct by_laid_trees *laid, struct by_balance_use *use,
                struct by_balance_facts *facts);

#endif
