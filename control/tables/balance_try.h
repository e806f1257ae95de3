/*
 * Distributions of trees over parallel cables. Neighbours: balance_items.h; balance.c, which
 * applies the best one. Private to tables/.
 */
#ifndef BY_TABLES_BALANCE_TRY_H
#define BY_TABLES_BALANCE_TRY_H

#include "control/tables/balance.h"
#include "control/tables/balance_items.h"

/* A tree, or a part of one. */
struct by_balance_piece {
    uint32_t tree;
    uint32_t next; /* next part of the same tree; BY_BALANCE_NONE: the last */
    int64_t units;
    uint32_t *cable; /* by item of the tree: a link */
};

/* A distribution that is being made. */
struct by_balance_try {
    uint32_t count, room;
    struct by_balance_piece *pieces; /* the first ones are the whole trees */
    int64_t *load;                   /* by arc */
    uint32_t *places;                /* by node */
    uint32_t trees;                  /* of the job */
    bool splits;                     /* trees may be split */
    int64_t num, den;                /* cables may carry num/den of their bandwidth */
};

/* Adds what a tree needs at its nodes, if no node then exceeds `most`. */
bool by_balance_places(struct by_laid_tree *tree, uint32_t most, uint32_t *places);
/*
 * Tries whole trees, then splits at the full rate, then splits at lower rates, which need fewer.
 * Keeps the best distribution if it exceeds `part`, that of the trees as they are.
 */
void by_balance_try_all(const struct by_balance_work *work, const struct by_balance_use *use,
                        struct by_balance_try *best, struct by_fraction *part);
void by_balance_try_free(struct by_balance_try *attempt);

#endif
