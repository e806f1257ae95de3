/*
 * banyan sim: plans on a simulated fabric. Shared by sim.c (the command), sim_options.c,
 * sim_choose.c (chunk, window and batch), sim_work.c (the folder that banyan-sim runs) and
 * sim_report.c. Single-threaded.
 */
#ifndef BY_CLI_SIM_H
#define BY_CLI_SIM_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "control/cli/cli.h"
#include "control/plan/plan.h"
#include "control/tables/lower.h"
#include "control/tables/traffic.h"
#include "offload/wire/types.h"

#define SIM_PLANS_MAX 16u
#define SIM_PATH      512u
/* Bytes that a packet takes on a cable beside its payload: banyan, UDP, IP and Ethernet headers,
 * preamble, check sequence and gap. */
#define SIM_HEADER_BYTES 106u
#define SIM_ELEMENT      4u /* f32 */

struct sim_options {
    const char *topology;
    uint32_t plan_count;
    const char *plans[SIM_PLANS_MAX];
    unsigned collective; /* 0: that of the first plan */
    int64_t root;        /* rank; -1: that of the plan */
    uint64_t bytes;
    uint32_t chunk, window, inflight, batch; /* 0: as recommended */
    uint64_t latency_ps;
    uint32_t loss, dup, reorder; /* parts of 2^32 */
    uint64_t seed, buffer, mark;
    uint32_t warmup;
    const char *report;
    bool json, keep, spoil;
};

/* What sim_choose found out, and recommends. */
struct sim_choice {
    uint32_t chunk, window, batch;
    uint32_t inflight;  /* chunks of a rank on their way over all trees */
    uint32_t height;    /* cables from the farthest leaf to the root, of the highest tree */
    double fill_ps;     /* what each byte of a chunk adds to the longest way of the first one */
    double mean_height; /* the same as means over trees, by what they carry */
    double mean_fill_ps;
    double tree_rate; /* of the fastest tree, bytes/s */
};

struct sim {
    struct sim_options options;
    struct by_topology *topology;
    struct by_plan *plans[SIM_PLANS_MAX];
    const struct by_plan *plan; /* of the collective, or NULL: trees of another plan serve it */
    unsigned collective;
    uint32_t root, ranks;
    struct by_fraction unit; /* bytes/s of one of the topology's unit */
    uint64_t count;          /* elements of a call that are simulated: one in `batch` */
    uint64_t bytes;          /* that the call stands for */
    struct sim_choice choice;
    struct by_lowering *lowering;
    char folder[SIM_PATH];
    json_t *result; /* what banyan-sim said */
    int status;     /* its exit status */
};

/* -1 after --help, 0, or BY_EXIT_USAGE. */
int sim_options_read(int argc, char **argv, struct sim_options *options);
/* A recommendation for the collective on the trees of sim->lowering; sizes that were given stay. */
void sim_choose(struct sim *sim);
/* Writes tables and `work` into sim->folder. 0 or an exit status. */
int sim_work_write(const struct sim *sim);
/* Prints the result; returns the exit status that it deserves. */
int sim_report(const struct sim *sim);

#endif
