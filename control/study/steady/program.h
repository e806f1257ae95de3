/*
 * Shared parts of the linear programs of steady states: a row for each port and processor, which
 * limits its busy time to all of its time, and the lanes into which a solution is split. Private to
 * control/study/steady. One thread for each program.
 */
#ifndef BY_STUDY_STEADY_PROGRAM_H
#define BY_STUDY_STEADY_PROGRAM_H

#include "control/planner/lp/lp.h"
#include "control/study/steady/platform.h"
#include "control/study/steady/steady.h"

/* A resource and its row: a port, a link whose ends share no ports, or a processor. */
struct by_steady_resource {
    enum by_series_resource kind;
    uint32_t node, to;
    uint32_t row;
};

struct by_resources {
    uint32_t count, room;
    struct by_steady_resource *list;
    uint32_t *sends, *receives, *computes; /* by node: the row, or BY_SERIES_NONE */
    uint32_t *link;                        /* by link */
};

/* Adds the rows to `lp`. Without one the row of a resource is its place in the list. */
void by_resources_make(struct by_resources *resources, const struct by_platform *platform, struct by_lp *lp);
void by_resources_free(struct by_resources *resources);
/* Adds the time of a message of `size` on a link to `column` of `lp`. */
void by_resources_charge(const struct by_resources *resources, const struct by_platform *platform,
                         struct by_lp *lp, uint32_t link, uint32_t column, const mpq_t size);

/* A lane with its weight: operations (or messages) per unit of time. */
struct by_steady_lane {
    mpq_t weight;
    uint32_t task_count, task_room;
    struct by_series_task *tasks;
};

struct by_lanes {
    uint32_t count, room;
    struct by_steady_lane *list;
};

struct by_steady_lane *by_lanes_add(struct by_lanes *lanes);
void by_lane_push(struct by_steady_lane *lane, struct by_series_task task);
void by_lanes_free(struct by_lanes *lanes);

/*
 * Sets the size of messages: reduce: of the values `first` to `last`; scatter, gossip: to receiver
 * `first`.
 */
void by_steady_message_size(const struct by_steady_problem *problem, uint32_t first, uint32_t last,
                            mpq_t size);

/*
 * Removes circular flow: `flow` is by link. Every node still receives the same net amount. The
 * remaining flow leads from sources to sinks without circles.
 */
void by_flow_straighten(const struct by_links *links, uint32_t node_count, mpq_t *flow);

/*
 * Builds and solves the program of scatters and gossips (SSSP, SSPA2A). Fills the series' messages,
 * throughput and prices, and the lanes with routes. Returns 0, or a negative BY_E* with `trouble`
 * filled.
 */
int by_program_flows(const struct by_steady_problem *problem, const struct by_platform *platform,
                     struct by_series *series, struct by_lanes *lanes, struct by_problem *trouble);
/* Does the same for reductions (SSR); the lanes are reduction trees. */
int by_program_reduce(const struct by_steady_problem *problem, const struct by_platform *platform,
                      struct by_series *series, struct by_lanes *lanes, struct by_problem *trouble);
/* Whether trees are generated instead, unless they cannot be priced. */
bool by_program_generates(const struct by_steady_problem *problem, const struct by_platform *platform);
/* Refuses a reduction for which there is no tree: BY_EINVAL. */
int by_program_reduce_refuse(const struct by_steady_problem *problem, struct by_problem *trouble);
/* Stores the prices that are not 0: `prices` is by row. */
void by_program_prices(const struct by_resources *resources, const mpq_t *prices, struct by_series *series);

#endif
