/* The decisions that pack_order.c makes at each node, and that pack_write.c turns into bundles or a
 * table of trees. Internal to packing. Each by_orders belongs to one thread. */
#ifndef BY_PLANNER_PACK_PACK_ORDER_H
#define BY_PLANNER_PACK_PACK_ORDER_H

#include "control/planner/pack/pack.h"
#include "control/planner/pack/pack_repair.h"
#include "offload/base/prng.h"

/* A part of the trees of one root, and the arc over which they enter a node. */
struct by_order_part {
    uint32_t class;
    uint32_t arc;
    int64_t amount;
    uint32_t next; /* next in the same bucket, UINT32_MAX ends */
};

/* Parts of one arc, the latest first. */
struct by_order_bucket {
    uint32_t first;
    uint64_t may; /* at least the arcs that one of these classes may use, of the first 64 */
};

/* An additional part, if one link does not serve all trees of a root at a node. */
struct by_order_extra {
    uint32_t node;
    uint32_t half;
    int64_t amount;
    uint32_t next; /* next of the same class */
};

struct by_orders {
    const struct by_mesh *net;
    const int64_t *roots;
    uint32_t class_count;
    uint32_t *class_node; /* by class: its root */
    uint32_t *node_class; /* by node: UINT32_MAX if no tree starts there */
    uint16_t *levels;     /* [class * node_count + node] */
    uint16_t *keys;       /* [node * class_count + class] */
    uint32_t *main;       /* the same: the half that serves most (or all) trees */
    struct by_order_extra *extras;
    uint32_t extra_count, extra_room;
    uint32_t *first_extra; /* by class */
    int64_t missing;       /* trees without a link into some node */
    double deadline;       /* a time of by_plan_clock, 0 for none */
    bool late;             /* the deadline has passed: the results are invalid */
    struct by_prng prng;
    /* The transport problem at one node. Arcs are its entering halves with capacity. */
    uint32_t arc_count;
    uint32_t *arc_half, *arc_tail;
    int64_t *arc_left;
    uint32_t *arc_seen, *arc_before, *arc_part, *arc_queue;
    uint32_t stamp;
    struct by_order_part *parts;
    uint32_t part_count, part_room;
    struct by_order_bucket *buckets; /* [arc * bucket_count + bucket] */
    uint32_t bucket_count;
    uint32_t word_count; /* of the set of arcs of a class */
    uint64_t *may;       /* [class * word_count + arc / 64]: a bit for each arc that its trees may use */
    int64_t *wanted;     /* by class */
    uint32_t *waiting;   /* classes not served yet, sorted by the number of arcs they may use */
    uint32_t *options;
};

/* Writes all trees as bundles, if nothing is missing. */
void by_order_write(struct by_orders *orders, struct by_packing *packing);
/* Writes the trees as a table of units->count trees, including missing entries; the caller frees
 * its arrays. */
void by_order_units(const struct by_orders *orders, struct by_units *units);
/* Writes the trees of a complete table as bundles. */
void by_order_write_units(struct by_orders *orders, const struct by_units *units, struct by_packing *packing);

#endif
