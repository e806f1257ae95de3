/* Minimum spanning arborescences of small dense graphs. Pure: any thread. */
#ifndef BY_PLANNER_NETWORK_ARBORESCENCE_H
#define BY_PLANNER_NETWORK_ARBORESCENCE_H

#include <stdbool.h>
#include <stdint.h>

/* The cost that represents "no arc". */
#define BY_ARBORESCENCE_NONE INT64_MAX

/*
 * Finds the cheapest out-tree from `root` over `count` nodes; cost[from * count + to]. Sets
 * parent[node] for each node but the root. Returns false when not all nodes can be reached. Chu and
 * Liu 1965, Edmonds 1967: chooses the cheapest arc into each node, contracts cycles, and expands
 * them.
 */
bool by_arborescence_find(uint32_t count, const int64_t *cost, uint32_t root, uint32_t *parent);

#endif
