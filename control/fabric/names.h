/* Finds nodes by name, for readers that look up millions of names. Once complete, a table may be
 * read by any number of threads. */
#ifndef BY_FABRIC_NAMES_H
#define BY_FABRIC_NAMES_H

#include "control/base/json.h"
#include "control/fabric/topology.h"

struct by_names;

/* Makes a table of the nodes that `topology` has now. Keeps a pointer to `topology`. */
struct by_names *by_names_new(const struct by_topology *topology);
void by_names_free(struct by_names *names);
/* Adds node number `node` of the topology, which the table does not have yet. */
void by_names_add(struct by_names *names, uint32_t node);
/* Index of the node whose name is these `bytes` bytes, or -1. */
int64_t by_names_find(const struct by_names *names, const char *name, size_t bytes);
/* The same for lists that are mostly in the order of the nodes: tries node `*near` and the next one
 * first. Sets `*near` to the node found. */
int64_t by_names_find_near(const struct by_names *names, const char *name, size_t bytes, uint32_t *near);
/* Reads a string and finds the node with that name. Returns false if the next value is not the name
 * of a node; `*text` and `*shown` are then what a message may show, with %.*s. */
bool by_names_read(const struct by_names *names, struct by_json *json, uint32_t *node, const char **text,
                   int *shown);

#endif
