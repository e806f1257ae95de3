/*
 * Groups the trees of one job. A group is the set of trees that carries one collective for one
 * owner, with exact shares. Groups with equal trees and shares become one group that serves several
 * collectives. Private to tables/.
 */
#ifndef BY_TABLES_GROUP_H
#define BY_TABLES_GROUP_H

#include <gmp.h>

#include "control/tables/balance.h"

struct by_group_tree {
    struct by_hops hops;
    struct by_hops down; /* of a pair: the tree down, `hops` is the tree up; else empty */
    mpq_t weight;
    uint32_t share; /* set by by_groups_make */
};

struct by_table_group {
    uint16_t collectives; /* bit set */
    uint16_t owner;       /* rank, or BY_RANK_NONE */
    uint32_t count, room;
    struct by_group_tree *trees;
};

struct by_table_groups {
    uint32_t count, room;
    struct by_table_group *groups;
    struct by_fraction part; /* of the planned rates that parallel cables allow, at most 1 */
    uint32_t note_count, note_room;
    char **notes;
};

/*
 * Groups the trees of all plans of a job. Returns 0, or an error with `problem` filled. After
 * success the caller frees with by_groups_free.
 */
int by_groups_make(const struct by_address_map *map, const struct by_lower_job *job,
                   struct by_table_groups *groups, struct by_problem *problem);
void by_groups_free(struct by_table_groups *groups);
void by_group_note(struct by_table_groups *groups, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
