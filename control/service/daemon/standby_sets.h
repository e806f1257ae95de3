/*
 * The choice of standbys: other sets of trees of a job, each without some of the switches and links
 * that the trees in use could do without. As few sets as possible avoid as many of these parts as
 * possible, so that after a single failure one set is whole. Neighbours: changes.c admits the sets
 * and puts them into tables; fabric.c makes their plans. The worker's thread.
 */
#ifndef BY_SERVICE_DAEMON_STANDBY_SETS_H
#define BY_SERVICE_DAEMON_STANDBY_SETS_H

#include "control/service/daemon/fabric.h"

/* Slots of each tree of a standby (count): ranks use it until banyand has planned again. */
#define BY_STANDBY_WINDOW 16u

struct by_standby_sets {
    const struct by_topology *topology;
    const struct by_job *job; /* with the tables in use */
    const struct by_fabric_loss *loss;
    const struct by_lower_options *lower;
    const struct by_apart *apart;
    /* The parts that can be avoided, nodes and then links: a node, or node_count + a link. */
    uint32_t part_count, room;
    uint32_t *parts;
    bool *covered;          /* by index: a set avoids it */
    uint32_t covered_count; /* of these */
};

/* Finds the parts. The caller sets the first five members before. Returns 0, or BY_EABORTED when
 * the change must end. */
int by_standby_sets_find(struct by_standby_sets *sets, struct by_problem *problem);
/*
 * Makes one set, the first of `left` that may still be made: plans, verifies and lowers its trees,
 * with numbers above those of `last`. Returns 0 and *tables, which the caller frees; BY_ENOENT if
 * each part is covered; or an error with `problem`.
 */
int by_standby_sets_make(const struct by_standby_sets *sets, uint32_t left, uint16_t gen,
                         const struct by_job_tables *last, struct by_job_tables **tables,
                         struct by_problem *problem);
/* Marks the parts that the set avoids, and in tables->replaces the trees. */
void by_standby_sets_take(struct by_standby_sets *sets, struct by_job_tables *tables);
void by_standby_sets_free(struct by_standby_sets *sets);

#endif
