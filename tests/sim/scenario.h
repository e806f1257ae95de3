/*
 * A scenario: a fabric with its trees, a world's faults, and the calls that every rank of each job
 * makes; run to its end with every element checked. Drawn at random from a seed (draw.c) or made by
 * hand (tests). Single-threaded.
 */
#ifndef TESTS_SIM_SCENARIO_H
#define TESTS_SIM_SCENARIO_H

#include "host-driver/sim/world.h"
#include "tests/sim/cabling.h"
#include "tests/sim/oracle.h"

#define SCENARIO_CALLS_MAX 80

/* A switch loses its memory, and the next generation comes, under which the calls go on. */
struct scenario_crash {
    int node; /* -1: none loses it */
    int dies; /* and it never comes back */
    uint64_t crash_ns, resume_ns;
};
#define SCENARIO_CRASHES_MAX 2

struct scenario {
    uint64_t seed;
    char name[96];
    struct fabric fabric;
    struct by_world_config world;
    int call_count[FABRIC_JOBS_MAX];
    struct plan_call calls[FABRIC_JOBS_MAX][SCENARIO_CALLS_MAX];
    uint32_t outstanding_max;           /* calls that a rank keeps running */
    uint64_t stagger_ns;                /* ranks post up to this long after they could */
    uint64_t limit_ns;                  /* virtual time */
    uint64_t start_ns[FABRIC_JOBS_MAX]; /* a job's ranks post nothing before */
    uint64_t measure_ns;                /* from then on result->share counts; 0: never */
    /* What goes wrong on purpose. */
    int kill_node;    /* -1: none */
    uint64_t kill_ns; /* when it dies */
    int freeze_node;  /* -1: none */
    uint64_t freeze_ns, thaw_ns;
    int forget_node; /* a switch that loses its memory at forget_ns, before a reload; -1: none */
    uint64_t forget_ns;
    uint64_t reload_ns; /* then all tables come anew with gen + 1, and all ranks start over; 0: never */
    /* At again_ns (0: never) every host's process ends, whatever it was at, and new ones make the
     * same calls with other data on the same tables; then once more under the next generation, and
     * that must be right. Before, at quit_ns, the host quit_node (-1: none) ends for itself. */
    uint64_t again_ns, quit_ns;
    int quit_node;
    int crash_count;
    struct scenario_crash crashes[SCENARIO_CRASHES_MAX];
    uint64_t spread_ns;  /* what telling somebody of it takes, at the most */
    struct fabric after; /* the trees of the first generation that comes; the second has the old ones again */
    uint64_t flip_ns;    /* then a bit of a slot of flip_node flips; 0: never */
    int flip_node;
    /* Not 0: sums and products of floats are of any magnitudes, from this seed, and depend on the
     * order. The results are then only compared among the ranks; see digest. */
    uint64_t rough_seed;
    int odd_rank; /* this rank of job 0 posts odd_call instead of call 0; -1: none */
    struct plan_call odd_call;
};

/* How one rank of one job came out. */
struct rank_end {
    int ended;                    /* calls that ended */
    struct by_call_status status; /* of the first call that ended with an error */
};

struct scenario_result {
    int ok;
    char fault[256]; /* what was wrong first */
    uint64_t wrong;  /* elements */
    uint64_t checked;
    uint64_t digest;     /* of everything that was received, whenever and in whatever order */
    int flipped;         /* a bit */
    int named;           /* jobs that ended with the name of the node whose bit it was */
    uint64_t bytes;      /* of user data whose answers were checked */
    uint64_t elapsed_ns; /* virtual */
    /* From measure_ns to the first end of a job: chunks answered at rank 0 of each; how long. */
    uint64_t share[FABRIC_JOBS_MAX], share_ns;
    struct by_world_counters world;
    struct by_endpoint_counters endpoints;
    struct by_engine_counters engines;
    struct rank_end ranks[FABRIC_JOBS_MAX][FABRIC_NODES_MAX];
    struct rank_end again[FABRIC_JOBS_MAX][FABRIC_NODES_MAX]; /* of the run on used tables */
    uint64_t again_took_ns;                                   /* that run's time */
};

/* A scenario without faults and calls on an empty fabric, with sound values in all else. */
void scenario_init(struct scenario *scenario, uint64_t seed);
void scenario_add_call(struct scenario *scenario, int job, unsigned collective, unsigned op, unsigned dtype,
                       uint64_t count);
/* Runs it. With expect_errors calls may end with errors (see result->ranks), and only those that
 * end well are checked. */
void scenario_run(const struct scenario *scenario, int expect_errors, struct scenario_result *result);

/* Draws scenario `number` of the campaign `seed`. */
void scenario_draw(struct scenario *scenario, uint64_t seed, uint64_t number);
/* Runs a drawn scenario; where a bit of a node's memory flips calls may end with errors, but only
 * if some rank is told which node it was, and none a wrong one. */
void scenario_campaign(const struct scenario *scenario, struct scenario_result *result);
/* One paragraph for people. `text` of at least 1024 bytes. */
void scenario_describe(const struct scenario *scenario, char *text, size_t bytes);

#endif
