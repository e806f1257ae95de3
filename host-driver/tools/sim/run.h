/* The run of banyan-sim. Every rank posts the call, first as a short warm-up that establishes the
 * session, then all ranks at the same instant; the result is the time of the last rank.
 * Single-threaded. */
#ifndef BY_SIM_RUN_H
#define BY_SIM_RUN_H

#include <stdio.h>

#include "host-driver/tools/sim/check.h"
#include "host-driver/tools/sim/work.h"

struct run_rank {
    uint32_t node;
    uint32_t id; /* of the call */
    uint8_t posted;
    uint8_t ended;
    uint64_t end_ps; /* since the call began */
};

struct sim_run {
    const struct sim_work *work;
    struct by_world *world;
    struct sim_check check;
    uint32_t rank_count;
    struct run_rank *ranks;
    uint32_t *rank_of; /* by node */
    uint64_t begin_ps;
    uint32_t round; /* number of calls before this one */
    uint32_t ended;
    int done;
    int error; /* of a call */
    uint32_t error_rank;
    struct by_call_status status;
    uint64_t time_ps; /* of the timed call */
    uint64_t warm_retx;
    uint64_t missing;  /* chunks, over all calls */
    int is_timed;      /* the last round */
    FILE *series;      /* samples of the timed call; NULL: none */
    uint64_t *busy_ps; /* by direction: time for which it has sent until the last sample */
};

/* Runs `work`, and writes a line for each sample and each direction in use to `series` (may be
 * NULL): nanoseconds since the call began, the direction, bytes in its queue, and the time (ps) for
 * which it has sent since the last sample. The world owns the images of its fabric afterwards.
 * Returns 0 (also if results are wrong or a call ended with an error: see `run`), or a negative
 * BY_E* with the error text set.
 */
int run_all(struct sim_run *run, const struct sim_work *work, FILE *series);
void run_close(struct sim_run *run);

#endif
