/*
 * Whether a plan can run: whether its trees fit the tables that nodes load, with the defaults of
 * `banyan tables`, and what they need. Neighbours: lower.h, which makes the tables; the commands
 * `plan` and `verify`, which print the answer. Any thread.
 */
#ifndef BY_TABLES_RUNS_H
#define BY_TABLES_RUNS_H

#include "control/tables/lower.h"

struct by_runs {
    bool runs;
    uint32_t trees;  /* entries of the fullest node (count) */
    uint32_t slots;  /* slots of the fullest node (count) */
    uint32_t window; /* slots of a tree at a node */
    /* the switch with the most slots, NULL if no switch has any; its entries and slots (counts) */
    const char *fullest;
    uint32_t fullest_trees, fullest_slots;
    struct by_fraction part;   /* of the plan's rate that its trees reach on parallel cables, at most 1 */
    struct by_problem problem; /* if it does not run: object, limit, remedy */
};

/* Fills `runs` for one plan. A plan of very many edges is only counted, without choosing cables. */
void by_runs_find(const struct by_topology *topology, const struct by_plan *plan, struct by_runs *runs);

#endif
