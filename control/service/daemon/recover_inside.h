/* Internal declarations of recovery, shared by recover.c (attempts), recover_part.c (the fabric)
 * and recover_job.c (jobs and their ranks). The loop's thread. */
#ifndef BY_SERVICE_DAEMON_RECOVER_INSIDE_H
#define BY_SERVICE_DAEMON_RECOVER_INSIDE_H

#include "control/service/daemon/recover.h"

enum by_recover_phase { IDLE = 1, PLANNING, PUSHING, SETTLING };
enum by_recover_presence { ABSENT, WAITING, HERE, GONE, LEFT };

struct by_recover_rank {
    uint8_t presence;
    uint16_t gen;        /* the generation that it runs in */
    uint16_t image_sent; /* the generation whose table it got on this connection, or 0 */
    uint64_t nonce, gone_ns, chunks;
};

struct by_recover_state {
    bool exists, used, failed;
    bool touched;    /* the next plan must include it: by_recover_touch */
    bool open;       /* an attempt is under way: next differs from base */
    bool cut;        /* no path is left: it waits for lost parts to come back */
    bool planning;   /* the current plan includes it */
    bool unrecorded; /* no rank may get the tables of its attempt yet */
    bool frozen;     /* ranks have got FREEZE since they were last in one generation */
    uint16_t job, rank_count, base, next;
    uint16_t prior, last; /* next before the current plan; the highest ever used, since none is reused */
    uint64_t moved_ns, waits_ns; /* when chunks were last done; when a rank last reported a wait */
    uint64_t waits_since_ns;     /* the first of the current series of such reports */
    uint64_t cut_ns;             /* when the last path was lost; returns in vain do not reset it; 0: never */
    bool way;                    /* a plan has succeeded since then */
    uint64_t tried_ns;           /* when a held blackhole was released for a trial because it was cut */
    uint64_t said_ns;            /* when its ranks were last reminded, or one last resumed */
    uint32_t reminders;          /* since one last resumed */
    uint64_t followed_ns;        /* when its first rank moved to a standby; 0: all have followed */
    int error;
    char text[BY_RECOVER_TEXT]; /* why it failed */
    char why[BY_RECOVER_TEXT];  /* why it is cut */
    char cause[256];            /* of its attempt, for texts: "switch spine0 has ended" */
    struct by_recover_rank *ranks;
};

/* A node, or a link. */
struct by_recover_part {
    bool down;         /* it, or its carrier, is down as far as this daemon can tell */
    bool silent;       /* a node: down for this daemon, but possibly not for the ranks */
    bool held;         /* a blackhole, not used before `until_ns` */
    uint64_t back_ns;  /* when a lost part came back; 0: it has not */
    uint64_t until_ns; /* end of the hold */
    uint64_t trust_ns; /* duration of the current or last hold */
    uint64_t free_ns;  /* when the last hold ended */
};

struct by_recover {
    struct by_recover_config config;
    enum by_recover_phase phase;
    bool wanted; /* plan again after the current work */
    bool pushed; /* the switches have the tables of the current attempt */
    uint64_t now_ns, retry_ns;
    bool *lost_nodes, *lost_links;
    struct by_recover_part *parts; /* nodes, then links */
    uint32_t job_count;
    struct by_recover_state *jobs;
};

/* No part of a job's trees has failed if chunks were done this recently and no rank waits. */
#define BY_RECOVER_MOVED_NS UINT64_C(250000000)

/* Whether chunks are done and no rank waits. */
static inline bool by_recover_moves(const struct by_recover *r, const struct by_recover_state *job)
{
    return job->exists && !job->open && job->moved_ns != 0 &&
           r->now_ns - job->moved_ns < BY_RECOVER_MOVED_NS &&
           (job->waits_ns == 0 || r->now_ns - job->waits_ns >= 2 * BY_RECOVER_MOVED_NS);
}

/* Whether its ranks are in an attempt that is not superseded. */
static inline bool by_recover_is_on(const struct by_recover_state *job)
{
    return job->open && !job->cut && !job->touched;
}

/* Passes an action to config.act. */
void by_recover_act(struct by_recover *r, struct by_recover_action action);
/* Logs a line. */
void by_recover_tell(struct by_recover *r, const char *format, ...) __attribute__((format(printf, 2, 3)));
void by_recover_to_rank(struct by_recover *r, enum by_recover_do what, uint32_t j, uint16_t rank, bool image);
/* Writes a name such as "rank 3 (host3)" to `text`. */
const char *by_recover_rank_name(const struct by_recover *r, uint32_t j, uint16_t rank, char text[96]);
/* Sends FREEZE to all present ranks, with the table unless they have it, and GO when allowed;
 * nothing while the tables are not recorded. */
void by_recover_freeze_all(struct by_recover *r, uint32_t j);
/* Whether any rank is in that state. */
bool by_recover_any(const struct by_recover_state *job, enum by_recover_presence presence);
/* Fails the job with an error and notifies all its ranks. */
void by_recover_fail(struct by_recover *r, uint32_t j, int error, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* No plan exists, for the reason `text`. The job keeps its tables and waits for a path. */
void by_recover_cut(struct by_recover *r, uint32_t j, int error, const char *text);
/* Ends the attempt if all ranks are in its generation, or if no rank is present. */
void by_recover_settle(struct by_recover *r, uint32_t j);
/* Events of a rank: it connected; it left, or its connection ended. */
void by_recover_came(struct by_recover *r, const struct by_recover_event *event);
void by_recover_gone(struct by_recover *r, const struct by_recover_event *event);
/* Removes ranks whose connection ended and that have not returned in time. */
void by_recover_bury(struct by_recover *r, uint32_t j);
/* recover_part.c: handle events of the fabric's parts; check silent switches again and end holds;
 * use parts again that have been back for long enough. */
void by_recover_part(struct by_recover *r, const struct by_recover_event *event);
void by_recover_parts_tick(struct by_recover *r);
void by_recover_parts_recovery(struct by_recover *r);
/* Includes the job in the next plan, for this cause; NULL keeps the cause that it has. */
void by_recover_touch(struct by_recover_state *job, const char *cause);
/* recover.c: plans all touched jobs as soon as possible. */
void by_recover_want(struct by_recover *r);

#endif
