/*
 * A fabric: nodes and directed arcs with exact capacities, as read from topology JSON, imported, or
 * made by a preset. Planning, checking, lowering and drawing all start from this. A topology is
 * immutable after construction; any number of threads may read it.
 */
#ifndef BY_FABRIC_TOPOLOGY_H
#define BY_FABRIC_TOPOLOGY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "control/base/fraction.h"
#include "control/base/problem.h"

struct by_node {
    char *name;     /* owned by the topology (by_name_block) */
    bool compute;   /* else a switch */
    bool forward;   /* compute nodes: forward like a plain switch in jobs without them */
    bool multicast; /* switches: may have several children in a tree that carries data down */
    bool aggregate; /* switches: may have several children in a tree that carries data up */
    struct by_fraction aggregate_rate; /* in the file's unit; num 0 = not given (no limit) */
    uint16_t ops;       /* switches: bits 1 << enum by_op of supported operators; 0 = not given (all) */
    uint16_t dtypes;    /* switches: bits 1 << enum by_dtype of supported types; 0 = not given (all) */
    bool has_task_time; /* whether task_time was given */
    struct by_fraction task_time; /* of one reduction, in steady states (control/study/steady); may be 0 */
};

/* One direction of a link. Parallel links of the file are kept separate here (each is a cable of
 * the lab); the planner adds them up. */
struct by_arc {
    uint32_t from; /* node index */
    uint32_t to;
    int64_t capacity; /* in 1/scale of the file's unit: exact */
    uint32_t link;    /* index of the link (cable) to which this arc belongs */
};

/* A cable: one or two arcs. */
struct by_link {
    uint32_t a;      /* node index: `between`[0] or `from` */
    uint32_t b;      /* node index: `between`[1] or `to` */
    uint32_t arc_ab; /* arc index, or UINT32_MAX */
    uint32_t arc_ba; /* arc index, or UINT32_MAX for a one-way link */
};

struct by_site;

/* A block of names of nodes, one after another. */
struct by_name_block {
    struct by_name_block *before;
    char text[];
};

struct by_topology {
    char *name;
    char *unit; /* unit of bandwidth, such as "GB/s": one of unit.h */
    uint32_t node_count;
    struct by_node *nodes;
    struct by_name_block *names; /* the nodes' names, owned */
    uint32_t arc_count;
    struct by_arc *arcs;
    uint32_t link_count;
    struct by_link *links;
    /* least common multiple of the bandwidths' denominators: bandwidth = capacity / scale */
    int64_t scale;
    struct by_site *site; /* names of the machines' interfaces (site.h), owned; NULL: all are generated */
};

/* Reads topology JSON. Returns 0 and a topology that the caller frees, or a negative BY_E* with
 * `problem` filled. */
int by_topology_read(const char *path, struct by_topology **topology, struct by_problem *problem);
/* The same from memory. */
int by_topology_parse(const char *json, size_t bytes, struct by_topology **topology,
                      struct by_problem *problem);
void by_topology_free(struct by_topology *topology);
/* Writes the topology as JSON to `stream` (a FILE *). 0 or BY_EIO. */
int by_topology_write(const struct by_topology *topology, void *stream);
/* Index of the node called `name`, or -1. */
int64_t by_topology_find(const struct by_topology *topology, const char *name);
/* Whether some switch multicasts or aggregates. */
bool by_topology_capable(const struct by_topology *topology);
/* Returns the same fabric with switches that only forward. It shares everything with `topology`
 * except `nodes`, which the caller frees. */
struct by_topology by_topology_forwarding(const struct by_topology *topology);
/* Count of compute nodes; ranks are numbered by their order in the file. */
uint32_t by_topology_compute_count(const struct by_topology *topology);

/* Returns the first node with different incoming and outgoing bandwidth, or -1. Sets `in` and `out`
 * to the sums, in the unit (either may be NULL). */
int64_t by_topology_unbalanced(const struct by_topology *topology, struct by_fraction *in,
                               struct by_fraction *out);

#endif
