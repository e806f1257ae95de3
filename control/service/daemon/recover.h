/*
 * What to do when a part of the fabric dies: which jobs get new trees, when their ranks freeze,
 * when tables go out, when calls go on, and when nothing is left but to say so. Events in, actions
 * out; no time but what events say, no input or output (offload/wire/PROTOCOL.md, "When a node
 * dies", "Members"). Neighbours: watch.c and members.c make events, the daemon's loop does the
 * actions. The daemon's thread.
 *
 * One attempt at a time for all jobs that are hit: PLAN, FREEZE to the ranks, PUSH to the switches,
 * GO. What happens meanwhile begins another one, of a later generation, as soon as the work at hand
 * has ended. A job is in its old generation until every rank has gone on.
 */
#ifndef BY_SERVICE_DAEMON_RECOVER_H
#define BY_SERVICE_DAEMON_RECOVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BY_RECOVER_TEXT 480u

enum by_recover_type {
    /* Of the fabric: `what` is a node or a link of the topology. */
    BY_RECOVER_SWITCH_DOWN = 1, /* it does not answer any more */
    BY_RECOVER_SWITCH_UP,       /* it answers again, with the tables that it had */
    BY_RECOVER_SWITCH_REBOOTED, /* it answers, and has no tables */
    BY_RECOVER_SWITCH_GONE,     /* its process has ended: nobody listens at its address any more */
    BY_RECOVER_LINK_DOWN,
    BY_RECOVER_LINK_UP,
    BY_RECOVER_SWITCH_SWALLOWS, /* these two: it is up, and what goes there comes nowhere
                                   (blackhole.h); */
    BY_RECOVER_LINK_SWALLOWS,   /* `text` says so, behind its name */
    /* Of a rank: `job` (place in the list), `rank`. */
    BY_RECOVER_RANK_CAME,     /* `gen` of its table, 0: it has none; `number`: the nonce of its process
                               */
    BY_RECOVER_RANK_LEFT,     /* by its own will */
    BY_RECOVER_RANK_DIED,     /* its connection ended */
    BY_RECOVER_RANK_ALIVE,    /* `number` of chunks */
    BY_RECOVER_RANK_SUSPECTS, /* a chunk waits for long */
    BY_RECOVER_RANK_CARRIED,  /* gone on in `gen` */
    /* Of a job: `job` gets another generation on the fabric as it is; `text` says why, unless it
     * has failed or the next one is on its way. */
    BY_RECOVER_RENEW,
    /* Of the work that was asked for. */
    BY_RECOVER_NO_PLAN, /* for `job`, with `error` and `text`; before the PLANNED of the same work
                         */
    BY_RECOVER_PLANNED, /* `error`: nothing could be planned at all */
    BY_RECOVER_PUSHED,  /* to all switches that are up, or `error` */
    BY_RECOVER_TICK,    /* at least every 50 ms */
};

struct by_recover_event {
    enum by_recover_type type;
    uint64_t now_ns;
    uint32_t what;
    uint32_t job;
    uint16_t rank, gen;
    uint64_t number;
    int error;
    const char *text;
};

enum by_recover_do {
    /* Plan the jobs of by_recover_planning on what is not lost, of their generations
     * by_recover_next; then NO_PLAN for those that have no way left, and PLANNED. */
    BY_DO_PLAN = 1,
    BY_DO_PUSH,    /* what was planned last, to all switches that are not lost; then PUSHED */
    BY_DO_WELCOME, /* `job`, `rank`: the table of by_recover_base, with `image` */
    BY_DO_FREEZE,  /* `job`, `rank`: of by_recover_next, with `image` or as a reminder */
    BY_DO_GO,      /* `job`, `rank`: the same generation */
    BY_DO_FAIL,    /* `job`, `rank`, `error`, `text` */
    BY_DO_SETTLED, /* `job` is in the generation by_recover_base from now on */
    BY_DO_LOG,     /* `text` */
};

struct by_recover_action {
    enum by_recover_do what;
    uint32_t job;
    uint16_t rank;
    bool image;
    int error;
    const char *text;
};

struct by_recover;

struct by_recover_job {
    uint16_t job; /* its number, for texts */
    uint16_t rank_count;
    uint16_t gen; /* of the tables that the switches have */
    bool used;    /* a run has begun on them */
};

struct by_recover_config {
    uint32_t node_count, link_count;
    uint64_t trust_ns;  /* what swallows packets is used again after, twice as long each time; 0 = 10 s */
    uint64_t quiet_ns;  /* what came back must have been there for so long before it is used; 0 = 2 s */
    uint64_t cut_ns;    /* a job that has no way left waits so long for one to come back; 0 = 3.5 s */
    uint64_t grace_ns;  /* a rank whose connection ended may come back within; 0 = 1.5 s */
    uint64_t repeat_ns; /* ranks are reminded after, those of large jobs later; 0 = 100 ms */
    /* All `user`'s. Whether the job's trees, as they were planned last, use a node or link. */
    bool (*uses)(void *user, uint32_t job, bool is_link, uint32_t what);
    /* "switch spine0", "link leaf0 - spine1", "rank 3 (host3)" */
    void (*name_part)(void *user, bool is_link, uint32_t what, char *text, size_t bytes);
    void (*name_rank)(void *user, uint32_t job, uint16_t rank, char *text, size_t bytes);
    /* Does an action at once, or puts it in a queue; must not give events from within. */
    void (*act)(void *user, const struct by_recover_action *action);
    void *user;
};

/* NULL: no memory. */
struct by_recover *by_recover_open(const struct by_recover_config *config);
void by_recover_close(struct by_recover *recover);
/* A job more; its place in the list, or UINT32_MAX: no memory. Places of jobs that ended are used
 * again. */
uint32_t by_recover_add(struct by_recover *recover, const struct by_recover_job *job);
/* The job ends: ranks that are there are told so. */
void by_recover_remove(struct by_recover *recover, uint32_t job);
void by_recover_event(struct by_recover *recover, const struct by_recover_event *event);

/* By node, by link: what plans and pushes must do without. */
const bool *by_recover_lost_nodes(const struct by_recover *recover);
const bool *by_recover_lost_links(const struct by_recover *recover);
/* It has swallowed packets, and is not trusted yet. */
bool by_recover_held(const struct by_recover *recover, bool is_link, uint32_t what);
/* The generation that all ranks of the job are in, and the one that is coming; the same when none
 * is. */
uint16_t by_recover_base(const struct by_recover *recover, uint32_t job);
uint16_t by_recover_next(const struct by_recover *recover, uint32_t job);
/* Between PLAN and PLANNED: the plan is for this job, too, of the generation by_recover_next. */
bool by_recover_planning(const struct by_recover *recover, uint32_t job);
/* Ranks of the job have waited for a while, are said to wait still, and no attempt is under way. */
bool by_recover_waits(const struct by_recover *recover, uint32_t job);
/* 1 when nothing is under way and nothing waits. */
bool by_recover_is_quiet(const struct by_recover *recover);

#endif
