/* Internal declarations of the driver of recovery: recovery.c, and recovery_waits.c for ranks that
 * wait. The loop's thread. */
#ifndef BY_SERVICE_DAEMON_RECOVERY_INSIDE_H
#define BY_SERVICE_DAEMON_RECOVERY_INSIDE_H

#include "control/service/daemon/recovery.h"

/* A job in recover.c. */
struct by_recovery_place {
    uint16_t job; /* 0: the place is free */
    uint32_t rank_count;
    uint64_t since_ms;                /* beginning of its attempt */
    uint64_t waited_ms;               /* for how long ranks had reported waits then */
    uint64_t planned_ms, pushed_ms;   /* when hosts could get its last plan, and all switches had it */
    struct by_change_image *image_of; /* by rank: table for ranks that connect late, of the base generation */
};

struct by_recovery {
    uint32_t place_count;
    struct by_recovery_place *places; /* by the place that recover.c uses */
    struct by_change *change;         /* the change of the attempt, from PLAN until it is pushed */
    bool plan_wanted, push_wanted;
    bool works;              /* the worker has the change */
    uint64_t pushing_ms;     /* since when it pushes it; 0: it does not */
    uint64_t given_ms;       /* when recover.c got the last event */
    struct by_watcher timer; /* ticks while recovery is under way */
    bool ticks;              /* it runs */
    bool begun;              /* recover.c has got the parts that were down when the daemon began to lead */
};

/* Returns the job at a place, or NULL; and the place of a job, or UINT32_MAX. */
struct by_job *by_recovery_job(struct by_daemon *daemon, uint32_t place);
uint32_t by_recovery_find(const struct by_recovery *recovery, uint16_t job);
/* Whether a push takes so long that one of its switches may have failed. Ranks are frozen and do
 * not report it. */
bool by_recovery_is_slow(const struct by_daemon *daemon);

#endif
