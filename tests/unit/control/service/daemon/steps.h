/*
 * The steps of a change between plans, admission, a store and switches that a test decides. Jobs 2,
 * 5 and 7 are on three switches, and 5 has failed. Everything that is asked of the other parts is
 * recorded as lines. One at a time; the worker's tasks run in the test's thread.
 */
#ifndef BY_TEST_DAEMON_STEPS_H
#define BY_TEST_DAEMON_STEPS_H

#include "control/service/daemon/changes.h"
#include "control/service/daemon/daemon.h"

enum { H0, X0, X1, X2, NODES };
enum { H0_X0, X0_X1, X1_X2, LINKS };

extern struct steps_rig {
    struct by_daemon daemon;
    struct by_daemon_switch switches[3];
    uint32_t switch_of[NODES];
    struct by_job jobs[3];                 /* 2, 5 and 7; 5 has failed */
    struct by_task *task;                  /* of the worker */
    bool held_node, held_link, held_first; /* the first one alone */
    /* what fails */
    int draw_error, plan_error, lower_error, fabric_error, slots_error, share_error, images_error;
    int image_error; /* of x1 */
    int reserve_error, begin_error, write_error, push_error, settle_error;
    uint32_t fits, budget;
    uint32_t sets; /* of trees that can be made for standbys */
    int find_error, sets_error;
    enum by_push_settled settled;
    bool is_settled, may_follow, skips_record;
    bool no_eventfd;   /* there are no more descriptors */
    uint64_t clock;    /* of push ids */
    uint64_t readings; /* of the monotonic clock: each one 1.5 s after the last */
    struct by_fabric_text ahead;
} steps;

void steps_open(void);
/* Frees the change, too. */
void steps_close(struct by_change *change);
struct by_job_tables *steps_tables(uint16_t gen);
/* Plans a change of job 2, with all that follows. */
struct by_change *steps_plan(bool repair);
/* Pushes it, with all that follows; forgets the lines of before. */
void steps_push(struct by_change *change);
/* Runs what the worker has got, and all that follows. */
void steps_work(void);
/* Records the result of a plan. */
void steps_planned(struct by_daemon *daemon, struct by_change *change);

#endif
