/*
 * Integer maximum flow with early stop, and the minimum cuts that it proves (Dinic 1970; levels are
 * found backward from the sink). The planner asks the same network thousands of times with slightly
 * other capacities, so arcs are added once and set again at little cost. One thread for each
 * network.
 */
#ifndef BY_PLANNER_FLOW_FLOW_H
#define BY_PLANNER_FLOW_FLOW_H

#include <stdbool.h>
#include <stdint.h>

/* A capacity that no cut of interest contains. Sums of real capacities must stay below it. */
#define BY_FLOW_INFINITE (INT64_MAX / 4)

struct by_flow;

struct by_flow *by_flow_new(uint32_t node_count);
void by_flow_free(struct by_flow *flow);
/* Adds an arc; returns its number. The capacity is from 0 to BY_FLOW_INFINITE. */
uint32_t by_flow_add(struct by_flow *flow, uint32_t from, uint32_t to, int64_t capacity);
/* Changes an arc's capacity for the runs that follow. */
void by_flow_set(struct by_flow *flow, uint32_t arc, int64_t capacity);
int64_t by_flow_capacity(const struct by_flow *flow, uint32_t arc);
/* The maximum flow from `source` to `sink`, or `limit` once it is known to be at least that. Starts
 * afresh at each call. */
int64_t by_flow_run(struct by_flow *flow, uint32_t source, uint32_t sink, int64_t limit);
/* What the last run sent along an arc. */
int64_t by_flow_amount(const struct by_flow *flow, uint32_t arc);
/* After a run that ended below its limit: marks the smallest sink side of a minimum cut (the nodes
 * that still reach the sink). */
void by_flow_sink_side(const struct by_flow *flow, bool *side);
/* The same for the smallest source side (the nodes that the source still reaches). */
void by_flow_source_side(const struct by_flow *flow, bool *side);

#endif
