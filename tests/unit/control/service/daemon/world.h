/*
 * A world for recovery as a step: two jobs of four ranks, six switches and four links, whose
 * planner and switches need some rounds for what they are asked. It checks what always holds: work
 * never overlaps, calls go on only with tables that are on the switches. One at a time;
 * single-threaded.
 */
#ifndef BY_TEST_DAEMON_WORLD_H
#define BY_TEST_DAEMON_WORLD_H

#include "control/service/daemon/recover.h"
#include "offload/base/prng.h"

#define JOBS  2
#define RANKS 4
#define NODES                                                                                                \
    6 /* 0 and 1 are spines: without both of them there is no path; 3 is job 0's, 4 job 1's alone            \
       */
#define LINKS          4 /* of job 0 and job 1 by turns */
#define WORLD_TRUST_NS UINT64_C(10000000000)

/* How long what swallows packets is held at first (ns). */
extern uint64_t world_trust_ns;

/* A rank's process. */
struct process {
    bool here, failed, go;
    uint16_t image_of;    /* the attempt whose table came on this connection */
    uint16_t gen, frozen; /* frozen: the attempt, or 0 */
    uint32_t away;        /* rounds until it comes back */
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
    bool stranded[JOBS];              /* no plan is found for it */
    char last[JOBS][BY_RECOVER_TEXT]; /* what its ranks were told, last */
};

extern struct daemon_world world;

/* Jobs and ranks are there, in generation 1; `seed` of all that is drawn. */
void world_open(uint64_t seed);
/* A controller for the jobs as they are: of one that starts anew their tables have been used. */
void world_controller(bool used);
/* Something happens now. */
void world_give(struct by_recover_event event);
void world_come(uint32_t job, uint16_t rank);
void world_leave(uint32_t job, uint16_t rank, bool dies);
void world_swallows(bool is_link, uint32_t what);
/* 20 ms: work gets done, ranks come back and go on; where it is not calm pushes fail now and then.
 */
void world_round(bool calm);
/* The same, and nobody comes back. */
void world_round_alone(void);
/* So many calm rounds, or seconds of them. */
void world_rounds(unsigned count);
void world_seconds(unsigned count);

#endif
