/*
 * What pack_order.c decides at each node, as pack_write.c turns it into bundles or a table of
 * trees. Internal to packing. One thread for each.
 */
#ifndef BY_PLANNER_PACK_PACK_ORDER_H
#define BY_PLANNER_PACK_PACK_ORDER_H

#include "control/planner/pack/pack.h"
#include "control/planner/pack/pack_repair.h"
#include "offload/base/prng.h"

/* One part of what a root's trees take at a node. */
struct by_order_part {
    uint32_t class;
    uint32_t arc;
    int64_t amount;
    uint32_t next; /* of the same arc, UINT32_MAX ends */
};

/* A further part, where one link does not serve all trees of a root at a node. */
struct by_order_extra {
    uint32_t node;
    uint32_t half;
    int64_t amount;
    uint32_t next; /* of the same class */
};

struct by_orders {
    const struct by_mesh *net;
    const int64_t *roots;
    uint32_t class_count;
    uint32_t *class_node; /* by class: its root */
    uint32_t *node_class; /* by node: UINT32_MAX where no tree starts */
    uint16_t *levels;     /* [class * node_count + node] */
    uint16_t *keys;       /* the same */
    uint32_t *main;       /* the same: the half that serves most (or all) */
    struct by_order_extra *extras;
    uint32_t extra_count, extra_room;
    uint32_t *first_extra; /* by class */
    int64_t missing;       /* trees that did not find a way into some node */
    double deadline;       /* a time of by_plan_clock, 0 for none */
    bool late;             /* it has passed: nothing of the above counts */
    struct by_prng prng;
    /* The transport at one node. Arcs are its entering halves with capacity. */
    uint32_t arc_count;
    uint32_t *arc_half, *arc_tail;
    int64_t *arc_left;
    uint32_t *arc_first; /* by arc: its parts */
    uint32_t *arc_seen, *arc_before, *arc_part, *arc_queue;
    uint32_t stamp;
    struct by_order_part *parts;
    uint32_t part_count, part_room;
    int64_t *wanted;   /* by class */
    uint32_t *waiting; /* classes not served yet, by number of arcs they may use */
    uint32_t *options;
};

/* Bundles of all trees, where nothing is missing. */
void by_order_write(struct by_orders *orders, struct by_packing *packing);
/* The trees as a table of units->count trees, what is missing included; the caller frees its
 * arrays. */
void by_order_units(const struct by_orders *orders, struct by_units *units);
/* Bundles of the trees of a table without gaps. */
void by_order_write_units(struct by_orders *orders, const struct by_units *units, struct by_packing *packing);

#endif
