/*
 * Trees one by one, for nets where orders of the nodes place nearly all of them: what is missing is
 * found by exchange. Internal to packing. One thread for each table.
 */
#ifndef BY_PLANNER_PACK_PACK_REPAIR_H
#define BY_PLANNER_PACK_PACK_REPAIR_H

#include "control/planner/flow/mesh.h"

/* A half that is not there yet. */
#define BY_UNIT_MISSING UINT32_MAX

struct by_units {
    const struct by_mesh *net;
    uint32_t count; /* trees */
    uint32_t *root; /* by tree */
    uint32_t *
        parent; /* [node * count + tree]: the half into the node, BY_UNIT_MISSING for none; roots have none */
};

/*
 * Completes all trees; what is there is free of cycles and within the capacities. False when that
 * was not found before the work was too much, or the deadline (a time of by_plan_clock, 0 for none)
 * passed.
 */
bool by_pack_repair(struct by_units *units, double deadline);

#endif
