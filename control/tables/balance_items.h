/*
 * The trees of a plan and the parallel cables that they use, as integers. Neighbours: balance.h,
 * balance_try.h, which distributes them. Private to tables/.
 */
#ifndef BY_TABLES_BALANCE_ITEMS_H
#define BY_TABLES_BALANCE_ITEMS_H

#include "control/tables/balance.h"

#define BY_BALANCE_NONE UINT32_MAX
/* Directions of the data on a cable, as bits: from the node with the lower number, and to it. */
#define BY_WAY_OUT  1u
#define BY_WAY_BACK 2u

/* A place where a tree uses a cable of a group. */
struct by_balance_item {
    uint32_t group;
    uint32_t hop, step; /* the step in the direction of the data */
    uint8_t half;       /* 1: of the tree down of a pair */
    uint8_t ways;
};

/* Cables between two nodes. */
struct by_balance_group {
    uint32_t first, count; /* in `links` */
    bool crowded;          /* a cable carries more than its bandwidth */
};

/* A tree that uses a group, by one of its items. */
struct by_balance_user {
    uint32_t tree, item;
};

struct by_balance_work {
    const struct by_address_map *map;
    struct by_laid_trees *laid;
    uint32_t group_count;
    struct by_balance_group *groups;
    uint32_t *links;    /* of all groups */
    uint32_t *group_of; /* by link, or BY_BALANCE_NONE */
    int64_t *limit;     /* by arc: bandwidth in units of weight */
    int64_t *units;     /* by tree: its weight */
    mpz_t common;       /* a weight of 1 is common / 2^shift units */
    mp_bitcnt_t shift;
    uint32_t *first; /* [tree + 1]: first of its items in crowded groups */
    struct by_balance_item *items;
    uint32_t *group_first;         /* [group + 1]: its first user */
    struct by_balance_user *users; /* of all groups */
    int64_t *fixed;                /* by arc: load of the other items */
    uint32_t *order;               /* crowded groups, the fullest first */
    uint32_t crowded;
};

static inline uint32_t low_end(const struct by_link *link)
{
    return link->a < link->b ? link->a : link->b;
}

/* Returns the arc of a link for one way, or BY_BALANCE_NONE. */
static inline uint32_t by_balance_arc(const struct by_topology *topology, uint32_t link, unsigned way)
{
    const struct by_link *record = &topology->links[link];

    return (record->a == low_end(record)) == (way == BY_WAY_OUT) ? record->arc_ab : record->arc_ba;
}

static inline struct by_hops *by_balance_half(struct by_laid_tree *tree, unsigned half)
{
    return half ? &tree->down : &tree->hops;
}

static inline enum by_table_flow by_balance_flow(const struct by_laid_tree *tree, unsigned half)
{
    return half ? BY_FLOW_DOWN : tree->down.count > 0 ? BY_FLOW_UP : tree->flow;
}

static inline const struct by_balance_item *by_balance_item(const struct by_balance_work *work, uint32_t tree,
                                                            uint32_t item)
{
    return &work->items[work->first[tree] + item];
}

static inline uint32_t by_balance_items(const struct by_balance_work *work, uint32_t tree)
{
    return work->first[tree + 1] - work->first[tree];
}

/* Whether a is a greater part of b than c of d. */
static inline bool by_balance_fuller(int64_t a, int64_t b, int64_t c, int64_t d)
{
    return (__int128)a * d > (__int128)c * b;
}

/* Adds an item to the loads of arcs. */
void by_balance_load(const struct by_balance_work *work, int64_t *load, uint32_t link, unsigned ways,
                     int64_t units);
/* Returns the part of the weights at which no cable of a group is overloaded, at most 1. */
struct by_fraction by_balance_part(const struct by_balance_work *work, const int64_t *load);

/* Finds the nodes with several cables between them. Returns the number of such pairs. */
uint32_t by_balance_groups(struct by_balance_work *work);
/* Computes units, loads, crowded groups and their items. Returns the part of the rate that the
 * trees reach as they are. */
struct by_fraction by_balance_read(struct by_balance_work *work);
void by_balance_release(struct by_balance_work *work);

#endif
