/*
 * Recovery as a step function, whose actions are recorded as lines. Job 9 has three ranks and is in
 * generation 4; there are two switches and a link. One at a time.
 */
#ifndef BY_TEST_DAEMON_ACTS_H
#define BY_TEST_DAEMON_ACTS_H

#include "control/service/daemon/recover.h"

enum { RANKS = 3, NODES = 2, LINKS = 1 };
#define MS UINT64_C(1000000)

extern struct acts_rig {
    struct by_recover *recover;
    uint64_t now_ns;
    bool unused[NODES]; /* no job uses the node */
    char done[4096];    /* the actions since the last check, a line each */
} acts;

/* `used`: a run may have used the tables of the job. */
void acts_open(bool used);
void acts_close(void);
void acts_expect(const char *actions);
/* Events: any; of a rank; of a switch or link; of requested work; a tick some time later. */
void acts_give(struct by_recover_event event);
void acts_rank(enum by_recover_type type, uint32_t job, uint16_t number, uint16_t gen, uint64_t nonce);
void acts_part(enum by_recover_type type, uint32_t what);
void acts_work(enum by_recover_type type, int error, const char *text);
void acts_later(uint64_t ms);
void acts_generations(uint16_t base, uint16_t next);
/* An event of every rank; the request for another generation of a job. */
void acts_ranks(enum by_recover_type type, uint16_t gen);
void acts_renew(uint32_t job);
/* All ranks of a first run come; the same after it is opened. */
void acts_come(void);
void acts_start(void);
/* What is planned and pushed becomes the next generation of all ranks. */
void acts_move(uint16_t from, uint16_t to);
/* No plan exists for the job, and the switches get tables without it. */
void acts_no_plan(void);

#endif
