/* Completes trees one by one, for nets in which orders of the nodes place nearly all of them:
 * missing links are found by exchange. Internal to packing. Each table belongs to one thread. */
#ifndef BY_PLANNER_PACK_PACK_REPAIR_H
#define BY_PLANNER_PACK_PACK_REPAIR_H

#include "control/planner/flow/mesh.h"

/* A missing half. */
#define BY_UNIT_MISSING UINT32_MAX

struct by_units {
    const struct by_mesh *net;
    uint32_t count; /* trees */
    uint32_t *root; /* by tree */
    /* [node * count + tree]: the half into the node, BY_UNIT_MISSING if missing; roots have none */
    uint32_t *parent;
};

/*
 * Completes all trees. The existing part must be free of cycles and within the capacities. Returns
 * false when the work limit is reached, or when the deadline (a time of by_plan_clock, 0 for none)
 * passes.
 */
bool by_pack_repair(struct by_units *units, double deadline);

#endif
