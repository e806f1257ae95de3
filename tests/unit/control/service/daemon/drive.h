/*
 * The driver of recovery with its decisions (recover.c), between changes, ranks and switches that a
 * test plays. Two jobs, 3 and 7, have both hosts of a fabric with two switches. Everything that is
 * requested and reported is recorded as lines. One at a time.
 */
#ifndef BY_TEST_DAEMON_DRIVE_H
#define BY_TEST_DAEMON_DRIVE_H

#include "control/service/daemon/changes.h"
#include "control/service/daemon/recovery.h"

enum { H0, H1, X0, X1, NODES };
enum { H0_X0, H1_X0, H0_X1, H1_X1, LINKS };

extern struct drive_rig {
    struct by_daemon daemon;
    struct by_daemon_switch switches[2];
    struct by_link_state links[LINKS + 1]; /* the last is none */
    struct by_job jobs[2];                 /* 3 and 7, of both hosts */
    struct by_lowering lowerings[9];       /* by generation; nothing of them is read */
    struct by_watcher *timer;
    uint32_t changes;     /* that exist */
    unsigned descriptors; /* of the process before it was opened */
    struct by_change *change;
    by_change_fn *planned, *pushed;
    uint32_t target;                    /* of pushes, or UINT32_MAX: none */
    bool records, alternates;           /* the store has the generations; jobs have paths without any node */
    bool ahead;                         /* plans were made in advance */
    bool no_time;                       /* the timer has not expired */
    bool no_image;                      /* images of hosts cannot be made */
    bool no_timer, no_memory, no_watch; /* what fails when it is opened, which is recorded */
} drive;

/* Both jobs run on x0 in generation 1. */
void drive_open(void);
void drive_close(void);
/* Closes recovery and opens it again. */
void drive_reopen(void);
/* Lets all their ranks come. */
void drive_run(void);
/* Opens it, with all ranks there. */
void drive_start(void);
/* Switch x0 ends, and both jobs are planned without it. */
void drive_lose_x0(void);
/* Makes tables of that generation whose trees use the links of this switch. */
struct by_job_tables *drive_tables(uint16_t gen, uint32_t node);
void drive_free_tables(struct by_job_tables *tables);
/* Events: of a switch, of any kind; a heartbeat, or the timer of recovery, some time later. */
void drive_node_event(enum by_daemon_event_kind kind, uint32_t node);
void drive_event(struct by_daemon_event given);
void drive_tick(uint64_t later_ms);
void drive_timer(uint64_t later_ms);
/* Events of a rank. */
void drive_come(uint16_t job, uint16_t rank, uint16_t gen);
void drive_carried(uint16_t job, uint16_t rank, uint16_t gen);
void drive_all_carried(uint16_t gen);
/* Completes the plan, after 5 ms; job 3 has none if there is a reason. Completes the push, after
 * 7 ms. */
void drive_planned(const char *reason);
void drive_pushed(int error);

#endif
