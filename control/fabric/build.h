/* Builds a topology piece by piece. The JSON reader, the importers and the presets all use this, so
 * that every topology passes the same checks. Each builder belongs to one thread. */
#ifndef BY_FABRIC_BUILD_H
#define BY_FABRIC_BUILD_H

#include "control/fabric/topology.h"

/* Nodes (count). */
#define BY_TOPOLOGY_NODES_MAX 1048576u
/* Links of a file (count): four for each node. */
#define BY_TOPOLOGY_LINKS_MAX 4194304u

struct by_builder;

struct by_builder *by_builder_new(const char *name, const char *unit);
void by_builder_free(struct by_builder *builder);
/* Replaces name and unit, for readers that know them last. */
void by_builder_title(struct by_builder *builder, const char *name, const char *unit);
/* The topology so far: nodes only. It stays at this address until by_builder_finish returns. */
const struct by_topology *by_builder_topology(const struct by_builder *builder);
/* Adds a node and copies `node->name`; returns its index. Names must be unique (the caller checks)
 * and nodes at most BY_TOPOLOGY_NODES_MAX. */
uint32_t by_builder_node(struct by_builder *builder, const struct by_node *node);
/* Shorthands for presets: a formatted name; a switch multicasts and aggregates. */
uint32_t by_builder_compute(struct by_builder *builder, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
uint32_t by_builder_switch(struct by_builder *builder, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Adds a cable: two arcs when `both_ways`, else one from a to b. `bandwidth` must be positive, a
 * and b different. */
void by_builder_link(struct by_builder *builder, uint32_t a, uint32_t b, bool both_ways,
                     struct by_fraction bandwidth, struct by_place place);
/* Checks the whole (at least one compute node, connected, capacities that fit) and returns the
 * topology. The builder cannot be used again, but must still be freed. Returns 0, or BY_EINVAL or
 * BY_ERANGE with `problem` filled. */
int by_builder_finish(struct by_builder *builder, struct by_topology **topology, struct by_problem *problem);

#endif
