/*
 * A world for recovery as a step function: two jobs of four ranks, six switches and four links,
 * with a planner and switches that take some rounds for each request. It checks the invariants:
 * work never overlaps, and calls continue only with tables that are on the switches. One at a time;
 * single-threaded.
 */
#ifndef BY_TEST_DAEMON_WORLD_H
#define BY_TEST_DAEMON_WORLD_H

#include "control/service/daemon/recover.h"
#include "offload/base/prng.h"

#define JOBS  2
#define RANKS 4
#define NODES                                                                                                \
    6 /* 0 and 1 are spines: without both of them there is no path; only job 0 uses 3, only job 1 uses 4     \
       */
#define LINKS          4 /* of job 0 and job 1 alternately */
#define WORLD_TRUST_NS UINT64_C(10000000000)

/* How long a blackhole is held at first (ns). */
extern uint64_t world_trust_ns;

/* A rank's process. */
struct process {
    bool here, failed, go;
    uint16_t image_of;    /* the attempt whose table arrived on this connection */
    uint16_t gen, frozen; /* frozen: the attempt, or 0 */
    uint32_t away;        /* rounds until it returns */
    uint64_t nonce;
};

struct daemon_world {
    struct by_recover *recover;
    struct by_prng prng;
    uint64_t now_ns;
    struct process rank[JOBS][RANKS];
    uint16_t job_failed[JOBS];
    uint32_t plan_in, push_in; /* rounds until the work is done, or UINT32_MAX */
    uint16_t planned[JOBS], given[JOBS], pushed[JOBS];
    unsigned plans, pushes, freezes, goes, settled, fails, renewals;
    bool stranded[JOBS];              /* no plan exists for this job */
    bool pushing[JOBS];               /* it is in the last plan */
    char last[JOBS][BY_RECOVER_TEXT]; /* the last error reported to its ranks */
};

extern struct daemon_world world;

/* Opens jobs and ranks in generation 1; `seed` determines all random values. */
void world_open(uint64_t seed);
/* Makes a controller for the present jobs; `used`: it has restarted, so their tables have been
 * used. */
void world_controller(bool used);
/* Gives an event to recovery. */
void world_give(struct by_recover_event event);
void world_come(uint32_t job, uint16_t rank);
void world_leave(uint32_t job, uint16_t rank, bool dies);
void world_swallows(bool is_link, uint32_t what);
/* Advances 20 ms: work progresses, ranks return and resume. If not `calm`, pushes fail at times. */
void world_round(bool calm);
/* The same, but no rank returns. */
void world_round_alone(void);
/* Runs this number of calm rounds, or for this number of seconds. */
void world_rounds(unsigned count);
void world_seconds(unsigned count);

#endif
