/*
 * Integer maximum flow that can stop early, and the minimum cuts that prove it (Dinic 1970; levels
 * are distances to the sink, found backward from it). The planner runs flows on the same network
 * thousands of times with slightly different capacities. Arcs are therefore added once, and
 * changing a capacity is cheap. Each network belongs to one thread.
 */
#ifndef BY_PLANNER_FLOW_FLOW_H
#define BY_PLANNER_FLOW_FLOW_H

#include <stdbool.h>
#include <stdint.h>

/*
 * The capacity of arcs that no relevant cut contains. Sums of real capacities must stay below it.
 */
#define BY_FLOW_INFINITE (INT64_MAX / 4)

struct by_flow;

struct by_flow *by_flow_new(uint32_t node_count);
void by_flow_free(struct by_flow *flow);
/* Adds an arc; returns its number. The capacity is from 0 to BY_FLOW_INFINITE. */
uint32_t by_flow_add(struct by_flow *flow, uint32_t from, uint32_t to, int64_t capacity);
/* Changes an arc's capacity for the runs that follow. */
void by_flow_set(struct by_flow *flow, uint32_t arc, int64_t capacity);
int64_t by_flow_capacity(const struct by_flow *flow, uint32_t arc);
/* Returns the maximum flow from `source` to `sink`, or `limit` as soon as the flow is at least
 * that. Each call starts from zero flow. */
int64_t by_flow_run(struct by_flow *flow, uint32_t source, uint32_t sink, int64_t limit);
/* Returns the flow of the last run along an arc. */
int64_t by_flow_amount(const struct by_flow *flow, uint32_t arc);
/* Marks the smallest sink side of a minimum cut: the nodes that still reach the sink. Valid after a
 * run that ended below its limit. */
void by_flow_sink_side(const struct by_flow *flow, bool *side);
/* The same for the smallest source side: the nodes that the source still reaches. */
void by_flow_source_side(const struct by_flow *flow, bool *side);

#endif
