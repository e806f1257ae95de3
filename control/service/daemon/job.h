/*
 * A job: its specification and its tables. Tables never change: after a change of the fabric a job
 * gets new ones, of a later generation. Neighbours: fabric.c makes tables; jobs.c and recover.c
 * decide when. While a change is under way, the worker reads jobs, and the loop leaves that part
 * unchanged.
 */
#ifndef BY_SERVICE_DAEMON_JOB_H
#define BY_SERVICE_DAEMON_JOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "control/plan/plan.h"
#include "control/tables/lower.h"
#include "offload/base/siphash.h"
#include "offload/wire/types.h"

/* Maximum number of plans of one job (count): one for each collective, and one for each root of
 * broadcast and reduce. */
#define BY_JOB_PLANS_MAX 16u

/* A requested plan. */
struct by_job_want {
    unsigned collective; /* enum by_collective */
    int64_t root;        /* node, of broadcast and reduce; else -1 */
};

struct by_job_spec {
    uint16_t job;
    char name[BY_NAME_MAX + 1]; /* for users; may be empty */
    uint32_t want_count;
    struct by_job_want wants[BY_JOB_PLANS_MAX]; /* allreduce is the first, since ranks synchronize with it */
    bool *member;                               /* by node: its ranks; NULL: all compute nodes */
    uint32_t window;          /* slots of each tree; 0: as many as fit, at most BY_LOWER_WINDOW */
    struct by_fraction share; /* reserved part of each link's bandwidth; num 0: what others leave */
    bool is_group;            /* of a communicator: ends when no host uses it (groups.h) */
};

/* The tables of one generation. */
struct by_job_tables {
    uint16_t gen;
    uint16_t first_tree; /* number of its first tree; above 0 if they are or were a standby */
    /* Its standbys on the switches, ascending by generation. */
    uint32_t standby_count;
    struct by_job_tables *standbys[BY_STANDBYS_MAX];
    uint8_t secret[BY_SIPHASH_KEY_BYTES]; /* the key of a keyed job: random, for this generation only */
    uint32_t window;
    uint32_t plan_count;
    struct by_plan **plans;     /* with the node numbers of the whole fabric, in the order of the wants */
    bool *lost_links;           /* by link: links avoided by the trees, so that lowering again gives the same
                                 * result */
    uint32_t *slot_base;        /* by node */
    struct by_lower_need *need; /* by node */
    bool *uses_link;            /* by link: a tree uses it */
    struct by_lowering *lowering; /* of this job only; the images of its hosts come from it */
    bool ahead;                   /* the plans were made before the failure (ahead.h) */
    bool *replaces; /* of a standby, by tree of the tables beside which it is: it avoids each of the parts of
                     * this tree that the job can do without; NULL: the tables are no standby */
    char note[200]; /* for the user: a smaller window, the cost of a repaired plan */
};

enum by_job_state {
    BY_JOB_STARTING = 1, /* planned and pushed for the first time */
    BY_JOB_RUNNING,
    BY_JOB_RECOVERING, /* its next generation is under way */
    BY_JOB_FAILED,     /* no path is left, or its tables could not be made; reason in `text` */
    BY_JOB_ENDING,
};

struct by_job_latency;
struct by_ahead_plans;

struct by_job {
    struct by_job_spec spec;
    enum by_job_state state;
    char text[400];
    struct by_job_tables *tables; /* active on the switches; NULL before the first push */
    uint16_t gen_last;            /* the highest generation of any attempt */
    /* renew.c: by switch, the chunk counter at the start of generation renew_gen; or NULL. */
    uint64_t *renew_from;
    uint16_t renew_gen;
    struct by_job_latency *latency; /* latency.c: reports of the ranks; or NULL */
    struct by_ahead_plans *ahead;   /* ahead.c: plans for failures; or NULL */
    /* groups.c: since when no host is connected, 0: one is; a host has been connected; its end is
     * requested */
    uint64_t lone_ms;
    bool is_seen, is_leaving;
    bool is_used;           /* members.c, each tick: a host is connected */
    uint16_t standby_gen;   /* standby.c: the tables of this generation have the standbys that there are */
    bool standby_tells;     /* its hosts are to get the standbys that there are, after the end of earlier */
    bool standby_ends;      /* ones of the same tables */
    uint64_t moved_ms;      /* standby.c: since when it uses a standby; 0: it does not */
    uint64_t moved_hold_ms; /* for how long it does, twice as long each time that it soon moves again */
    uint64_t moved_end_ms;  /* when it got other trees after that */
    struct by_job_tables *left; /* while it does, if it is known: the tables before */
    bool is_kept; /* jobs.c: its end could not be recorded, so it goes on; its tables have been used */
};

/* Parses "1=allreduce,broadcast@host2:host0,host1" (collectives; ranks after the colon, as names or
 * `@FILE`). Returns 0, or BY_EINVAL with `problem`. The caller frees the spec's `member`. */
int by_job_parse(const char *text, const struct by_topology *topology, struct by_job_spec *spec,
                 struct by_problem *problem);
/* Adds one collective, "allreduce" or "broadcast@host2"; the default root is the first rank. The
 * member list must be set before. */
int by_job_want(struct by_job_spec *spec, const char *text, size_t bytes, const struct by_topology *topology,
                struct by_problem *problem);
/* Adds a comma-separated list of collectives, or "all". */
int by_job_wants(struct by_job_spec *spec, const char *text, const struct by_topology *topology,
                 struct by_problem *problem);
void by_job_spec_free(struct by_job_spec *spec);
void by_job_tables_free(struct by_job_tables *tables);
/* Returns "starting", "running", ... */
const char *by_job_state_name(enum by_job_state state);
/* Return the number of ranks, and the node of a rank, or -1. */
uint32_t by_job_rank_count(const struct by_job_spec *spec, const struct by_topology *topology);
int64_t by_job_node(const struct by_job_spec *spec, const struct by_topology *topology, uint32_t rank);
/* Returns the generation after `gen`: 1 follows 65535. */
static inline uint16_t by_job_gen_next(uint16_t gen)
{
    return gen == UINT16_MAX ? 1 : (uint16_t)(gen + 1);
}

/* Makes the image of a host of the job (milliseconds), for libbanyan. The caller frees *bytes. */
int by_job_image(const struct by_job *job, uint32_t node, uint8_t **bytes, size_t *size,
                 struct by_problem *problem);

#endif
