/*
 * Inside of recovery: what recover.c (attempts), recover_part.c (the fabric) and recover_job.c
 * (jobs and their ranks) know in common. The daemon's thread.
 */
#ifndef BY_SERVICE_DAEMON_RECOVER_INSIDE_H
#define BY_SERVICE_DAEMON_RECOVER_INSIDE_H

#include "control/service/daemon/recover.h"

enum by_recover_phase { IDLE = 1, PLANNING, PUSHING, SETTLING };
enum by_recover_presence { ABSENT, WAITING, HERE, GONE, LEFT };

struct by_recover_rank {
    uint8_t presence;
    uint16_t gen;        /* it runs in */
    uint16_t image_sent; /* the attempt whose table it got on this connection, or 0 */
    uint64_t nonce, gone_ns, chunks;
};

struct by_recover_state {
    bool exists, used, failed;
    bool touched;  /* the next plan must be for it, too: by_recover_touch */
    bool open;     /* an attempt is under way: next is not base */
    bool cut;      /* no way is left: it waits a while for what is lost to come back */
    bool planning; /* the plan at hand is for it */
    uint16_t job, rank_count, base, next;
    uint16_t prior, last; /* next before the plan at hand; the highest that any attempt has had: none twice */
    uint64_t moved_ns, waits_ns; /* when chunks came, and when some rank last said that one waits */
    uint64_t waits_since_ns;     /* the first time of those that followed each other closely */
    uint64_t cut_ns;             /* since when, with what came back in vain meanwhile; 0: it never was */
    bool way;                    /* it has had a plan since then */
    uint64_t tried_ns;           /* when it was given a part to try that swallows packets, while it was cut */
    uint64_t said_ns;            /* ranks were reminded, or one got on */
    int error;
    char text[BY_RECOVER_TEXT]; /* of what it failed by */
    char why[BY_RECOVER_TEXT];  /* of what it is cut by */
    char cause[256];            /* of its attempt, for texts: "switch spine0 has ended" */
    struct by_recover_rank *ranks;
};

/* A node, or a link. */
struct by_recover_part {
    bool down;         /* it, or its carrier, as far as we know */
    bool silent;       /* a node: down for us, but perhaps not for the ranks */
    bool held;         /* it has swallowed packets, and is not used again before `until_ns` */
    uint64_t back_ns;  /* lost, and back since; 0: it is not */
    uint64_t until_ns; /* held until then */
    uint64_t trust_ns; /* how long it was, or is, held */
    uint64_t free_ns;  /* when that was over */
};

struct by_recover {
    struct by_recover_config config;
    enum by_recover_phase phase;
    bool wanted; /* another plan after the work at hand */
    bool pushed; /* the attempt at hand is on the switches */
    uint64_t now_ns, retry_ns;
    bool *lost_nodes, *lost_links;
    struct by_recover_part *parts; /* nodes, then links */
    uint32_t job_count;
    struct by_recover_state *jobs;
};

/* A job that moved so recently, with no rank that waits, has nothing dead in its trees. */
#define BY_RECOVER_MOVED_NS UINT64_C(250000000)

/* Chunks come, and no rank waits. */
static inline bool by_recover_moves(const struct by_recover *r, const struct by_recover_state *job)
{
    return job->exists && !job->open && job->moved_ns != 0 &&
           r->now_ns - job->moved_ns < BY_RECOVER_MOVED_NS &&
           (job->waits_ns == 0 || r->now_ns - job->waits_ns >= 2 * BY_RECOVER_MOVED_NS);
}

/* Its ranks are in an attempt that nothing has overtaken yet. */
static inline bool by_recover_is_on(const struct by_recover_state *job)
{
    return job->open && !job->cut && !job->touched;
}

/* Has an action done. */
void by_recover_act(struct by_recover *r, struct by_recover_action action);
/* A line of the log. */
void by_recover_tell(struct by_recover *r, const char *format, ...) __attribute__((format(printf, 2, 3)));
void by_recover_to_rank(struct by_recover *r, enum by_recover_do what, uint32_t j, uint16_t rank, bool image);
/* "rank 3 (host3)", in `text`. */
const char *by_recover_rank_name(const struct by_recover *r, uint32_t j, uint16_t rank, char text[96]);
/* FREEZE to all ranks that are there, with the table where it was not sent, and GO where they may.
 */
void by_recover_freeze_all(struct by_recover *r, uint32_t j);
/* Whether a rank is in that state. */
bool by_recover_any(const struct by_recover_state *job, enum by_recover_presence presence);
/* The job ends with an error, and all its ranks are told. */
void by_recover_fail(struct by_recover *r, uint32_t j, int error, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* No plan could be made: `text` says why. The job stays as it is, for a while. */
void by_recover_cut(struct by_recover *r, uint32_t j, int error, const char *text);
/* Ends the attempt if all ranks are in its generation, or none had to be asked. */
void by_recover_settle(struct by_recover *r, uint32_t j);
/* Events of a rank: it came; it left, or its connection ended. */
void by_recover_came(struct by_recover *r, const struct by_recover_event *event);
void by_recover_gone(struct by_recover *r, const struct by_recover_event *event);
/* Ranks whose connection ended, and who did not come back in time. */
void by_recover_bury(struct by_recover *r, uint32_t j);
/* recover_part.c: events of the fabric's parts; who was thought to be silent is looked at again;
 * what has been back, or held, for long enough is used again. */
void by_recover_part(struct by_recover *r, const struct by_recover_event *event);
void by_recover_parts_tick(struct by_recover *r);
void by_recover_parts_recovery(struct by_recover *r);
/* The next plan must be for the job, too, by this cause; NULL: by that which it has. */
void by_recover_touch(struct by_recover_state *job, const char *cause);
/* recover.c: a plan for all jobs that were touched, as soon as may be. */
void by_recover_want(struct by_recover *r);

#endif
