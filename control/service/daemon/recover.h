/*
 * Recovery as a state machine. When a part of the fabric fails, it decides which jobs get new
 * trees, when their ranks freeze, when tables are pushed, when calls continue, and when a job
 * fails. Input is events, output is actions; it does no I/O and takes the time from the events
 * (offload/wire/PROTOCOL.md, "When a node dies", "Members"). Neighbours: watch.c and members.c
 * produce the events, recovery.c performs the actions. The loop's thread.
 *
 * One attempt at a time serves all affected jobs: PLAN, FREEZE to the ranks, PUSH to the switches,
 * GO. If the store must have the tables before ranks may get them, PUSH precedes FREEZE. An event
 * during an attempt starts another one, with a later generation, as soon as the current step has
 * ended. A job stays in its old generation until every rank has resumed in the new one.
 */
#ifndef BY_SERVICE_DAEMON_RECOVER_H
#define BY_SERVICE_DAEMON_RECOVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BY_RECOVER_TEXT 480u

enum by_recover_type {
    /* Events of the fabric; `what` is a node or a link of the topology. */
    BY_RECOVER_SWITCH_DOWN = 1, /* it no longer answers */
    BY_RECOVER_SWITCH_UP,       /* it answers again, with its tables */
    BY_RECOVER_SWITCH_REBOOTED, /* it answers, without tables */
    BY_RECOVER_SWITCH_GONE,     /* its process has ended: connections to its address are refused */
    BY_RECOVER_LINK_DOWN,
    BY_RECOVER_LINK_UP,
    BY_RECOVER_SWITCH_SWALLOWS, /* These two: it is up and drops every packet (blackhole.h); */
    BY_RECOVER_LINK_SWALLOWS,   /* `text` is printed after its name */
    /* Events of a rank; `job` (place in the list), `rank`. */
    BY_RECOVER_RANK_CAME,     /* `gen` of its table, 0: none; `number`: the nonce of its process */
    BY_RECOVER_RANK_LEFT,     /* regularly (BYE) */
    BY_RECOVER_RANK_DIED,     /* its connection ended */
    BY_RECOVER_RANK_ALIVE,    /* `number`: chunks done */
    BY_RECOVER_RANK_SUSPECTS, /* a chunk has waited for long */
    BY_RECOVER_RANK_CARRIED,  /* it has resumed in `gen` */
    BY_RECOVER_RANK_STUCK,    /* it has left its trees for a standby, and none serves */
    /* `job` gets another generation on the present fabric, for the reason `text`, unless the job
     * has failed or its next generation is under way. `number`: 1 if it leaves a standby. */
    BY_RECOVER_RENEW,
    /* Results of the requested work. */
    BY_RECOVER_NO_PLAN, /* for `job`, with `error` and `text`; precedes the PLANNED of the same work */
    /* `error`: no job could be planned. `number`: 1 if the store lacks the tables, so that no rank
     * may get them before RECORDED or PUSHED. */
    BY_RECOVER_PLANNED,
    BY_RECOVER_RECORDED, /* the store has them */
    BY_RECOVER_PUSHED,   /* to all switches that are up, or `error` */
    BY_RECOVER_TICK,     /* regularly, and every 4 ms unless by_recover_is_quiet */
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
    /* Plan the jobs for which by_recover_planning is true, without the lost parts, for their
     * generations by_recover_next; report NO_PLAN for each job without a path, then PLANNED. */
    BY_DO_PLAN = 1,
    BY_DO_PUSH,    /* push the last plan to all switches that are not lost; then report PUSHED */
    BY_DO_WELCOME, /* `job`, `rank`: generation by_recover_base, with its table if `image` */
    BY_DO_FREEZE,  /* `job`, `rank`: generation by_recover_next, with its table if `image`, else a reminder */
    BY_DO_GO,      /* `job`, `rank`: the same generation */
    BY_DO_FAIL,    /* `job`, `rank`, `error`, `text` */
    BY_DO_SETTLED, /* `job` is now in generation by_recover_base */
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
    uint16_t gen;  /* of its last tables */
    uint16_t last; /* the highest of any attempt, which are not used again; 0: gen */
    bool used;     /* a run has begun on them */
    bool lost;     /* they are not on the switches, because no path is left: it is planned at once */
};

