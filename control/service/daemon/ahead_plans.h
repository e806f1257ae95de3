/*
 * The plans of a job for failures that have not happened: texts of plans by the lost part. ahead.c
 * adds them, while no change is under way; changes.c finds one. Not thread-safe.
 */
#ifndef BY_SERVICE_DAEMON_AHEAD_PLANS_H
#define BY_SERVICE_DAEMON_AHEAD_PLANS_H

#include "control/service/daemon/fabric.h"

struct by_ahead_entry {
    uint32_t part;                /* a node, or node_count + a link */
    struct by_fabric_text *texts; /* by want; NULL: it has no plan */
};

struct by_ahead_plans {
    uint32_t count, room, want_count;
    struct by_ahead_entry *entries;
    size_t bytes; /* of all texts */
    uint16_t gen; /* the tables of this generation have all their plans; 0: none */
};

/* Adds the texts of a part, and takes them over; NULL: it has no plan. */
void by_ahead_add(struct by_ahead_plans **plans, uint32_t part, struct by_fabric_text *texts,
                  uint32_t want_count);
/* Returns the entry of a part, or NULL. `plans` may be NULL. */
const struct by_ahead_entry *by_ahead_part(const struct by_ahead_plans *plans, uint32_t part);
/* Returns the plans (by want) for exactly this loss, in which links of lost nodes are marked, or
 * NULL. `plans` may be NULL. */
const struct by_fabric_text *by_ahead_find(const struct by_ahead_plans *plans,
                                           const struct by_topology *topology,
                                           const struct by_fabric_loss *loss);
void by_ahead_free_texts(struct by_fabric_text *texts, uint32_t count);
void by_ahead_free(struct by_ahead_plans *plans);

#endif
