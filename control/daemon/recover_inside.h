/*
 * Inside of recovery: what recover.c (attempts, the fabric) and recover_job.c (jobs and their ranks) know in
 * common. The daemon's thread.
 */
#ifndef BY_DAEMON_RECOVER_INSIDE_H
#define BY_DAEMON_RECOVER_INSIDE_H

#include "control/daemon/recover.h"

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
    bool touched;  /* the next plan must be for it, too */
    bool open;     /* an attempt is under way: next is not base */
    bool cut;      /* no way is left: it waits a while for what is lost to come back */
    bool planning; /* the plan at hand is for it */
    uint16_t job, rank_count, base, next;
    uint16_t prior, last; /* next before the plan at hand; the highest that any attempt has had: none twice */
    uint64_t moved_ns, waits_ns; /* when chunks came, and when some rank last said that one waits */
    uint64_t cut_ns;             /* since when */
    uint64_t said_ns;            /* ranks were reminded, or one got on */
    int error;
    char text[BY_RECOVER_TEXT]; /* of what it failed by */
    char why[BY_RECOVER_TEXT];  /* of what it is cut by */
    struct by_recover_rank *ranks;
};

struct by_recover {
    struct by_recover_config config;
    enum by_recover_phase phase;
    bool wanted; /* another plan after the work at hand */
    bool pushed; /* the attempt at hand is on the switches */
    uint64_t now_ns, retry_ns;
    bool *lost_nodes, *lost_links;
    bool *silent;      /* nodes: down for us, but perhaps not for the ranks */
    uint64_t *back_ns; /* nodes, then links: since when they are back; 0: they are not */
    uint32_t job_count;
    struct by_recover_state *jobs;
    char cause[160]; /* what is lost, for texts */
};

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
/* FREEZE to all ranks that are there, with the table where it was not sent, and GO where they may. */
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
/* recover.c: a plan for all jobs that were touched, as soon as may be. */
void by_recover_want(struct by_recover *r);

#endif
