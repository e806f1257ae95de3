/*
 * A scenario: a fabric with its trees, a world's faults, and the calls of every rank of each job.
 * It runs to its end, and every element is checked. Drawn at random from a seed (draw.c) or written
 * by hand (tests). Single-threaded.
 */
#ifndef TESTS_SIM_SCENARIO_H
#define TESTS_SIM_SCENARIO_H

#include "host-driver/sim/world.h"
#include "tests/sim/cabling.h"
#include "tests/sim/oracle.h"

#define SCENARIO_CALLS_MAX 80

/* A switch loses its memory; then the next generation is installed, under which the calls
 * continue, unless resume_ns is 0: the hosts move to standbys. */
struct scenario_crash {
    int node; /* -1: no node loses its memory */
    int dies; /* and it never returns */
    uint64_t crash_ns, resume_ns;
};
#define SCENARIO_CRASHES_MAX 3

struct scenario {
    uint64_t seed;
    char name[96];
    struct fabric fabric;
    struct by_world_config world;
    int call_count[FABRIC_JOBS_MAX];
    struct plan_call calls[FABRIC_JOBS_MAX][SCENARIO_CALLS_MAX];
    uint32_t outstanding_max;           /* maximum number of calls of a rank in progress */
    uint64_t stagger_ns;                /* maximum delay of a rank's posts */
    uint64_t limit_ns;                  /* virtual time */
    uint64_t start_ns[FABRIC_JOBS_MAX]; /* the job's ranks post nothing earlier */
    uint64_t measure_ns;                /* result->share counts from then on; 0: never */
    /* Intended faults. */
    int kill_node;    /* -1: none */
    uint64_t kill_ns; /* time of its failure */
    int freeze_node;  /* -1: none */
    uint64_t freeze_ns, thaw_ns;
    int forget_node; /* a switch that loses its memory at forget_ns, before a reload; -1: none */
    uint64_t forget_ns;
    uint64_t reload_ns; /* time at which all tables are replaced with gen + 1 and all ranks start again; 0:
                           never */
    /* At again_ns (0: never) every host's process ends at any point, and new ones make the same
     * calls with other data on the same tables, and then once more under the next generation, which
     * must succeed. Earlier, at quit_ns, the host quit_node (-1: none) ends alone. */
    uint64_t again_ns, quit_ns;
    int quit_node;
    int crash_count;
    struct scenario_crash crashes[SCENARIO_CRASHES_MAX];
    uint64_t spread_ns;  /* maximum time until a node or host is informed */
    struct fabric after; /* the trees of the first next generation; the second has the old trees again */
    /* Standbys of job 0: fabrics with its later trees and generations, the last tree for rounds;
     * see struct by_world_standby and by_world_stand_by. */
    int standby_count;
    struct fabric standbys[FABRIC_STANDBYS_MAX];
    uint64_t replaces[FABRIC_STANDBYS_MAX];
    uint64_t patience_ns, attempt_ns;
    uint64_t flip_ns; /* time at which a bit of a slot of flip_node flips; 0: never */
    int flip_node;
    /* Not 0: sums and products of floats have any magnitudes, drawn from this seed, and depend on
     * the order. Then the results are only compared among the ranks; see digest. */
    uint64_t rough_seed;
    int odd_rank; /* the rank of job 0 that posts odd_call instead of call 0; -1: none */
    struct plan_call odd_call;
};

/* The end of one rank of one job. */
struct rank_end {
    int ended;                    /* calls that have ended */
    struct by_call_status status; /* of the first call that ended with an error */
};

struct scenario_result {
    int ok;
    char fault[256]; /* the first error */
    uint64_t wrong;  /* number of wrong elements */
    uint64_t checked;
    uint64_t digest;     /* of all received data, independent of times and order */
    int flipped;         /* a bit has flipped */
    int named;           /* jobs that ended with the name of the node with the flipped bit */
    uint64_t bytes;      /* user data whose results were checked */
    uint64_t elapsed_ns; /* virtual time */
    /* From measure_ns to the first end of a job: chunks answered at rank 0 of each job, and the
     * duration. */
    uint64_t share[FABRIC_JOBS_MAX], share_ns;
    uint64_t streamed; /* bytes of the first stream of other traffic in that time */
    struct by_world_counters world;
    struct by_endpoint_counters endpoints;
    struct by_engine_counters engines;
    struct rank_end ranks[FABRIC_JOBS_MAX][FABRIC_NODES_MAX];
    struct rank_end again[FABRIC_JOBS_MAX][FABRIC_NODES_MAX]; /* of the run on used tables */
    uint64_t again_took_ns;                                   /* duration of that run */
    /* Of each rank of job 0: the time of the first result after its calls continued in another
     * generation; 0: none. */
    uint64_t resumed_ns[FABRIC_NODES_MAX];
    struct by_world_move moves[FABRIC_NODES_MAX]; /* of each rank of job 0 */
    uint32_t trip_ns; /* the least round trip of a chunk at rank 0 of job 0 before the first crash */
};

/* Initializes a scenario without faults and calls on an empty fabric; all other values are
 * valid. */
void scenario_init(struct scenario *scenario, uint64_t seed);
void scenario_add_call(struct scenario *scenario, int job, unsigned collective, unsigned op, unsigned dtype,
                       uint64_t count);
/* Adds a sum of 6000 elements to job 0 whose type, root, mode and place follow from `seed`, and a
 * short allreduce after it. */
void scenario_add_seeded(struct scenario *scenario, unsigned collective, uint64_t seed);
/* Runs the scenario. With expect_errors calls may end with errors (see result->ranks), and only
 * successful ones are checked. */
void scenario_run(const struct scenario *scenario, int expect_errors, struct scenario_result *result);

/* Draws scenario `number` of the campaign `seed`. */
void scenario_draw(struct scenario *scenario, uint64_t seed, uint64_t number);
/* Runs a drawn scenario. If a bit of a node's memory flips, calls may end with errors, but only if
 * some rank reports this node, and no rank reports another one. */
void scenario_campaign(const struct scenario *scenario, struct scenario_result *result);
/* Writes one paragraph. `text` has at least 1024 bytes. */
void scenario_describe(const struct scenario *scenario, char *text, size_t bytes);

#endif
