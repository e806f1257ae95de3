/*
 * The command `banyan sim`: runs plans on a simulated fabric. Files: sim.c (the command),
 * sim_options.c, sim_choose.c (chunk, window and batch), sim_work.c (the folder that banyan-sim
 * runs), sim_series.c (samples), sim_report.c (one run) and sim_sweep.c (one run for each of
 * several probabilities). Single-threaded.
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
#define SIM_LOSSY_MAX 64u
#define SIM_SWEEP_MAX 32u
/*
 * Bytes that a packet occupies on a cable in addition to its payload: banyan, UDP, IP and Ethernet
 * headers, preamble, check sequence and gap.
 */
#define SIM_HEADER_BYTES 106u
#define SIM_ELEMENT      4u /* f32 */

/* --sweep: the probability that differs from run to run. */
struct sim_sweep {
    const char *word; /* NULL: one run */
    size_t at;        /* of its member in struct sim_options */
    uint32_t count;
    uint32_t parts[SIM_SWEEP_MAX];
    char text[SIM_SWEEP_MAX][24]; /* as given */
};

/* Most of a link that other packets may take, in units of 2^-32: 0.95. */
#define SIM_TRAFFIC_MAX (UINT32_MAX / 20 * 19)

struct sim_options {
    const char *topology;
    uint32_t plan_count;
    const char *plans[SIM_PLANS_MAX];
    unsigned collective; /* 0: the first plan's */
    int64_t root;        /* rank; -1: the plan's */
    uint64_t bytes;
    uint32_t chunk, window, inflight, batch; /* 0: recommended values */
    uint64_t latency_ps;
    uint32_t loss, dup, reorder, link_loss; /* probabilities in units of 2^-32 */
    uint32_t traffic;                       /* part of every link that other packets take, the same */
    uint32_t loss_run;                      /* mean length of a run of losses; 0: each by itself */
    uint32_t lossy_count;
    const char *lossy[SIM_LOSSY_MAX]; /* "A,B": links that lose packets */
    uint64_t seed, buffer, shared, mark;
    uint32_t warmup;
    struct sim_sweep sweep;
    const char *report, *series;
    uint64_t sample_ns;
    bool json, keep, spoil;
};

/* Properties of the call that sim_choose measures, and its recommendations. */
struct sim_choice {
    uint32_t chunk, window, batch;
    uint32_t inflight;  /* chunks of a rank in flight over all trees */
    uint64_t rto_ns;    /* least time after which a chunk is sent again; 0: the endpoint's own */
    uint32_t height;    /* cables from the root to the farthest leaf, of the highest tree */
    double fill_ps;     /* picoseconds that each byte of a chunk adds to the first chunk's longest way */
    double mean_height; /* the same two values as means over trees, weighted by their load */
    double mean_fill_ps;
    double latency_bound_ps; /* no call is faster: the slowest first chunk, without queues */
    double tree_rate;        /* bytes/s of the fastest tree */
    double pair_part;        /* part of the data on pairs of trees */
};

struct sim {
    struct sim_options options;
    struct by_topology *topology;
    struct by_plan *plans[SIM_PLANS_MAX];
    const struct by_plan *plan; /* the collective's plan, or NULL if trees of another plan serve it */
    unsigned collective;
    uint32_t root, ranks;
    struct by_fraction unit; /* bytes/s in one unit of the topology */
    uint64_t count;          /* elements simulated for a call: one in `batch` */
    uint64_t bytes;          /* size of the call */
    struct sim_choice choice;
    struct by_lowering *lowering;
    char folder[SIM_PATH];
    json_t *result; /* the JSON output of banyan-sim */
    int status;     /* exit status of banyan-sim */
};

/* The use of one direction of a link. */
struct sim_report_row {
    uint32_t arc;
    uint64_t packets, payload, header, busy_ps, queue_high, lost, dropped, marked;
};

struct sim_report_verdict {
    uint64_t time_ps;
    uint32_t row_count;
    struct sim_report_row *rows;
    uint32_t fullest;    /* row with the longest payload time */
    double algbw;        /* in the topology's unit */
    double header_share; /* part of the most loaded link's busy time */
    double raw, net;     /* parts of the optimum: measured, and without headers; 0: unknown */
    int wrong;           /* elements with a wrong value, or chunks that are missing */
    int impossible;      /* the run was faster than the bound */
    int repairs;
    /*
     * Comparison of the counted bytes with the prediction of the tables: "equal" or "differs". NULL
     * if injected faults make it meaningless.
     */
    const char *traffic;
};

/* Parses the options. Returns 0, -1 after --help, or BY_EXIT_USAGE. */
int sim_options_read(int argc, char **argv, struct sim_options *options);
/* Recommends sizes for the collective on the trees of sim->lowering. Sizes that were given stay. */
void sim_choose(struct sim *sim);
/* Returns the arc from `from` over a link. Answers may leave by a link that is one-way in the other
 * direction if a parallel link has theirs (two such links may describe one cable): then that of the
 * parallel link; UINT32_MAX if there is none. */
uint32_t sim_arc(const struct by_topology *topology, uint32_t link, uint32_t from);
/* Writes the tables and `work` into sim->folder. Returns 0 or an exit status. */
int sim_work_write(const struct sim *sim);
/* Writes the folder, runs banyan-sim on it, and reads its result. Returns 0 or an exit status. */
int sim_run(struct sim *sim);
/* Writes --series from the samples of banyan-sim. Returns 0 or an exit status. */
int sim_series_write(const struct sim *sim);
/* Prints the result; returns the corresponding exit status. */
int sim_report(const struct sim *sim);
/* Runs each point of --sweep, and prints a table. Returns the status of the first that failed. */
int sim_sweep(struct sim *sim);

/* Parses --sweep WORD=P,P,... */
int sim_sweep_read(void *object, const char *text, struct by_option_why *why);
/* Judges the result of a run. The caller frees `rows`. */
void sim_report_judge(const struct sim *sim, struct sim_report_verdict *verdict);
/* Prints what is run, in lines that begin with '#'. */
void sim_report_call(const struct sim *sim);
json_t *sim_report_json(const struct sim *sim, const struct sim_report_verdict *verdict);
/* Returns the exit status of a judged run, after an error message if it is not 0. */
int sim_report_status(const struct sim *sim, const struct sim_report_verdict *verdict);
/* Prints the JSON object where --json requires it, and writes the file of --report. Returns 0 or an
 * exit status. */
int sim_report_give(const struct sim *sim, const json_t *object);

#endif