struct by_recover_config {
    uint32_t node_count, link_count;
    uint64_t trust_ns;  /* how long a blackhole is not used, doubled each time; 0 = 10 s */
    uint64_t quiet_ns;  /* how long a part must be back before it is used; 0 = 2 s */
    uint64_t cut_ns;    /* how long a job without a path waits for one; 0 = 3.5 s */
    uint64_t grace_ns;  /* time for a rank to return after its connection ended; 0 = 1.5 s */
    uint64_t repeat_ns; /* first interval of reminders to ranks, longer for large jobs; 0 = 4 ms */
    /* The callbacks get `user`. Whether the trees of the job's last plan use a node or link. */
    bool (*uses)(void *user, uint32_t job, bool is_link, uint32_t what);
    /* Write names such as "switch spine0", "link leaf0 - spine1", "rank 3 (host3)". */
    void (*name_part)(void *user, bool is_link, uint32_t what, char *text, size_t bytes);
    void (*name_rank)(void *user, uint32_t job, uint16_t rank, char *text, size_t bytes);
    /* Performs an action at once, or queues it; must not call by_recover_event. */
    void (*act)(void *user, const struct by_recover_action *action);
    void *user;
};

/* Returns NULL without memory. */
struct by_recover *by_recover_open(const struct by_recover_config *config);
void by_recover_close(struct by_recover *recover);
/* Adds a job. Returns its place in the list, or UINT32_MAX without memory. Places of jobs that
 * ended are reused. */
uint32_t by_recover_add(struct by_recover *recover, const struct by_recover_job *job);
/* Ends the job and notifies its ranks. */
void by_recover_remove(struct by_recover *recover, uint32_t job);
void by_recover_event(struct by_recover *recover, const struct by_recover_event *event);
/* Returns the first of `count` generations, after all earlier ones, that no attempt gets. */
uint16_t by_recover_reserve(struct by_recover *recover, uint32_t job, uint32_t count);
/* A rank of the job has moved to the standby `gen`, and the others follow. Returns whether this is
 * now the generation of the job; not while an attempt is under way or requested, which supersedes
 * the move, or while it waits for a path. */
bool by_recover_move(struct by_recover *recover, uint32_t job, uint16_t gen);
/* The caller has processed nothing for `ns` until now: events of that time are still to come. No
 * limit counts it: of a wait for a path, or for a rank whose connection has ended. */
void by_recover_stood(struct by_recover *recover, uint64_t ns);

/* By node and by link: the parts that plans and pushes must avoid. */
const bool *by_recover_lost_nodes(const struct by_recover *recover);
const bool *by_recover_lost_links(const struct by_recover *recover);
/* Whether the part was found to be a blackhole and is still held. */
bool by_recover_held(const struct by_recover *recover, bool is_link, uint32_t what);
/* For how long ranks have reported waits without a break (ns); 0: none does. */
uint64_t by_recover_waited_ns(const struct by_recover *recover, uint32_t job);
/* Whether the rank is connected; false if the job does not exist. */
bool by_recover_has_rank(const struct by_recover *recover, uint32_t job, uint16_t rank);
/* The generation that all ranks of the job are in, and the next one, which is the same unless an
 * attempt is under way. */
uint16_t by_recover_base(const struct by_recover *recover, uint32_t job);
uint16_t by_recover_next(const struct by_recover *recover, uint32_t job);
/* Between PLAN and PLANNED: whether the plan includes the job, for generation by_recover_next. */
bool by_recover_planning(const struct by_recover *recover, uint32_t job);
/* Whether an attempt to move the job to another generation is under way or requested. */
bool by_recover_is_under_way(const struct by_recover *recover, uint32_t job);
/* Whether a rank of the job has reported a wait just now, and no attempt is under way. */
bool by_recover_suspects(const struct by_recover *recover, uint32_t job);
/* Whether ranks of the job have waited for a while and still report it, and no attempt is under
 * way. */
bool by_recover_waits(const struct by_recover *recover, uint32_t job);
/* Whether no work is under way or requested. */
bool by_recover_is_quiet(const struct by_recover *recover);

#endif
