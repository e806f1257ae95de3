/*
 * A job: what was asked for, and the tables that were made of it. Tables do not change once made: a
 * change of the fabric gives a job others, of a later generation. Neighbours: fabric.c makes
 * tables, jobs.c and recover.c say when. What the worker reads here the loop leaves alone while a
 * change is on its way.
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

/* Plans of one job (count): one for each collective, and one for each root of broadcast and reduce.
 */
#define BY_JOB_PLANS_MAX 16u

/* A plan that is wanted. */
struct by_job_want {
    unsigned collective; /* enum by_collective */
    int64_t root;        /* node, of broadcast and reduce; else -1 */
};

struct by_job_spec {
    uint16_t job;
    char name[BY_NAME_MAX + 1]; /* for people; may be empty */
    uint32_t want_count;
    struct by_job_want wants[BY_JOB_PLANS_MAX]; /* allreduce is the first: ranks meet by it */
    bool *member;                               /* by node: its ranks; NULL: all compute nodes */
    uint32_t window;          /* slots of each tree; 0: as many as fit, at most BY_LOWER_WINDOW */
    struct by_fraction share; /* of each link's bandwidth that is kept for it; num 0: what others leave */
};

/* What was made of it. */
struct by_job_tables {
    uint16_t gen;
    uint8_t secret[BY_SIPHASH_KEY_BYTES]; /* the key of a keyed job: drawn for this generation alone */
    uint32_t window;
    uint32_t plan_count;
    struct by_plan **plans; /* on the whole fabric's numbers, in the order of the wants */
    bool *lost_links;       /* by link: what the trees had to avoid, so that lowering again gives the same */
    uint32_t *slot_base;    /* by node */
    struct by_lower_need *need;   /* by node */
    bool *uses_link;              /* by link: a tree passes it */
    struct by_lowering *lowering; /* of this job alone: hosts' images come from it */
    char note[200];               /* what a user should know: a smaller window, the price of a mended plan */
};

enum by_job_state {
    BY_JOB_STARTING = 1, /* planned and pushed for the first time */
    BY_JOB_RUNNING,
    BY_JOB_RECOVERING, /* its next generation is on the way */
    BY_JOB_FAILED,     /* no path is left, or it could not be made: `text` says why */
    BY_JOB_ENDING,
};

struct by_job {
    struct by_job_spec spec;
    enum by_job_state state;
    char text[400];
    struct by_job_tables *tables; /* active on the switches; NULL before the first push */
    uint16_t gen_last;            /* the highest generation that any attempt of it has had */
    /* renew.c: by switch, where its counters stood when the generation renew_gen began; or NULL. */
    uint64_t *renew_from;
    uint16_t renew_gen;
};

/* Reads "1=allreduce,broadcast@host2:host0,host1" (collectives; ranks after the colon, `@FILE` or
 * names). 0, or BY_EINVAL with `problem`. The spec's `member` is the caller's to free. */
int by_job_parse(const char *text, const struct by_topology *topology, struct by_job_spec *spec,
                 struct by_problem *problem);
/* Takes one collective, "allreduce" or "broadcast@host2"; without a root it is the first rank. The
 * member list must be there already. */
int by_job_want(struct by_job_spec *spec, const char *text, size_t bytes, const struct by_topology *topology,
                struct by_problem *problem);
/* Takes several with commas between, or "all" of them. */
int by_job_wants(struct by_job_spec *spec, const char *text, const struct by_topology *topology,
                 struct by_problem *problem);
void by_job_spec_free(struct by_job_spec *spec);
void by_job_tables_free(struct by_job_tables *tables);
/* "starting", "running", ... */
const char *by_job_state_name(enum by_job_state state);
/* Count of ranks; and the number of a rank's node, or -1. */
uint32_t by_job_rank_count(const struct by_job_spec *spec, const struct by_topology *topology);
int64_t by_job_node(const struct by_job_spec *spec, const struct by_topology *topology, uint32_t rank);
/* The generation after `gen`: 1 follows 65535. */
static inline uint16_t by_job_gen_next(uint16_t gen)
{
    return gen == UINT16_MAX ? 1 : (uint16_t)(gen + 1);
}

/* The image of a host of the job, as libbanyan loads it: *bytes is the caller's to free.
 * Milliseconds. */
int by_job_image(const struct by_job *job, uint32_t node, uint8_t **bytes, size_t *size,
                 struct by_problem *problem);

#endif
